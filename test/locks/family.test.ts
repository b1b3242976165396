// The holds within one hold: they exclude each other like any two holds, covered by the outer hold
// or not, and no fence among them falls.
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PathHold } from "../../src/locks/path/path-hold.ts";
import type { LockRequest } from "../../src/locks/path/path-locks.ts";
import type { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
let a: TablePathLocks;
let b: TablePathLocks;

beforeEach(async () => {
  world = await LocksWorld.make();
  [a, b] = [await world.open(), await world.open()];
});
afterEach(() => world.end());

const exact = (path: string): LockRequest => ({ path });
const tree = (path: string): LockRequest => ({ path, mode: "tree" });
const shared = (path: string): LockRequest => ({ path, shared: true });

describe("two holds within one exclude each other", () => {
  const cases: readonly (readonly [string, LockRequest, readonly LockRequest[], readonly LockRequest[]])[] = [
    ["both covered", tree("a"), [exact("a/b")], [exact("a/b")]],
    ["one covered, one in part", tree("a"), [exact("a/b")], [exact("a/b"), exact("z")]],
    ["both covered in part", tree("a"), [exact("a/b"), exact("y")], [exact("a/b"), exact("z")]],
    ["one covered, one wider than the outer hold", exact("a"), [exact("a")], [tree("a")]],
    ["one shared, one exclusive within a shared one", shared("s"), [shared("s")], [exact("s")]],
    ["neither covered", exact("a"), [exact("z")], [tree("z")]],
  ];
  for (const [name, outer, one, other] of cases)
    it(`${name}, in both orders`, async () => {
      for (const [first, second] of [
        [one, other],
        [other, one],
      ] as const) {
        const within = await a.acquireAll([outer]);
        const held = await a.acquireAll(first, { within });
        await expect(a.acquireAll(second, { within })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
        let next: PathHold | undefined;
        const waiting = a.acquireAll(second, { within, timeoutMs: 20_000 }).then((hold) => (next = hold));
        // Time passes: so that the other has begun to wait.
        await sleep(30);
        expect(next).toBe(undefined);
        await held.assertHeld();
        await held.release();
        await (await waiting).assertHeld();
        await within.release();
      }
    });

  it("a child of one child excludes another child", async () => {
    const outer = await a.acquire("a", { mode: "tree" });
    const [left, right] = [await a.acquire("a/l", { within: outer }), await a.acquire("a/r", { within: outer })];
    await expect(a.acquire("a/r", { within: left })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    const inner = await a.acquire("a/x", { within: left });
    await expect(a.acquire("a/x", { within: right })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await expect(a.acquire("a/x", { within: outer })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await inner.release();
    await (await a.acquire("a/x", { within: right })).assertHeld();
    await outer.release();
  });

  it("a hold never excludes the holds within it", async () => {
    const outer = await a.acquire("a", { mode: "tree" });
    const child = await a.acquireAll(["a/b", "z"], { within: outer });
    const wider = await a.acquire("z", { mode: "tree", within: child });
    const same = await a.acquire("a/b", { within: wider });
    for (const hold of [outer, child, wider, same]) await hold.assertHeld();
    await outer.release();
  });

  it("an upgraded hold still excludes the others of its family", async () => {
    const outer = await a.acquire("a", { mode: "tree" });
    const wide = await a.acquireAll(["a/b", "z"], { within: outer });
    const below = await a.acquire("a/b/c", { within: outer });
    await expect(wide.upgrade("tree")).rejects.toMatchObject({ code: "LOCK_TIMEOUT", blockedBy: [{ path: "a" }] });
    await (await a.acquire("a/b/d", { within: outer })).release();
    const upgrade = wide.upgrade("tree", { timeoutMs: 20_000 });
    // Time passes: so that the other has begun to wait.
    await sleep(30);
    await below.release();
    await upgrade;
    await expect(a.acquire("a/b/c", { within: outer })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    const waiting = a.acquire("a/b/c", { within: outer, timeoutMs: 20_000 });
    // Time passes: so that the other has begun to wait.
    await sleep(30);
    await wide.downgrade("exact");
    await (await waiting).assertHeld();
    await outer.release();
  });

  it("also when one of them was upgraded while another waited for a third", async () => {
    const outer = await a.acquire("a", { mode: "tree" });
    const third = await a.acquire("a/b/c", { within: outer });
    const wide = await a.acquireAll(["a/b", "z"], { within: outer });
    const waiting = a.acquire("a/b/c", { within: outer, timeoutMs: 20_000 });
    // Time passes: so that the other has begun to wait.
    await sleep(30);
    const upgrade = wide.upgrade("tree", { timeoutMs: 20_000 });
    await third.release();
    const second = await waiting;
    await second.release();
    await upgrade;
    for (const hold of [wide, outer]) await hold.assertHeld();
    await outer.release();
  });
});

describe("the fence of a hold never falls below that of a hold within it, where they share a path", () => {
  it("when the inner hold reaches beyond the outer one", async () => {
    const outer = await a.acquire("a");
    const inner = await a.acquire("a", { mode: "tree", within: outer });
    const { fence } = inner;
    await inner.release();
    expect(outer.fence).toBeGreaterThanOrEqual(fence);
    const part = await a.acquire("a", { within: outer });
    expect(part.fence).toBe(outer.fence);
    const received = await b.receive(await outer.transfer());
    expect(received.fence).toBeGreaterThanOrEqual(fence);
    await received.release();
    expect((await b.acquire("a")).fence).toBeGreaterThan(received.fence);
  });

  it("when the inner hold is upgraded, and through the holds between them", async () => {
    const outer = await a.acquire("a", { mode: "tree" });
    const middle = await a.acquireAll(["a/b", "y"], { within: outer });
    const inner = await a.acquireAll(["y", "z"], { within: middle });
    expect(middle.fence).toBeGreaterThanOrEqual(inner.fence);
    expect(outer.fence).toBeGreaterThanOrEqual(middle.fence);
    await inner.upgrade("tree");
    expect(outer.fence).toBeGreaterThanOrEqual(inner.fence);
    await outer.release();
  });

  it("an outer hold that shares no path keeps its fence", async () => {
    const outer = await a.acquire("a", { mode: "tree" });
    const { fence } = outer;
    const waiting = b.acquire("a/q", { timeoutMs: 20_000 });
    while ((await b.list()).flatMap((lock) => lock.waiting).length === 0) await sleep(5);
    const inner = await a.acquire("z", { within: outer });
    expect(inner.fence).toBeGreaterThan(fence);
    expect(outer.fence).toBe(fence);
    await outer.release();
    await (await waiting).release();
  });

  it("nor does that of a waiting request: an inner hold that would overtake it is refused", async () => {
    const outer = await a.acquire("a", { mode: "tree" });
    const other = await a.acquire("y", { within: outer });
    const waiting = b.acquire("a/q", { timeoutMs: 20_000 });
    while ((await b.list()).flatMap((lock) => lock.waiting).length === 0) await sleep(5);
    const wanted = ["a/b", "z"];
    await expect(a.acquireAll(wanted, { within: outer })).rejects.toMatchObject({
      code: "LOCK_TIMEOUT",
      blockedBy: [{ path: "a/q" }],
    });
    await expect(a.acquireAll(wanted, { within: outer, timeoutMs: 20_000 })).rejects.toMatchObject({
      code: "DEADLOCK",
      cycle: [{ pid: process.pid }],
    });
    // What the outer hold covers, and what it does not, can be had one by one.
    const [covered, uncovered] = [
      await a.acquire("a/b", { within: outer }),
      await a.acquire("z", { within: outer, timeoutMs: 20_000 }),
    ];
    for (const hold of [covered, uncovered, other]) await hold.assertHeld();
    const { fence } = outer;
    await outer.release();
    expect((await waiting).fence).toBeGreaterThan(fence);
  });

  it("also when an inner hold is upgraded while another process waits for the outer one", async () => {
    const outer = await a.acquire("a/b/c");
    const inner = await a.acquire("a", { within: outer });
    const waiting = b.acquire("a/b/c", { shared: true, timeoutMs: 20_000 });
    while ((await b.list()).flatMap((lock) => lock.waiting).length === 0) await sleep(5);
    await expect(inner.upgrade("tree", { timeoutMs: 20_000 })).rejects.toMatchObject({ code: "DEADLOCK" });
    await outer.release();
    await (await waiting).release();
  });
});
