// Waiting for a semaphore: whose turn it is, when it ends, and what the one is told who waited in
// vain.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path/posix";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { parseLockFile, Semaphore } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { nextTurn } from "../waiting.ts";
import { SemaphoreWorld } from "./semaphore-world.ts";

function newPath(): string {
  return join(makeScratch(), "job.lock");
}

const foreignLock = (): string => `pid=4711\ntimestamp=${Math.floor(Date.now() / 1000)}\ntag=nightly\n`;
const failureOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => "no error", (error: unknown) => error); // prettier-ignore

describe("the callers of one process", () => {
  it("take turns in the order in which they came, through one semaphore or several", async () => {
    const path = newPath();
    const semaphores = Array.from({ length: 4 }, () => new Semaphore(path, { fsync: false }));
    // Each has resolved the path before any of them queues.
    for (const semaphore of semaphores) await semaphore.status();
    const first = await semaphores[0]!.acquire();
    const order: number[] = [];
    let inside = 0;
    const waiting = Array.from({ length: 12 }, async (_, index) => {
      await using _hold = await semaphores[index % 4]!.acquire();
      expect(++inside).toBe(1);
      order.push(index);
      await nextTurn();
      inside--;
    });
    await first.release();
    await Promise.all(waiting);
    expect(order).toEqual(Array.from({ length: 12 }, (_, index) => index));
    expect(existsSync(path)).toBe(false);
  });

  it("pass the lock on at once, without waiting for a poll", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path, { retryMs: 60_000 });
    const first = await semaphore.acquire();
    const second = semaphore.acquire();
    await first.release();
    await (await second).release();
  });

  it("leave the line when they give up, and the next one has its turn", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path, { retryMs: 60_000 });
    const hold = await semaphore.acquire();
    const impatient = failureOf(semaphore.acquire({ timeoutMs: 20 }));
    const patient = semaphore.acquire();
    expect(await impatient).toMatchObject({ code: "LOCK_TIMEOUT" });
    await hold.release();
    await (await patient).release();
  });

  it("get on when the one before them has lost its lock", async () => {
    const world = await SemaphoreWorld.make();
    const semaphore = world.semaphore("ada");
    const hold = await semaphore.acquire();
    const next = semaphore.acquire();
    await world.ports("setup").disk.unlink("/shared/job.lock");
    await world.advance(6_000);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    await (await next).release();
  });
});

describe("a lock that another process holds", () => {
  it("is noticed at once when it is released on this machine, long before the next poll", async () => {
    const path = newPath();
    writeFileSync(path, foreignLock());
    const waiting = new Semaphore(path, { retryMs: 60_000 }).acquire({ timeoutMs: 20_000 });
    // Time passes: so that it waits by then. Otherwise it gets the lock at once, right too.
    await sleep(200);
    rmSync(path);
    await (await waiting).release();
  });

  it("is noticed by polling where no hint comes", async () => {
    const world = await SemaphoreWorld.make();
    const hold = await world.semaphore("ada").acquire();
    const waiting = world.semaphore("bob", { retryMs: 1000 }).acquire();
    await world.advance(10_000);
    const looks = world.calls.filter(({ process, what }) => process === "bob" && what.startsWith("read")).length;
    expect(looks).toBeGreaterThan(6);
    expect(looks).toBeLessThan(20);
    await hold.release();
    await world.advance(1_600);
    await (await waiting).release();
  });

  it("is stamped with the time when it was got, not when the wait began", async () => {
    const world = await SemaphoreWorld.make();
    const hold = await world.semaphore("ada").acquire();
    const waiting = world.semaphore("bob").acquire();
    await world.advance(1_000_000);
    await hold.release();
    await world.advance(1_000);
    const { info, acquiredAt } = await waiting;
    expect(world.nowSeconds() - info.timestamp).toBeLessThan(2);
    expect(world.nowMs - acquiredAt.getTime()).toBeLessThan(2000);
    expect(parseLockFile(world.text() ?? "")).toEqual(info);
  });

  it("is looked at once more when the watch has begun: a release just before it is not missed", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(`pid=4711\ntimestamp=${world.nowSeconds()}\n`);
    const watch = {
      start: () => {
        // Just before the watch begins, so that no hint tells of it.
        world.server.unlink(world.server.entry("/shared/job.lock", "unlink"));
        return () => undefined;
      },
    };
    const next = await world.semaphore("bob", { retryMs: 60_000 }, { watch }).acquire();
    expect(parseLockFile(world.text() ?? "")).toEqual(next.info);
  });
});

describe("a wait in vain", () => {
  it("ends with LOCK_TIMEOUT, which tells who holds the lock, since when, and how long was waited", async () => {
    const path = newPath();
    writeFileSync(path, foreignLock());
    const error = await failureOf(new Semaphore(path).acquire({ timeoutMs: 150 }));
    expect(error).toMatchObject({
      code: "LOCK_TIMEOUT",
      action: "retry",
      path,
      blockedBy: [
        { path, mode: "exact", shared: false, tag: "nightly", holder: { pid: 4711, state: "alive" }, since: expect.any(Date) as Date },
      ], // prettier-ignore
      message: expect.stringMatching(/held by process 4711 since .* \("nightly"\)/) as string,
    });
    expect((error as { waitedMs: number }).waitedMs).toBeGreaterThanOrEqual(150);
    expect(readFileSync(path, "utf8")).toContain("pid=4711");
  });

  it("names the host and proves the life of a holder of ours, and says nothing of what cannot be read", async () => {
    const path = newPath();
    const holder = new Semaphore(path);
    const hold = await holder.acquire();
    expect(await failureOf(new Semaphore(path).acquire({ timeoutMs: 20 }))).toMatchObject({
      blockedBy: [
        { holder: { pid: process.pid, id: expect.stringMatching(/^[0-9a-z]{26}$/) as string, state: "alive" } },
      ],
    });
    await hold.release();
    writeFileSync(path, "garbage");
    expect(await failureOf(new Semaphore(path).acquire({ timeoutMs: 0 }))).toMatchObject({
      code: "LOCK_TIMEOUT",
      waitedMs: 0,
      blockedBy: [],
      message: expect.stringContaining("no readable record") as string,
    });
  });

  it("of 0 ms tries once, and gets what is free or stale", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    const hold = await semaphore.acquire({ timeoutMs: 0 });
    expect(await failureOf(semaphore.acquire({ timeoutMs: 0 }))).toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: 0 });
    expect(await failureOf(semaphore.acquire({ timeoutMs: -5 }))).toMatchObject({ code: "LOCK_TIMEOUT" });
    await hold.release();
    writeFileSync(path, "pid=4711\ntimestamp=0\n");
    await (await semaphore.acquire({ timeoutMs: 0 })).release();
  });
});

describe("an aborted wait", () => {
  it("rejects with the signal's reason, before anything is touched or while it waits", async () => {
    const path = newPath();
    writeFileSync(path, foreignLock());
    const semaphore = new Semaphore(path);
    const reason = new Error("not needed any more");
    await expect(semaphore.acquire({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const abort = new AbortController();
    const waiting = failureOf(semaphore.acquire({ signal: abort.signal }));
    const inLine = failureOf(semaphore.acquire({ signal: abort.signal }));
    // Time passes: so that both wait by then. Otherwise they are refused at once, right too.
    await sleep(50);
    abort.abort(reason);
    expect(await waiting).toBe(reason);
    expect(await inLine).toBe(reason);
    // And it is out of the line.
    rmSync(path);
    await (await semaphore.acquire({ timeoutMs: 1000 })).release();
  });

  it("holds nothing, even if it got the lock in the same moment", async () => {
    const world = await SemaphoreWorld.make();
    const { disk } = world.ports("ada");
    const [link, abort, reason] = [disk.link.bind(disk), new AbortController(), new Error("not needed any more")];
    disk.link = async (from, to) => {
      await link(from, to);
      abort.abort(reason);
    };
    expect(await failureOf(world.semaphore("ada").acquire({ signal: abort.signal }))).toBe(reason);
    expect(world.text()).toBe(undefined);
  });
});

describe("a holder", () => {
  it("learns in the background that its lock was removed or replaced", async () => {
    for (const replacement of [undefined, "pid=4711\ntimestamp=5\n", ""]) {
      const world = await SemaphoreWorld.make();
      const hold = await world.semaphore("ada").acquire();
      const seen: unknown[] = [];
      hold.signal.addEventListener("abort", () => seen.push(hold.signal.reason));
      await world.advance(60_000);
      expect(hold.signal.aborted).toBe(false);
      await world.ports("setup").disk.unlink("/shared/job.lock");
      if (replacement !== undefined) await world.plant(replacement);
      await world.advance(6_000);
      expect(seen).toMatchObject([{ code: "LOCK_LOST", path: "/shared/job.lock" }]);
      await hold.release();
      expect(world.text()).toBe(replacement);
    }
  });

  it("takes a disk that does not answer for no proof of anything", async () => {
    const world = await SemaphoreWorld.make();
    const hold = await world.semaphore("ada").acquire();
    await world.withFault({ process: "ada", at: "read", label: "EIO", lasting: true }, () => world.advance(60_000));
    expect(hold.signal.aborted).toBe(false);
    await world.advance(6_000);
    await hold.release();
    expect(hold.signal.aborted).toBe(false);
  });

  it("does not keep its process alive, and asks for no looks when it is over", async () => {
    const world = await SemaphoreWorld.make();
    const hold = await world.semaphore("ada").acquire();
    await hold.release();
    const before = world.calls.length;
    await world.advance(100_000);
    expect(world.calls.slice(before).filter(({ what }) => !what.startsWith("sleep"))).toEqual([]);
  });
});
