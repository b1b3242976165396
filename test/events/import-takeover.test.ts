// An import that loses the gate between two segments stops: the positions of an export leave no room for others.
import { tmpdir } from "node:os";
import { expect, it, onTestFinished, vi } from "vitest";
import { plainCodec } from "../../src/events/codec.ts";
import { encodeContent, encodeLine, tipAfter } from "../../src/events/log/line.ts";
import { OpenedLog } from "../../src/events/opened-log.ts";
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

/** Without the gate, as one who has taken it over would. */
async function appendBehind({ publisher }: OpenedLog): Promise<void> {
  const tenure = await publisher.begin();
  const { end } = tenure;
  const line = encodeLine(encodeContent({ events, payload: ['{"data":1}'] }), end.position + 1, time, end.crc);
  await tenure.publish(Buffer.from(line.text), tipAfter(end, { events }, line), true);
  await tenure.close();
}

async function* linesOf(count: number): AsyncGenerator<IncomingLine> {
  // So long that each is written at once, and fills a segment.
  const data = "x".repeat(1024 * 1024);
  for (let first = 1; first <= count; first++) {
    const content = encodeContent({ events: [{ ...events[0]!, id: `id-${first}` }], payload: [`{"data":"${data}"}`] });
    yield { first, time, events, content, number: first };
  }
}

it("stops with LOCK_LOST, and writes nothing behind what another has appended", async () => {
  const ports = createMemoryPorts(await openNodePorts(tmpdir()));
  const [log, other] = [await open(ports), await open(ports)];
  const begin = log.publisher.begin.bind(log.publisher);
  let times = 0;
  vi.spyOn(log.publisher, "begin").mockImplementation(async () => {
    if (++times === 2) await appendBehind(other);
    return await begin();
  });
  const importing = importInto(log, { position: 3, lines: linesOf(3) }, {});
  await expect(importing).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect((await other.publisher.tip()).position).toBe(2);
});
