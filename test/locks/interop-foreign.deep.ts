// Foreign lock files on the real disk: which of them stand in our way, for how long, and what
// becomes of them.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { foreignLock, InteropSite, tokenAt } from "./interop-site.ts";

const leaseMs = 30_000;
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

// Time passes: each call says what for.
const pause = async (ms: number): Promise<void> => await new Promise((resolve) => setTimeout(resolve, ms));
const age = async (file: string, ms: number): Promise<void> =>
  await utimes(file, new Date(), new Date(Date.now() - ms));
const nsIn = (ms: number): bigint => BigInt(Date.now() + ms) * 1_000_000n;

describe("a live foreign lock", () => {
  it.each([
    ["E", "dir", "inside", "dir", "exact", true],
    ["E", "dir", "beside", "dir", "exact", true],
    ["E", "dir", "inside", "dir", "tree", true],
    ["E", "dir", "inside", "dir/sub", "exact", false],
    ["T", "dir", "inside", "dir/sub", "exact", true],
    ["T", "dir", "inside", "dir/sub/no/such", "tree", true],
    ["P", "dir", "inside", "dir/sub", "exact", true],
    ["S", "dir", "inside", "dir/sub", "exact", true],
    ["T", "", "inside", "dir/sub", "exact", true],
    ["E", "dir/sub", "inside", "dir", "tree", true],
    ["E", "dir/sub", "inside", "dir", "exact", false],
    ["E", "dir/file.txt", "beside", "dir", "tree", true],
    ["E", "dir/file.txt", "beside", "", "tree", true],
    ["T", "dir/file.txt", "beside", "dir/file.txt", "exact", true],
    ["T", "dir/sub", "inside", "dir/file.txt", "exact", false],
    ["E", "missing", "beside", "missing", "tree", true],
  ] as const)("(%s on %j, %s it) stands in the way of %j (%s): %s", async (type, path, where, wanted, mode, blocks) => {
    const locks = await site.open();
    foreignLock(site[where](path), type);
    for (const shared of [true, false]) {
      const hold = await locks.tryAcquire(wanted, { mode, shared });
      expect(hold === undefined).toBe(blocks);
      await hold?.release();
    }
    expect(tokenAt(site[where](path))).toMatch(/^9b2f0d6e-foreign:/);
  });

  it("above the root excludes a request too", async () => {
    const locks = await site.open({}, site.at("dir"));
    foreignLock(site.inside(""), "T");
    const error: unknown = await locks.acquire("sub").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "LOCK_TIMEOUT", blockedBy: [{ path: site.inside("") }] });
  });

  it("is named in the error of the request that it refuses, with all that is known of it", async () => {
    const locks = await site.open();
    foreignLock(site.inside("dir"), "T", 1000);
    const error: unknown = await locks.acquire("dir/sub").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "LOCK_TIMEOUT", path: "dir/sub", waitedMs: 0 });
    expect(error).toHaveProperty("message", expect.stringContaining(site.inside("dir")));
    const holder = { id: "9b2f0d6e-foreign", host: "", pid: 0, state: "alive" };
    expect(error).toMatchObject({ blockedBy: [{ path: "dir/.path.ovlock", mode: "tree", shared: false, holder }] });
    // Nothing of the attempt is left, neither in the table nor on the disk.
    expect(await locks.list()).toEqual([]);
    expect(site.lockFiles()).toEqual(["dir/.path.ovlock"]);
  });

  it("is waited for until the time-out and no longer", async () => {
    const locks = await site.open();
    foreignLock(site.beside("a"));
    await expect(locks.acquire("a", { timeoutMs: 200 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: 200 });
    const waiting = locks.acquire("a", { timeoutMs: 10_000 });
    // Until it waits. If it does not yet, it gets the lock at once, which is right as well.
    await pause(100);
    await rm(site.beside("a"));
    await using _hold = await waiting;
    expect(tokenAt(site.beside("a"))).toMatch(/^holdfast\./);
  });

  it("is waited for until the signal or the end of the locks", async () => {
    const locks = await site.open();
    foreignLock(site.beside("a"));
    const reason = new Error("enough");
    const cancel = new AbortController();
    const cancelled = locks.acquire("a", { timeoutMs: Infinity, signal: cancel.signal });
    // Time passes: so that it waits by then. Otherwise it is refused at once, which is right too.
    setTimeout(() => cancel.abort(reason), 50);
    await expect(cancelled).rejects.toBe(reason);
    const closed = locks.acquire("a", { timeoutMs: Infinity }).catch((thrown: unknown) => thrown);
    // The same.
    await pause(50);
    await locks.close();
    expect(await closed).toMatchObject({ code: "CLOSED" });
  });

  it("below refuses an upgrade, and the hold stays what it was", async () => {
    const locks = await site.open();
    await using hold = await locks.acquire("dir");
    foreignLock(site.beside("dir/file.txt"));
    await expect(hold.upgrade("tree", { timeoutMs: 100 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await hold.assertHeld();
    expect(hold.requests).toMatchObject([{ mode: "exact" }]);
    expect(tokenAt(site.inside("dir"))).toMatch(/:E$/);
  });

  it("may belong to another Holdfast whose root lies below ours", async () => {
    const [outer, inner] = [await site.open(), await site.open({}, site.at("dir"))];
    const hold = await inner.acquire("sub", { mode: "tree" });
    expect(await outer.tryAcquire("dir", { mode: "tree" })).toBe(undefined);
    await hold.release();
    await using _tree = await outer.acquire("dir", { mode: "tree" });
    expect(await inner.tryAcquire("file.txt")).toBe(undefined);
  });
});

describe("a stale foreign lock", () => {
  it("excludes no request and stays where it is, except at the name of our own lock file, which replaces it", async () => {
    const locks = await site.open();
    foreignLock(site.inside("dir"), "T", leaseMs + 1000);
    foreignLock(site.beside("dir/file.txt"), "E", leaseMs + 1000);
    const [above, there] = [tokenAt(site.inside("dir")), site.beside("dir/file.txt")];
    const hold = await locks.acquire("dir/file.txt");
    expect(tokenAt(there)).toMatch(/^holdfast\./);
    expect(tokenAt(site.inside("dir"))).toBe(above);
    await hold.release();
    expect(existsSync(there)).toBe(false);
  });

  it("may become stale while a request waits", async () => {
    const locks = await site.open({ leaseMs: shortLeaseMs });
    foreignLock(site.inside("dir"), "T", shortLeaseMs - 500);
    await using _hold = await locks.acquire("dir/sub", { timeoutMs: 10_000 });
    expect(tokenAt(site.inside("dir"))).toMatch(/^9b2f0d6e-foreign:/);
  });

  it("is also one with a time and no type, at any age", async () => {
    const locks = await site.open();
    writeFileSync(site.inside("dir"), `old:${nsIn(0)}`);
    await using _hold = await locks.acquire("dir/sub");
  });
});

describe("a lock file without a readable token", () => {
  const write: Readonly<Record<string, (file: string) => void>> = {
    empty: (file) => writeFileSync(file, ""),
    garbage: (file) => writeFileSync(file, "\0\u{fffd}garbage\n:::"),
    "of a gigabyte": (file) => {
      writeFileSync(file, "");
      truncateSync(file, 2 ** 30);
    },
    "of a negative time": (file) => writeFileSync(file, `h:-${nsIn(0)}:T`),
    "of a time two leases ahead": (file) => writeFileSync(file, `h:${nsIn(2 * leaseMs)}:T`),
    "of a time after the end of all dates": (file) => writeFileSync(file, `h:${"9".repeat(39)}:T`),
    "a pipe": (file) => execFileSync("/bin/sh", ["-c", 'mkfifo "$0"', file]),
  };

  it.each(Object.keys(write))("(%s) counts until it has not changed for a lease", async (kind) => {
    const locks = await site.open();
    const file = site.inside("dir");
    write[kind]?.(file);
    await expect(locks.acquire("dir/sub")).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await age(file, leaseMs + 1000);
    await using _below = await locks.acquire("dir/sub");
    await using _there = await locks.acquire("dir");
    expect(tokenAt(file)).toMatch(/^holdfast\./);
  });

  it("and was made in the future counts for no longer than a lease of our own clock", async () => {
    const locks = await site.open({ leaseMs: shortLeaseMs });
    const file = site.inside("dir");
    writeFileSync(file, "");
    await age(file, -1e9);
    expect(await locks.tryAcquire("dir/sub")).toBe(undefined);
    // Until the lease is over.
    await pause(shortLeaseMs + 100);
    expect(await locks.tryAcquire("dir/sub")).not.toBe(undefined);
  });

  it("but changes all the time counts all the time", async () => {
    const locks = await site.open({ leaseMs: shortLeaseMs });
    const file = site.inside("dir");
    for (const untilMs = Date.now() + 2 * shortLeaseMs; Date.now() < untilMs; await pause(shortLeaseMs / 5)) {
      writeFileSync(file, `h:${nsIn(1e9)}:T`);
      expect(await locks.tryAcquire("dir/sub")).toBe(undefined);
    }
    expect(readFileSync(file, "utf8")).toMatch(/^h:/);
  });
});
