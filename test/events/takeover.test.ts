// Another machine writes although this process has the gate: between machines a gate can be lost,
// and no promise rests on it.
import { tmpdir } from "node:os";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { AppendRequest } from "../../src/events/append/call-queue.ts";
import type { Items } from "../../src/events/model/query.ts";
import { plainCodec } from "../../src/events/model/codec.ts";
import { encodeContent, encodeLine, tipAfter } from "../../src/events/log/format/line.ts";
import { OpenedLog } from "../../src/events/open/opened-log.ts";
import { importInto } from "../../src/events/transfer/import.ts";
import type { IncomingLine } from "../../src/events/transfer/incoming.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";

const time = "2026-11-16T08:00:00.000Z";
const events = [{ type: "Sold", tags: [], id: "x" }];

async function open(ports: Ports): Promise<OpenedLog> {
  const log = await OpenedLog.open(ports, "/log", plainCodec, { mode: "share", segmentBytesMax: 1 });
  onTestFinished(() => log.close());
  return log;
}

/** Appends without the gate, as a writer that has taken over. */
async function appendBehind({ publisher }: OpenedLog): Promise<void> {
  const session = await publisher.begin({ assertHeld: async () => undefined, lockId: "" });
  const { end } = session;
  const line = encodeLine(encodeContent({ events, payload: ['{"data":1}'] }), end.position + 1, time, end.crc);
  await session.publish(Buffer.from(line.text), tipAfter(end, { events }, line), true);
  await session.close();
}

async function* linesOf(count: number): AsyncGenerator<IncomingLine> {
  // So long that each is written at once, and fills a segment.
  const data = "x".repeat(1024 * 1024);
  for (let first = 1; first <= count; first++) {
    const content = encodeContent({ events: [{ ...events[0]!, id: `id-${first}` }], payload: [`{"data":"${data}"}`] });
    yield { first, time, events, content, number: first };
  }
}

/** `meanwhile` happens after the look at the log, before session `number` begins. */
function beforeSession(log: OpenedLog, number: number, meanwhile: () => Promise<void>): void {
  const begin = log.publisher.begin.bind(log.publisher);
  let times = 0;
  vi.spyOn(log.publisher, "begin").mockImplementation(async (gate) => {
    if (++times === number) await meanwhile();
    return await begin(gate);
  });
}

describe("an append that was judged before", () => {
  const request = (items?: Items): AppendRequest => {
    const heads = [{ type: "Counted", tags: [], id: "y" }];
    const condition = items === undefined ? undefined : { items, after: 0 };
    const content = encodeContent({ events: heads, payload: ['{"data":2}'] });
    return { content, heads, payload: ['{"data":2}'], condition, timeoutMs: 1000 };
  };

  it.each(["nobody reads", "a reader of the same process moves the view"])("is judged again when %s", async (who) => {
    const ports = createMemoryPorts(await openNodePorts(tmpdir()));
    const [log, other] = [await open(ports), await open(ports)];
    beforeSession(log, 1, async () => {
      await appendBehind(other);
      if (who !== "nobody reads") await log.advance();
    });
    const refused = log.appender.append(request([{ types: ["Sold"], tags: [] }]));
    await expect(refused).rejects.toMatchObject({ code: "APPEND_CONDITION_FAILED" });
    expect((await other.publisher.tip()).position).toBe(1);
  });

  it("gets its own position, though a reader of the same process has moved the view", async () => {
    const ports = createMemoryPorts(await openNodePorts(tmpdir()));
    const [log, other] = [await open(ports), await open(ports)];
    beforeSession(log, 1, async () => {
      await appendBehind(other);
      await log.advance();
    });
    expect(await log.appender.append(request())).toMatchObject({ first: 2, last: 2 });
  });
});

it("an import stops with LOCK_LOST, and writes nothing behind an append of another writer", async () => {
  const ports = createMemoryPorts(await openNodePorts(tmpdir()));
  const [log, other] = [await open(ports), await open(ports)];
  beforeSession(log, 2, () => appendBehind(other));
  const importing = importInto(log, { position: 3, lines: linesOf(3) }, {});
  await expect(importing).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect((await other.publisher.tip()).position).toBe(2);
});
