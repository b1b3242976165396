// The store lock on a real disk, with each kind of gate: the test list of the decision that it
// comes from, and what a caller may rely on.
import { existsSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path/posix";
import { describe, expect, it, vi } from "vitest";
import { openPathLocks, type BlockingLock, type StoreLock } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { makeSite, treeOf } from "./store-lock-site.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** What two busy cores may add to a wait. */
const toleranceMs = 3000;

/** What it rejected with, and how long that took. */
async function failureOf(action: Promise<unknown>): Promise<{ readonly error: unknown; readonly ms: number }> {
  const startMs = performance.now();
  const error: unknown = await action.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { error, ms: performance.now() - startMs };
}

describe.each(["os", "table"] as const)("a store lock whose gate is %s", (gate) => {
  it("is acquired when it is free, and is there on the disk", async () => {
    const { directory, open } = makeSite(gate);
    const lock = await open();
    expect(lock).toMatchObject({ gate, path: `${directory}/.store.lock` });
    const hold = await lock.acquire();
    if (gate === "os") expect(existsSync(lock.path)).toBe(true);
    else expect(Object.keys(treeOf(directory)).filter((path) => /\/holds\/./.test(path))).toHaveLength(1);
    expect(Math.abs(Date.now() - hold.acquiredAt.getTime())).toBeLessThan(60_000);
    expect(hold.signal.aborted).toBe(false);
    await hold.release();
    if (gate === "table") expect(Object.keys(treeOf(directory)).filter((path) => /\/holds\/./.test(path))).toEqual([]);
  });

  it("tells a waiter that times out the path, the time and the option, and not much later than asked", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open(), await open({ timeoutMs: 200 })];
    const hold = await lock.acquire();
    const { error, ms } = await failureOf(other.acquire());
    expect(error).toMatchObject({ code: "LOCK_TIMEOUT", action: "retry", path: lock.path, waitedMs: 200 });
    for (const told of [lock.path, "200 ms", "timeoutMs"]) expect((error as Error).message).toContain(told);
    expect(ms).toBeGreaterThanOrEqual(195);
    expect(ms).toBeLessThan(200 + toleranceMs);
    await hold.release();
  });

  it("tells a waiter that its own process is the holder, and since when, through whichever object it is held", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open(), await open()];
    await lock.withLock(async ({ acquiredAt }) => {
      for (const waiter of [lock, other])
        for (const timeoutMs of [0, 20]) {
          const { error } = await failureOf(waiter.acquire({ timeoutMs }));
          const holder = { pid: process.pid, host: hostname(), state: "alive" };
          expect(error).toMatchObject({ code: "LOCK_TIMEOUT", path: lock.path, waitedMs: timeoutMs });
          expect(error).toMatchObject({ blockedBy: [{ mode: "exact", holder, since: expect.any(Date) as Date }] });
          if (gate === "table") continue;
          const [blocking] = (error as { blockedBy: BlockingLock[] }).blockedBy;
          expect(blocking?.path).toBe(lock.path);
          // The file system stamps by a clock of its own, which ticks more slowly.
          expect(Math.abs(acquiredAt.getTime() - (blocking?.since.getTime() ?? 0))).toBeLessThan(100);
          expect((error as Error).message).toContain(`is held by this process, since ${blocking?.since.toISOString()}`);
        }
    });
    await (await other.acquire({ timeoutMs: 0 })).release();
  });

  it("names its holder while it is held, and none before and after", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open(), await open()];
    expect(await other.findHolder()).toBe(undefined);
    await lock.withLock(async () => {
      const holder = { pid: process.pid, host: hostname(), state: "alive" };
      for (const each of [lock, other]) expect(await each.findHolder()).toMatchObject({ path: lock.path, holder });
    });
    expect(await other.findHolder()).toBe(undefined);
  });

  it("proves to its holder that it is held, and that it is not after its release", async () => {
    const { open } = makeSite(gate);
    const hold = await (await open()).acquire();
    await hold.assertHeld();
    await hold.release();
    await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  it("takes the wait of a call before that of its opening, and does not wait when it is 0", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open(), await open({ timeoutMs: 60_000 })];
    const hold = await lock.acquire();
    for (const timeoutMs of [0, 50]) {
      const { error, ms } = await failureOf(other.acquire({ timeoutMs }));
      expect(error).toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: timeoutMs });
      expect(ms).toBeLessThan(timeoutMs + toleranceMs);
    }
    const waiting = other.acquire({ timeoutMs: undefined });
    await hold.release();
    await (await waiting).release();
  });

  it("can be acquired again as soon as it was released, however often that is said", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open(), await open()];
    for (const next of [lock, other, lock]) {
      const hold = await next.acquire({ timeoutMs: 0 });
      await hold.release();
      await hold.release();
      await hold[Symbol.asyncDispose]();
    }
    const hold = await lock.acquire({ timeoutMs: 0 });
    const before = await other.tryAcquire();
    expect(before).toBe(undefined);
    await hold.release();
  });

  it("answers tryAcquire with undefined at once, whichever process has it", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open(), await open()];
    const hold = await lock.tryAcquire();
    expect(hold).toBeDefined();
    for (const each of [lock, other]) expect(await each.tryAcquire()).toBe(undefined);
    await hold?.release();
    await (await other.tryAcquire())?.release();
  });

  it("rejects at once with the reason of a signal that was aborted before, free or not", async () => {
    const { open } = makeSite(gate);
    const lock = await open({ timeoutMs: 60_000 });
    const reason = new Error("enough");
    const signal = AbortSignal.abort(reason);
    expect((await failureOf(lock.acquire({ signal }))).error).toBe(reason);
    const hold = await lock.acquire();
    const { error, ms } = await failureOf(lock.acquire({ signal }));
    expect(error).toBe(reason);
    expect(ms).toBeLessThan(toleranceMs);
    await hold.release();
  });

  it("rejects with the reason of a signal that is aborted during the wait, and is as before", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open(), await open({ timeoutMs: 60_000 })];
    const hold = await lock.acquire();
    const controller = new AbortController();
    const reason = new Error("enough");
    const waiting = failureOf(other.acquire({ signal: controller.signal }));
    await turn();
    controller.abort(reason);
    const { error, ms } = await waiting;
    expect(error).toBe(reason);
    expect(ms).toBeLessThan(toleranceMs);
    await hold.release();
    await (await other.acquire({ timeoutMs: 10_000 })).release();
  });

  it("gives 100 appends of two instances 100 positions, without a gap, a double or one that overwrites another", async () => {
    const { directory, open } = makeSite(gate);
    const ledger = join(directory, "ledger");
    writeFileSync(ledger, "0");
    const append = async (lock: StoreLock, text: string): Promise<number> =>
      await lock.withLock(async () => {
        const position = Number(readFileSync(ledger, "utf8")) + 1;
        await turn();
        writeFileSync(join(directory, `event-${position}`), text);
        await turn();
        writeFileSync(ledger, String(position));
        return position;
      });
    const instances = [await open({ timeoutMs: 60_000 }), await open({ timeoutMs: 60_000 })];
    const texts = instances.flatMap((lock, instance) =>
      Array.from({ length: 50 }, (_, index) => ({ lock, text: `event ${index} of ${instance}` })),
    );
    const positions = await Promise.all(texts.map(({ lock, text }) => append(lock, text)));
    expect(positions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    texts.forEach(({ text }, index) =>
      expect(readFileSync(join(directory, `event-${positions[index]}`), "utf8")).toBe(text),
    );
  });

  it("lets one of two instances decide on what both have read", async () => {
    const { directory, open } = makeSite(gate);
    const instances = [await open(), await open()];
    const seats = join(directory, "seats");
    for (let round = 0; round < 10; round++) {
      writeFileSync(seats, "");
      const book = async (lock: StoreLock, name: string): Promise<boolean> =>
        await lock.withLock(async () => {
          if (readFileSync(seats, "utf8") !== "") return false;
          await turn();
          writeFileSync(seats, name);
          return true;
        });
      const booked = await Promise.all(instances.map((lock, index) => book(lock, `instance ${index}`)));
      expect(booked.filter(Boolean)).toHaveLength(1);
      expect(readFileSync(seats, "utf8")).toBe(`instance ${booked.indexOf(true)}`);
    }
  });

  it("is released after work under it in every case, and an error of the work arrives unchanged", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open(), await open()];
    const failure = new Error("the work failed");
    await expect(
      lock.withLock(async () => {
        throw failure;
      }),
    ).rejects.toBe(failure);
    expect(await other.withLock(async (hold) => hold.signal.aborted, { timeoutMs: 0 })).toBe(false);
  });

  it("rejects with CLOSED when it is closed, waiters included", async () => {
    const { open } = makeSite(gate);
    const [lock, other] = [await open({ timeoutMs: 60_000 }), await open()];
    const hold = await other.acquire();
    const waits = [lock.acquire(), lock.acquire()].map((wait) => failureOf(wait));
    await turn();
    await lock.close();
    for (const { error } of await Promise.all(waits)) expect(error).toMatchObject({ code: "CLOSED" });
    await expect(lock.acquire()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(lock.tryAcquire()).rejects.toMatchObject({ code: "CLOSED" });
    await lock[Symbol.asyncDispose]();
    await hold.release();
    await (await other.acquire({ timeoutMs: 0 })).release();
  });

  it("refuses a time-out that is not a number, before anything is written", async () => {
    const { directory, open } = makeSite(gate);
    const before = readdirSync(directory);
    await expect(open({ timeoutMs: NaN })).rejects.toThrow(RangeError);
    expect(readdirSync(directory)).toEqual(before);
    await expect((await open()).acquire({ timeoutMs: NaN })).rejects.toThrow(RangeError);
  });

  it("is independent of the path locks of the same directory, even of a lock on all of it", async () => {
    const { directory, open } = makeSite(gate);
    const lock = await open();
    await using paths = await openPathLocks(directory);
    const tree = await paths.acquire("", { mode: "tree" });
    const hold = await lock.acquire({ timeoutMs: 0 });
    expect(await paths.break("")).toHaveLength(1);
    expect(tree.signal.aborted).toBe(true);
    expect(await (await open()).tryAcquire()).toBe(undefined);
    await hold.release();
  });
});

it("a store lock whose gate is in a table releases it when it is closed", async () => {
  const { open } = makeSite("table");
  const [lock, other] = [await open(), await open()];
  await lock.acquire();
  await lock.close();
  await (await other.acquire({ timeoutMs: 0 })).release();
});

describe("a store lock whose lock files were deleted", () => {
  it.each([[[".store.lock"]], [[".store.next"]], [[".store.lock", ".store.next"]]])(
    "excludes as before, for processes that opened it earlier or later: %j",
    async (names) => {
      const { directory, open } = makeSite("os");
      const early = await open();
      await (await early.acquire()).release();
      for (let deletion = 0; deletion < 3; deletion++) {
        for (const name of names) unlinkSync(join(directory, name));
        const hold = await early.acquire({ timeoutMs: 0 });
        const late = await open();
        expect(await late.tryAcquire()).toBe(undefined);
        // In the turnstile, as the holder sees.
        const waiting = late.acquire({ timeoutMs: 60_000 });
        await vi.waitFor(async () => expect(await hold.isContended()).toBe(true));
        await hold.release();
        await (await waiting).release();
        await late.close();
      }
    },
  );

  it("tells its holder, which excludes others again once it takes the lock anew", async () => {
    const { directory, open } = makeSite("os");
    const [early, late] = [await open(), await open()];
    const hold = await early.acquire();
    const { signal, lockId } = hold;
    unlinkSync(join(directory, ".store.lock"));
    await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST", path: early.path });
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST" });
    await hold.release();
    const again = await early.acquire({ timeoutMs: 0 });
    await again.assertHeld();
    expect(lockId).not.toBe("");
    expect(await late.tryAcquire()).toBe(undefined);
    await again.release();
  });
});

it("a store lock makes its directory, and what is missing above it", async () => {
  const { openStoreLock } = await import("../../src/locks/index.ts");
  const directory = join(makeScratch(), "shop", "tickets");
  await using lock = await openStoreLock(directory);
  await (await lock.acquire()).release();
  expect(existsSync(join(directory, "gate.json"))).toBe(true);
});
