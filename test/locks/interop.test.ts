// Interop on the real disk: what foreign programs see of our locks, from the grant to its end.
import { existsSync, statSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { foreignBlocker, foreignLock, InteropSite, tokenAt } from "./interop-site.ts";
import { keep } from "./keep.ts";

const token = /^holdfast\.[0-9a-z]{12}\.[0-9a-z]{26}:\d{19}:[ET]$/;
const shortLeaseMs = 1500;

let site: InteropSite;
beforeEach(async () => {
  site = await InteropSite.make();
  await mkdir(site.at("dir/sub"), { recursive: true });
  await writeFile(site.at("dir/file.txt"), "");
});
afterEach(async () => {
  await site.end();
});

const soon = async (check: () => void): Promise<void> => await vi.waitFor(check, { timeout: 10_000, interval: 20 });

describe("the lock file of a hold", () => {
  it.each([
    ["dir", "exact", "inside", "E"],
    ["dir", "tree", "inside", "T"],
    ["", "tree", "inside", "T"],
    ["dir/file.txt", "exact", "beside", "E"],
    ["dir/file.txt", "tree", "beside", "T"],
    ["dir/missing", "exact", "beside", "E"],
    ["dir/missing", "tree", "beside", "T"],
    ["中文 name..txt", "exact", "beside", "E"],
  ] as const)("on %j (%s) is the lock file %s it, of type %s", async (path, mode, where, type) => {
    const locks = await site.open();
    const hold = await locks.acquire(path, { mode });
    expect(site.lockFiles()).toHaveLength(1);
    const text = tokenAt(site[where](path));
    expect(text).toMatch(token);
    expect(text.endsWith(`:${type}`)).toBe(true);
    expect(Math.abs(Number(BigInt(text.split(":")[1] ?? "") / 1_000_000n) - Date.now())).toBeLessThan(5000);
    await hold.release();
    expect(site.lockFiles()).toEqual([]);
  });

  it.each([
    ["exact", "dir", "exact", true],
    ["exact", "dir", "tree", true],
    ["exact", "dir/sub", "exact", false],
    ["exact", "", "tree", true],
    ["exact", "", "exact", false],
    ["tree", "dir", "exact", true],
    ["tree", "dir/sub", "exact", true],
    ["tree", "dir/sub/missing", "tree", true],
    ["tree", "", "tree", true],
    ["tree", "other", "tree", false],
  ] as const)("on dir (%s) stops a foreign program that wants %j (%s): %s", async (mode, path, wanted, isStopped) => {
    await using _hold = await (await site.open()).acquire("dir", { mode });
    expect(foreignBlocker(site.at(path), wanted) !== undefined).toBe(isStopped);
  });

  it("is removed at every end of the hold: release, failed work, break, idleness, close", async () => {
    const [locks, other] = [await site.open(), await site.open()];
    await expect(locks.withLock("a", () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    expect(site.lockFiles()).toEqual([]);
    await keep(locks.acquire("a"));
    await other.break("a");
    await soon(() => expect(site.lockFiles()).toEqual([]));
    await keep(locks.acquire("a", { idleMs: 20 }));
    await soon(() => expect(site.lockFiles()).toEqual([]));
    await keep(locks.acquireAll(["a", "b", { path: "dir", mode: "tree" }]));
    expect(site.lockFiles()).toHaveLength(3);
    await locks.close();
    expect(site.lockFiles()).toEqual([]);
  });

  it("needs its directory: where that is missing, the lock holds among Holdfast processes only", async () => {
    const [locks, other] = [await site.open(), await site.open()];
    await using _hold = await locks.acquire("no/such/path");
    expect(existsSync(site.at("no"))).toBe(false);
    expect(site.lockFiles()).toEqual([]);
    expect(await other.tryAcquire("no/such/path")).toBe(undefined);
  });

  it("moves into a directory that is made under the lock, so that foreign programs see it from below", async () => {
    const locks = await site.open({ leaseMs: shortLeaseMs });
    await using _hold = await locks.acquire("new", { mode: "tree" });
    await mkdir(site.at("new"));
    await soon(() => expect(site.lockFiles()).toEqual(["new/.path.ovlock"]));
    expect(foreignBlocker(site.at("new/x"), "exact")).toBe(site.inside("new"));
  });

  it("is kept fresh in place: the same file, never empty, never of another length", async () => {
    const locks = await site.open({ leaseMs: shortLeaseMs });
    await using _hold = await locks.acquire("dir", { mode: "tree" });
    const [text, { ino }] = [tokenAt(site.inside("dir")), statSync(site.inside("dir"))];
    for (const untilMs = Date.now() + 2 * shortLeaseMs; Date.now() < untilMs; await new Promise(setImmediate)) {
      expect(tokenAt(site.inside("dir"))).toHaveLength(text.length);
      expect(foreignBlocker(site.at("dir/x"), "exact", shortLeaseMs)).toBe(site.inside("dir"));
    }
    expect(tokenAt(site.inside("dir"))).not.toBe(text);
    expect(statSync(site.inside("dir")).ino).toBe(ino);
  });

  it("comes back after a program has deleted it", async () => {
    const locks = await site.open({ leaseMs: shortLeaseMs });
    await using hold = await locks.acquire("dir/file.txt");
    await rm(site.beside("dir/file.txt"));
    await soon(() => expect(tokenAt(site.beside("dir/file.txt"))).toMatch(token));
    expect(hold.signal.aborted).toBe(false);
  });

  it("changes its type when the hold is upgraded or downgraded", async () => {
    const locks = await site.open();
    await using hold = await locks.acquire("dir");
    await hold.upgrade("tree");
    expect(tokenAt(site.inside("dir"))).toMatch(/:T$/);
    await hold.downgrade("exact");
    expect(tokenAt(site.inside("dir"))).toMatch(/:E$/);
  });

  it("says the widest of all holds on its path that are within each other", async () => {
    const locks = await site.open();
    await using outer = await locks.acquire("dir");
    const inner = await locks.acquire("dir", { mode: "tree", within: outer });
    expect(tokenAt(site.inside("dir"))).toMatch(/:T$/);
    await inner.release();
    expect(tokenAt(site.inside("dir"))).toMatch(/:E$/);
  });

  it("stands for all shared holds of a process until the last one ends", async () => {
    const locks = await site.open();
    const [one, two] = [await locks.acquire("a", { shared: true }), await locks.acquire("a", { shared: true })];
    await one.release();
    expect(foreignBlocker(site.at("a"), "exact")).toBe(site.beside("a"));
    await two.release();
    expect(site.lockFiles()).toEqual([]);
  });

  it("stands for shared holds of two processes, and comes back within a third of a lease when the later one ends first", async () => {
    const [a, b] = [await site.open({ leaseMs: shortLeaseMs }), await site.open({ leaseMs: shortLeaseMs })];
    const [one, two] = [await a.acquire("a", { shared: true }), await b.acquire("a", { shared: true })];
    const three = await a.acquire("a", { shared: true });
    await one.release();
    await two.release();
    await soon(() => expect(foreignBlocker(site.at("a"), "exact", shortLeaseMs)).toBe(site.beside("a")));
    await three.release();
    expect(site.lockFiles()).toEqual([]);
  });

  it("stays in place while the hold is handed over, and becomes that of the receiver", async () => {
    const [a, b] = [await site.open(), await site.open()];
    const secret = await (await a.acquire("a")).transfer();
    const before = tokenAt(site.beside("a"));
    const hold = await b.receive(secret);
    expect(tokenAt(site.beside("a"))).not.toBe(before);
    await hold.release();
    expect(site.lockFiles()).toEqual([]);
  });

  it("does not stay behind in a directory that was moved under the locks on both ends", async () => {
    const locks = await site.open();
    const hold = await locks.acquireMove("dir", "moved");
    await rename(site.at("dir"), site.at("moved"));
    await hold.release();
    expect(site.lockFiles()).toEqual([]);
  });

  it("replaces that of a dead Holdfast process at once", async () => {
    const [a, b] = [await site.open(), await site.open()];
    const hold = await a.acquire("a");
    const left = tokenAt(site.beside("a"));
    await hold.release();
    await writeFile(site.beside("a"), left);
    await using _next = await b.acquire("a");
    expect(tokenAt(site.beside("a"))).not.toBe(left);
  });

  it("does not exist without the option", async () => {
    const locks = await site.open({ interop: false });
    foreignLock(site.beside("a"));
    await using _hold = await locks.acquire("a");
    await using _tree = await locks.acquire("dir", { mode: "tree" });
    expect(site.lockFiles()).toHaveLength(1);
  });
});
