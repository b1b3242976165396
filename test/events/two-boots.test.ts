// A container may have its own boot id (systemd-nspawn, LXC), or none, and share a folder with its
// host. To each of the two, the head of the other looked like one from before a restart: lines
// behind it were taken for durable, also those that a living writer had not published yet.
import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { plainCodec } from "../../src/events/model/codec.ts";
import { encodeContent, encodeLine, tipAfter } from "../../src/events/log/format/line.ts";
import { segmentPath } from "../../src/events/log/format/segment.ts";
import { OpenedLog } from "../../src/events/open/opened-log.ts";
import type { StoreHold } from "../../src/locks/store/store-lock.ts";
import { unknownBootId } from "../../src/ports/host.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";

const time = "2026-11-16T08:00:00.000Z";

async function openUnder(directory: string, bootId: string): Promise<OpenedLog> {
  const ports = await openNodePorts(directory);
  const log = await OpenedLog.open({ ...ports, host: { ...ports.host, bootId } }, directory, plainCodec, {});
  onTestFinished(() => log.close());
  return log;
}

async function append(log: OpenedLog, id: string): Promise<number> {
  const heads = [{ type: "Counted", tags: [], id }];
  const content = encodeContent({ events: heads, payload: ['{"data":1}'] });
  return (await log.appender.append({ content, heads, payload: ['{"data":1}'], timeoutMs: 5000 })).last;
}

/** Writes a line behind the head, as a writer before its publish. Returns the publish. */
async function writeUnpublished(log: OpenedLog, gate: StoreHold, id: string): Promise<() => Promise<void>> {
  const session = await log.publisher.begin(gate);
  const { published: tip } = session;
  const events = [{ type: "Counted", tags: [], id }];
  const line = encodeLine(encodeContent({ events, payload: ['{"data":2}'] }), tip.position + 1, time, tip.crc);
  const file = await log.files.disk.open(segmentPath(log.files.directory, tip.segment), "write");
  await file.write(tip.length, Buffer.from(line.text));
  await file.sync();
  await file.close();
  return () => session.publish(Buffer.from(line.text), tipAfter(tip, { events }, line), true);
}

const segmentOf = async ({ publisher }: OpenedLog): Promise<number> => (await publisher.tip()).segment;
const positionOf = async ({ publisher }: OpenedLog): Promise<number> => (await publisher.tip()).position;

describe.each([
  ["has its own boot id", () => randomUUID()],
  ["has no boot id", () => unknownBootId(randomUUID())],
])("a log of a host and of a container that %s", (_, bootIdOf) => {
  it("does not show lines that a living writer has not published", async () => {
    const directory = makeScratch();
    const host = await openUnder(directory, randomUUID());
    await append(host, "a");
    const gate = await host.lock.acquire();
    const publish = await writeUnpublished(host, gate, "b");
    const container = await openUnder(directory, bootIdOf());
    expect(await positionOf(container)).toBe(1);
    await publish();
    expect(await positionOf(container)).toBe(2);
    await gate.release();
    expect(await append(container, "c")).toBe(3);
    expect(await append(host, "d")).toBe(4);
    for (const log of [host, container]) expect(await positionOf(log)).toBe(4);
  });

  it("counts the lines of a writer that died before its publish, once, in every process", async () => {
    const directory = makeScratch();
    const host = await openUnder(directory, randomUUID());
    await append(host, "a");
    const gate = await host.lock.acquire();
    await writeUnpublished(host, gate, "b");
    await gate.release();
    const container = await openUnder(directory, bootIdOf());
    expect([await positionOf(container), await positionOf(host)]).toEqual([2, 2]);
    expect(await append(host, "c")).toBe(3);
    expect(await append(container, "d")).toBe(4);
    expect(await segmentOf(container)).toBe(1);
    for (const log of [host, container]) expect(await positionOf(log)).toBe(4);
  });
});
