// What single operations cost on a share without contention: how long they take, and how many
// requests they send.
import { readFileSync } from "node:fs";
import { mkdir, open, unlink } from "node:fs/promises";
import { Chain } from "../../../src/durable/chain/chain.ts";
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { RollingChain } from "../../../src/durable/chain/rolling-chain.ts";
import { openEvents } from "../../../src/events/index.ts";
import { openHandoff, type Delivery, type Handoff } from "../../../src/handoff/index.ts";
import { openObjects } from "../../../src/objects/index.ts";
import { openPathLocks, openStoreLock } from "../../../src/locks/index.ts";
import { openNodePorts } from "../../../src/ports/node/ports.ts";
import { report } from "../../../harness/processes/child-side.ts";
import { addOne, countId, counterOptions, type Counter } from "../../../harness/scenarios/durable/counter.ts";

export interface Cost {
  readonly what: string;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** Requests to the server for each, on average. */
  readonly requests: number;
  /** The same by kind, where the client tells. */
  readonly byKind: Readonly<Record<string, number>>;
}

const rounds = 200;
/** Beside the rounds that are measured there are some to warm up. */
const tickets = rounds + 10;
const body = "x".repeat(1024);
let stores = 0;
const [directory = ""] = process.argv.slice(2);

await measure("a file made, written, synced and removed", await plainFile());
await measure("store lock: acquire and release", await storeLock());
await measure("path lock: acquire and release", await pathLock());
await measure("rolling chain: append", await rollingChain());
await measure("chain: append", await plainChain());
await measure("events: append with a condition", await events(1));
await measure("events: 64 appends at once", await events(64));
await measure("hand-off: publish with a key", await handoffPublish());
await measure("hand-off: claim", await handoffClaim());
await measure("hand-off: ack", await handoffAck());
await measure("objects: put to a key", await objectsPut(() => "hot"));
await measure("objects: put to a new key", await objectsPut((index) => `key ${index}`));
await measure("objects: get", await objectsGet());
process.exit(0);

async function measure(what: string, round: (index: number) => Promise<unknown>): Promise<void> {
  for (let index = 0; index < 10; index++) await round(-1 - index);
  const before = countRequests();
  const took: number[] = [];
  for (let index = 0; index < rounds; index++) {
    const startMs = performance.now();
    await round(index);
    took.push(performance.now() - startMs);
  }
  const after = countRequests();
  took.sort((a, b) => a - b);
  const byKind = Object.fromEntries(
    [...after]
      .map(([kind, count]): [string, number] => [kind, tenth((count - (before.get(kind) ?? 0)) / rounds)])
      .filter(([, count]) => count > 0),
  );
  const requests = tenth(Object.values(byKind).reduce((sum, count) => sum + count, 0));
  const at = (part: number): number => tenth(took[Math.floor(took.length * part)] ?? 0);
  report({ what, medianMs: at(0.5), p99Ms: at(0.99), requests, byKind } satisfies Cost);
}

/** What the client of this machine has sent so far, by kind. */
function countRequests(): Map<string, number> {
  const counts = new Map<string, number>();
  const nfs = readFileSync("/proc/self/mountstats", "utf8");
  for (const [, kind = "", count] of nfs.matchAll(/^\s+([A-Z_]+): (\d+) \d+ \d+ \d+ \d+ \d+ \d+ \d+/gm))
    counts.set(kind, (counts.get(kind) ?? 0) + Number(count));
  if (counts.size > 0) return counts;
  const smb = /^SMBs: (\d+)/m.exec(readFileSync("/proc/fs/cifs/Stats", "utf8"))?.[1];
  return counts.set("SMB", Number(smb ?? 0));
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

async function plainFile() {
  const path = `${directory}/plain`;
  return async () => {
    const file = await open(path, "wx");
    await file.write("x");
    await file.sync();
    await file.close();
    await unlink(path);
  };
}

async function storeLock() {
  const lock = await openStoreLock(`${directory}/store`);
  return async () => await (await lock.acquire()).release();
}

async function pathLock() {
  const locks = await openPathLocks(`${directory}/tree`);
  return async () => await (await locks.acquire("a")).release();
}

async function openGround(): Promise<Ground> {
  return await Ground.open(await openNodePorts(directory), `${directory}/ground`);
}

async function rollingChain() {
  const ground = await openGround();
  const { bootId } = ground.ports.host;
  const chain = await RollingChain.open<Counter>(ground.staging, `${directory}/rolling`, { ...counterOptions, bootId });
  return async (index: number) => await chain.append(countId("one", index), (state) => addOne(state, "one"));
}

async function plainChain() {
  const ground = await openGround();
  await mkdir(`${directory}/chain`);
  const kind = { kind: "cost", decode: (value: unknown) => value as number };
  const chain = new Chain(ground.staging, `${directory}/chain`, kind);
  return async (index: number) => await chain.append(`append ${index}`, () => index);
}

async function events(callers: number) {
  const store = await openEvents(`${directory}/events-${callers}`);
  let count = 0;
  const append = async () => {
    const tags = [`sale:${++count}`];
    await store.append({ type: "Sold", data: count, tags }, { condition: { failIfEventsMatch: { tags } } });
  };
  return async () => await Promise.all(Array.from({ length: callers }, append));
}

async function fullBox(name: string): Promise<Handoff> {
  const box = await openHandoff(`${directory}/${name}`);
  const items = Array.from({ length: tickets }, (_, index) => ({ files: { "a.txt": "x" }, key: `${name}-${index}` }));
  for await (const published of box.publishMany(items))
    if (published.duplicate) throw new Error(`${published.key} was published before.`);
  return box;
}

async function take(box: Handoff): Promise<Delivery> {
  const delivery = await box.take();
  if (delivery === undefined) throw new Error("There is no ticket left.");
  return delivery;
}

async function handoffPublish() {
  const box = await openHandoff(`${directory}/box-publish`);
  return async (index: number) => await box.publish({ "a.txt": "x" }, { key: `ticket ${index}` });
}

async function handoffClaim() {
  const box = await fullBox("box-claim");
  return async () => await take(box);
}

async function handoffAck() {
  const box = await fullBox("box-ack");
  const deliveries: Delivery[] = [];
  for (let count = 0; count < tickets; count++) deliveries.push(await take(box));
  return async () => await deliveries.pop()?.ack({ isDone: true });
}

async function newBucket(name: string) {
  const store = await openObjects(`${directory}/${name}`);
  return await store.createBucket("photos", { versioning: "enabled" });
}

async function objectsPut(keyOf: (index: number) => string) {
  const bucket = await newBucket(`objects-${++stores}`);
  return async (index: number) => await bucket.put(keyOf(index), body);
}

async function objectsGet() {
  const bucket = await newBucket(`objects-${++stores}`);
  await bucket.put("hot", body);
  return async () => {
    await using object = await bucket.get("hot");
    await object.bytes();
  };
}
