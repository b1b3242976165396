// The store lock between machines, on a simulated network mount: excluded by a lock in a table,
// held as long as its holder shows that it lives.
import { beforeEach, describe, expect, it } from "vitest";
import type { Hold } from "../../src/common.ts";
import { createStoreLock, type StoreLock } from "../../src/locks/store/store-lock.ts";
import { nfs, World } from "../sites/world.ts";
import { keep } from "./keep.ts";

let world: World;

beforeEach(() => {
  world = new World({ volume: nfs });
});

const open = (process: string, machine: string, beatsMax?: number): Promise<StoreLock> =>
  createStoreLock(world.ports(process, machine, beatsMax), "/shop");

/** What became of a promise up to now. */
function follow<T>(promise: Promise<T>): { result?: T; error?: unknown; atMs?: number } {
  const followed: { result?: T; error?: unknown; atMs?: number } = {};
  promise.then(
    (result) => Object.assign(followed, { result, atMs: world.nowMs }),
    (error: unknown) => Object.assign(followed, { error, atMs: world.nowMs }),
  );
  return followed;
}

describe("between machines, a store lock", () => {
  it("excludes, names its holder to a waiter that times out, and passes to the next waiter", async () => {
    const [ada, bob] = [await open("ada", "one"), await open("bob", "two")];
    const hold = await ada.acquire();
    expect(await bob.tryAcquire()).toBe(undefined);
    const late = follow(bob.acquire());
    const startMs = world.nowMs;
    await world.advance(4999);
    expect(late).toEqual({});
    await world.advance(10_000);
    expect(late.error).toMatchObject({
      code: "LOCK_TIMEOUT",
      path: "/shop/.store.lock",
      waitedMs: 5000,
      blockedBy: [{ holder: { host: "one", state: "alive" } }],
    });
    expect((late.atMs ?? 0) - startMs).toBeLessThan(5500);
    for (const told of ["/shop/.store.lock", "5000 ms", "timeoutMs", "on one"])
      expect((late.error as Error).message).toContain(told);
    const next = follow(bob.acquire());
    await world.advance(1000);
    expect(next).toEqual({});
    await hold.release();
    await world.advance(1000);
    expect(next.result).toBeDefined();
    expect(await ada.tryAcquire()).toBe(undefined);
    await next.result?.release();
  });

  it("is served in the order in which the machines asked", async () => {
    const locks = [await open("ada", "one"), await open("bob", "two"), await open("cleo", "three")];
    const hold = await (await open("dan", "four")).acquire();
    const order: number[] = [];
    const enter = async (lock: StoreLock, index: number): Promise<void> => {
      await using _hold = await lock.acquire({ timeoutMs: 600_000 });
      order.push(index);
    };
    const done: Promise<void>[] = [];
    for (const [index, lock] of locks.entries()) {
      done.push(enter(lock, index));
      await world.advance(500);
    }
    await hold.release();
    await world.advance(10_000);
    await Promise.all(done);
    expect(order).toEqual([0, 1, 2]);
  });

  it("is free within moments when its holder on the same machine was killed", async () => {
    const [ada, bob] = [await open("ada", "one"), await open("bob", "one")];
    await keep(ada.acquire());
    const waiting = follow(bob.acquire());
    await world.advance(1000);
    expect(waiting).toEqual({});
    world.kill("ada");
    await world.advance(1000);
    expect(waiting.result).toBeDefined();
    await waiting.result?.release();
  });

  it("is free after a lease when its holder on another machine was killed, and not before", async () => {
    const [ada, bob] = [await open("ada", "one"), await open("bob", "two")];
    await keep(ada.acquire());
    const waiting = follow(bob.acquire({ timeoutMs: 600_000 }));
    await world.advance(60_000);
    expect(waiting).toEqual({});
    world.kill("ada");
    await world.advance(20_000);
    expect(waiting).toEqual({});
    await world.advance(25_000);
    expect(waiting.result).toBeDefined();
    await waiting.result?.release();
  });

  it("stays with a holder that works for many leases", async () => {
    const [ada, bob] = [await open("ada", "one"), await open("bob", "two")];
    const hold = await ada.acquire();
    const waiting = follow(bob.acquire({ timeoutMs: 600_000 }));
    await world.advance(300_000);
    expect(waiting).toEqual({});
    expect(hold.signal.aborted).toBe(false);
    await hold.release();
    await world.advance(1000);
    expect(waiting.result).toBeDefined();
  });

  it("is lost by a holder that cannot show that it lives, and the holder knows before another gets it", async () => {
    // Its heart never beats.
    const [ada, bob] = [await open("ada", "one", 0), await open("bob", "two")];
    const hold: Hold = await ada.acquire();
    const lost: number[] = [];
    hold.signal.addEventListener("abort", () => lost.push(world.nowMs));
    const waiting = follow(bob.acquire({ timeoutMs: 600_000 }));
    await world.advance(60_000);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    expect(waiting.result).toBeDefined();
    expect(lost[0]).toBeLessThan(waiting.atMs ?? 0);
    // Releasing a lost lock is no error, and takes nothing from its new holder.
    await hold.release();
    expect(await (await open("cleo", "three")).tryAcquire()).toBe(undefined);
  });

  it("is released when it is closed, and nothing of its holder stays", async () => {
    const [ada, bob] = [await open("ada", "one"), await open("bob", "two")];
    await keep(ada.acquire());
    const waiting = follow(bob.acquire());
    await world.advance(100);
    await ada.close();
    await world.advance(1000);
    expect(waiting.result).toBeDefined();
    await bob.close();
    const left = Object.keys(world.tree("/shop")).filter((path) => /\/(holders|holds|temp)\/./.test(path));
    expect(left).toEqual([]);
  });

  it("rejects a wait whose signal aborts, and leaves no waiter in the queue", async () => {
    const [ada, bob, cleo] = [await open("ada", "one"), await open("bob", "two"), await open("cleo", "three")];
    const hold = await ada.acquire();
    const controller = new AbortController();
    const gone = follow(bob.acquire({ signal: controller.signal, timeoutMs: 600_000 }));
    await world.advance(1000);
    const waiting = follow(cleo.acquire({ timeoutMs: 600_000 }));
    await world.advance(1000);
    controller.abort("enough");
    await world.advance(1);
    expect(gone.error).toBe("enough");
    await hold.release();
    await world.advance(1000);
    expect(waiting.result).toBeDefined();
  });
});
