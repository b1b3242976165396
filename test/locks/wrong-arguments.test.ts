// What a JavaScript program may pass by mistake: each error says which argument of which call is
// wrong, and what is expected.
import { afterEach, beforeEach, expect, it } from "vitest";
import { findLockRoot, openPathLocks, openStoreLock } from "../../src/locks/index.ts";
import type { TablePathLocks } from "../../src/locks/path/service.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
let locks: TablePathLocks;
beforeEach(async () => {
  world = await LocksWorld.make();
  locks = await world.open();
});
afterEach(() => world.end());

const five = 5 as never;
const wrongMode = { mode: "Tree" as never };
const work = async (): Promise<void> => undefined;

const mistakes: readonly (readonly [message: string, call: () => Promise<unknown>])[] = [
  ["acquire: path must be a string, not 5.", () => locks.acquire(five)],
  ["acquire: path must be a string, not undefined.", () => locks.acquire(undefined as never)],
  ["acquire: options must be an object, not null.", () => locks.acquire("x", null as never)],
  ["acquire: options must be an object, not 'tree'.", () => locks.acquire("x", "tree" as never)],
  [`acquire: options.mode must be "exact" or "tree", not 'Tree'.`, () => locks.acquire("x", wrongMode)],
  ["acquire: options.shared must be true or false, not 1.", () => locks.acquire("x", { shared: 1 as never })],
  ["acquire: tag must be a string, not 5.", () => locks.acquire("x", { tag: five })],
  ["tryAcquire: path must be a string, not 5.", () => locks.tryAcquire(five)],
  [`tryAcquire: options.mode must be "exact" or "tree", not 'Tree'.`, () => locks.tryAcquire("x", wrongMode)],
  ["acquireAll: requests must be a list of paths or requests, not 'x'.", () => locks.acquireAll("x" as never)],
  ["acquireAll: requests is empty: there is nothing to lock.", () => locks.acquireAll([])],
  ["acquireAll: requests[1] must be a path, or a request with one, not 5.", () => locks.acquireAll(["x", five])],
  ["acquireAll: requests[0].path must be a string, not undefined.", () => locks.acquireAll([{} as never])],
  [
    `acquireAll: requests[0].mode must be "exact" or "tree", not 'Tree'.`,
    () => locks.acquireAll([{ path: "x", ...wrongMode }]),
  ],
  ["acquireMove: to must be a string, not 5.", () => locks.acquireMove("x", five)],
  ["withLock: what must be a path, or a request with one, not 5.", () => locks.withLock(five, work)],
  ["withLock: what[0] must be a path, or a request with one, not 5.", () => locks.withLock([five], work)],
  ["withLock: work must be a function, not undefined.", () => locks.withLock("x", undefined as never)],
  ["receive: token must be a string, not 5.", () => locks.receive(five)],
  ["list: under must be a string, not 5.", () => locks.list({ under: five })],
  ["break: path must be a string, not 5.", () => locks.break(five)],
  ["The location must be a path or a file: URL, not 5.", () => openStoreLock(five)],
  ["The location must be a path or a file: URL, not undefined.", () => openPathLocks(undefined as never)],
  ["The location must be a path or a file: URL, not {}.", () => findLockRoot({} as never)],
];

it.each(mistakes)("%s", async (message, call) => {
  await expect(call()).rejects.toThrow(new TypeError(message));
  expect(await locks.list()).toEqual([]);
});

it("a hold that is asked for a change which makes no sense stays what it was", async () => {
  await using hold = await locks.acquire("x");
  await expect(hold.upgrade("Tree" as never)).rejects.toThrow(
    new TypeError(`upgrade: to must be "exact" or "tree", not 'Tree'.`),
  );
  await expect(hold.downgrade({ shared: "yes" as never })).rejects.toThrow(
    new TypeError("downgrade: to.shared must be true or false, not 'yes'."),
  );
  await expect(hold.upgrade(undefined as never)).rejects.toThrow(
    new TypeError("upgrade: to must be an object, not undefined."),
  );
  expect(hold.requests).toEqual([{ path: "x", mode: "exact", shared: false }]);
});

it("a long value is shown in part", async () => {
  const error: unknown = await locks
    .acquire("x", { mode: "x".repeat(100_000) as never })
    .catch((thrown: unknown) => thrown);
  expect((error as Error).message.length).toBeLessThan(300);
});
