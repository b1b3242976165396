// What a process keeps in memory after puts to many keys.
import { queryObjects } from "node:v8";
import { expect, it } from "vitest";
import { KeyChain } from "../../../src/objects/key/key-chain.ts";
import { KeyHistory } from "../../../src/objects/key/key-history.ts";
import { openStore } from "../../../src/store.ts";

const keys = 600;
const inFlight = 50;

it("puts to many keys leave neither chains nor queues in memory", async () => {
  // Other tests of this process may have left some.
  const before = { chains: countOf(KeyChain), histories: countOf(KeyHistory) };
  await using store = await openStore("memory:");
  const objects = await store.objects();
  const bucket = await objects.createBucket("photos");
  for (let start = 0; start < keys; start += inFlight)
    await Promise.all(Array.from({ length: inFlight }, (_, index) => bucket.put(`key ${start + index}`, "x")));
  for (let start = 0; start < keys; start += inFlight)
    await Promise.all(Array.from({ length: inFlight }, (_, index) => bucket.head(`key ${start + index}`)));
  expect(objects.keysInMemory).toBeLessThanOrEqual(256);
  // The calls have been answered, and end with this turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  // Counted in the heap after a collection of garbage: each chain has its queue.
  expect(countOf(KeyChain) - before.chains).toBeLessThanOrEqual(256);
  expect(countOf(KeyHistory) - before.histories).toBeLessThanOrEqual(256);
});

function countOf(kind: typeof KeyChain | typeof KeyHistory): number {
  return queryObjects(kind, { format: "count" });
}
