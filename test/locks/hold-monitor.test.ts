// The monitor of the holds of a process: when a hold learns that it is over, and what is left of it
// then.
import { getEventListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { changedDisk } from "../sites/disks.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

describe("the signal of a hold", () => {
  it("is aborted for a caller that looks at it after a sleep past the lease, before any timer has fired", async () => {
    let lateMs = 0;
    const tamper = (ports: Ports): Ports => ({
      ...ports,
      clock: { ...ports.clock, monotonicMs: () => ports.clock.monotonicMs() + lateMs },
    });
    const locks = await world.open({ tamper });
    const hold = await locks.acquire("x");
    expect(hold.signal.aborted).toBe(false);
    lateMs = 60_000;
    expect(hold.signal.aborted).toBe(true);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST" });
  });

  it("aborts as soon as the session of its process is over", async () => {
    const heart = {
      start: () => {
        throw new Error("It does not beat.");
      },
    };
    const locks = await world.open({ leaseMs: 600, tamper: (ports) => ({ ...ports, heart }) });
    const life = await locks.table.ground.session();
    const hold = await locks.acquire("x");
    const { signal } = hold;
    const order: string[] = [];
    signal.addEventListener("abort", () => order.push("hold"));
    await new Promise((resolve) => life.signal.addEventListener("abort", resolve));
    order.push("after the life");
    expect(order).toEqual(["hold", "after the life"]);
    expect(getEventListeners(life.signal, "abort").length).toBeLessThan(10);
  });
});

describe("a hold that ends without its owner aborts its signal", () => {
  it("when the hold is collected and its owner kept the signal", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    const warnings: string[] = [];
    const host = (ports: Ports): Ports["host"] => ({ ...ports.host, warn: (message) => warnings.push(message) });
    const locks = await world.open({ tamper: (ports) => ({ ...ports, host: host(ports) }) });
    const start = async (): Promise<AbortSignal> => (await locks.acquire("x")).signal;
    const [signal, other] = [await start(), await world.open()];
    let isAborted = false;
    signal.addEventListener("abort", () => (isAborted = true));
    await vi.waitFor(
      () => {
        collectGarbage();
        expect(isAborted).toBe(true);
      },
      { timeout: 20_000 },
    );
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST" });
    await (await other.acquire("x", { timeoutMs: 20_000 })).release();
    expect(warnings.length).toBeGreaterThan(0);
  });

  it("when the locks are closed, before another is let in, and also that of a hold within it", async () => {
    const [locks, other] = [await world.open(), await world.open()];
    const outer = await locks.acquire("x", { mode: "tree" });
    const holds = [outer, await locks.acquire("x/y", { within: outer }), await locks.acquire("z", { within: outer })];
    const order: string[] = [];
    for (const { signal } of holds) signal.addEventListener("abort", () => order.push("told"));
    const next = other.acquireAll(["x", "x/y", "z"], { timeoutMs: 20_000 }).then(() => order.push("let in"));
    await locks.close();
    await next;
    expect(order).toEqual(["told", "told", "told", "let in"]);
    for (const { signal } of holds) expect(signal.reason).toMatchObject({ code: "LOCK_LOST" });
  });

  it("also when the signal is first asked for after the locks were closed", async () => {
    const locks = await world.open();
    const hold = await locks.acquire("x");
    await locks.close();
    expect(hold.signal.aborted).toBe(true);
    await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  it("but not when its owner released it before", async () => {
    const locks = await world.open();
    const hold = await locks.acquire("x");
    const { signal } = hold;
    await hold.release();
    await locks.close();
    expect(signal.aborted).toBe(false);
  });
});

it("a hold goes on when its transfer has failed, however long that took", async () => {
  const disk = (ports: Ports): Ports["disk"] =>
    changedDisk(ports.disk, (real) => ({
      createFile: async (path, bytes, options) => {
        if (!path.endsWith(".transfer")) return await real.createFile(path, bytes, options);
        // Time passes: longer than a round of the monitor.
        await sleep(2200);
        throw diskError("EIO", "create", path);
      },
    }));
  const locks = await world.open({ tamper: (ports) => ({ ...ports, disk: disk(ports) }) });
  const hold = await locks.acquire("x");
  await expect(hold.transfer()).rejects.toMatchObject({ code: "IO_ERROR" });
  await hold.assertHeld();
  const lost = new Promise((resolve) => hold.signal.addEventListener("abort", resolve));
  await (await world.open()).break("x");
  await lost;
});

describe("idleMs", () => {
  it("does not depend on the wall clock", async () => {
    let behindMs = 0;
    const tamper = (ports: Ports): Ports => ({
      ...ports,
      clock: { ...ports.clock, wallMs: () => ports.clock.wallMs() - behindMs },
    });
    const locks = await world.open({ leaseMs: 300_000, tamper });
    const hold = await locks.acquire("x", { idleMs: 200 });
    const lost = new Promise((resolve) => hold.signal.addEventListener("abort", resolve));
    behindMs = 3_600_000;
    await lost;
    behindMs = 0;
    const other = await locks.acquire("y", { idleMs: 60_000 });
    // Less than what would end the session.
    behindMs = -100_000;
    const short = await locks.acquire("z", { idleMs: 100 });
    await new Promise((resolve) => short.signal.addEventListener("abort", resolve));
    await other.assertHeld();
    await other.release();
  });

  it("leaves nothing behind of a hold that was released", async () => {
    let sleeping = 0;
    const tamper = (ports: Ports): Ports => ({
      ...ports,
      clock: {
        ...ports.clock,
        sleep: async (ms, options) => {
          if (ms === 3_600_000) sleeping++;
          try {
            await ports.clock.sleep(ms, options);
          } finally {
            if (ms === 3_600_000) sleeping--;
          }
        },
      },
    });
    const locks = await world.open({ tamper });
    const hold = await locks.acquire("x", { idleMs: 3_600_000 });
    expect(sleeping).toBe(1);
    await hold.release();
    await vi.waitFor(() => expect(sleeping).toBe(0));
  });
});
