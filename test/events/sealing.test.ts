// Which process makes the index of a segment, and how others answer until it exists.
import { tmpdir } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { plainCodec } from "../../src/events/model/codec.ts";
import { encodeContent } from "../../src/events/log/format/line.ts";
import { OpenedLog } from "../../src/events/open/opened-log.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";

async function open(ports: Ports): Promise<OpenedLog> {
  // Each line begins a segment, and so seals the one before.
  const log = await OpenedLog.open(ports, "/log", plainCodec, { segmentBytesMax: 1 });
  onTestFinished(() => log.close());
  return log;
}

async function append(log: OpenedLog, id: string): Promise<void> {
  const heads = [{ type: "Sold", tags: [`sale:${id}`], id }];
  const content = encodeContent({ events: heads, payload: ['{"data":null}'] });
  await log.appender.append({ content, heads, payload: ['{"data":null}'], timeoutMs: 1000 });
}

async function indexesIn({ disk }: Ports): Promise<string[]> {
  const names = await disk.list("/log/index").catch(() => []);
  return names.map((name) => name.slice(0, 10).replace(/^0+/, "")).sort();
}

const isSold = (id: string) => [{ types: ["Sold"], tags: [`sale:${id}`] }] as const;

it("the process that sealed a segment makes its index; others wait for that until the next one is sealed", async () => {
  const ports = createMemoryPorts(await openNodePorts(tmpdir()));
  const [sealer, other] = [await open(ports), await open(ports)];
  await append(sealer, "a");
  await other.advance();
  await append(sealer, "b");
  await other.advance();
  await other.view.buildIndexes();
  expect(await indexesIn(ports)).toEqual([]);
  await sealer.view.advance(await sealer.publisher.tip());
  await sealer.view.buildIndexes();
  expect(await indexesIn(ports)).toEqual(["1"]);
  // This process dies before it has made the next index.
  await append(sealer, "c");
  await other.advance();
  await other.view.buildIndexes();
  expect(await indexesIn(ports)).toEqual(["1"]);
  await append(sealer, "d");
  await other.advance();
  await other.view.buildIndexes();
  expect(await indexesIn(ports)).toEqual(["1", "2"]);
});

it("a segment that was just sealed answers from memory: no condition waits for its index", async () => {
  const ports = createMemoryPorts(await openNodePorts(tmpdir()));
  const log = await open(ports);
  for (const id of ["a", "b", "c"]) await append(log, id);
  await log.advance();
  expect(log.view.isClear(isSold("a"), 0)).toBe(false);
  expect(log.view.isClear(isSold("a"), 1)).toBe(true);
  expect(log.view.isClear(isSold("z"), 0)).toBe(true);
  const found: number[] = [];
  for await (const { position } of log.reader.read(isSold("b"), { after: 0, upTo: 3 }, false)) found.push(position);
  expect(found).toEqual([2]);
  expect(await indexesIn(ports)).toEqual([]);
});

it("a process that opens a log makes missing indexes", async () => {
  const ports = createMemoryPorts(await openNodePorts(tmpdir()));
  const sealer = await open(ports);
  for (const id of ["a", "b"]) await append(sealer, id);
  const opener = await open(ports);
  await opener.view.buildIndexes();
  expect(await indexesIn(ports)).toEqual(["1"]);
});
