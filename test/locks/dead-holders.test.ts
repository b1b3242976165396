// Recovery from holders that died or stand still: many of them take as long as one.
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { PathHold } from "../../src/locks/path/path-hold.ts";
import type { TablePathLocks } from "../../src/locks/path/service.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { startChild, type Child } from "../durable/child.ts";
import { keep } from "./keep.ts";
import { LocksWorld, withDisk } from "../sites/path-locks.ts";

const locksModule = new URL("../../dist/locks/index.js", import.meta.url).href;
const untilDead = { mode: "tree", timeoutMs: 120_000 } as const;

/** A process that holds `count` paths below a/, and says "held" when it does. */
function startHolder(root: string, { name, count = 1, leaseMs = 30_000 }: HolderOptions): Child {
  return startChild(
    `
    const { openPathLocks } = await import(${JSON.stringify(locksModule)});
    const locks = await openPathLocks(args[0], { leaseMs: ${leaseMs} });
    const holds = [];
    for (let i = 0; i < ${count}; i++) holds.push(await locks.acquire("a/${name}-" + i));
    say("held");
    await told.next();
    for (const hold of holds) await hold.release();`,
    root,
  );
}

interface HolderOptions {
  readonly name: string;
  readonly count?: number;
  readonly leaseMs?: number;
}

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

async function appendsDuring(locks: TablePathLocks, work: () => Promise<unknown>): Promise<number> {
  const { number } = await locks.table.read();
  await work();
  return (await locks.table.read()).number - number;
}

describe("a waiter for a tree", () => {
  it("drops all locks of a killed process after one look, by one append", async () => {
    let looks = 0;
    const tamper = (ports: Ports): Ports => ({
      ...ports,
      osLock: {
        open: async (path) => {
          looks++;
          return await ports.osLock.open(path);
        },
      },
    });
    const locks = await world.open({ tamper });
    const child = startHolder(world.root, { name: "x", count: 50 });
    expect(await child.hear()).toBe("held");
    await child.end("SIGKILL");
    looks = 0;
    let hold: PathHold | undefined;
    // One append for its own request, and one that drops the fifty.
    expect(await appendsDuring(locks, async () => (hold = await locks.acquire("a", untilDead)))).toBe(2);
    // One look finds the process dead, and one is at all other blockers, of which there are none.
    expect(looks).toBeLessThanOrEqual(2);
    await hold?.release();
  });

  it("drops five killed processes as fast as one", async () => {
    const locks = await world.open();
    const children = ["v", "w", "x", "y", "z"].map((name) => startHolder(world.root, { name }));
    for (const child of children) expect(await child.hear()).toBe("held");
    for (const child of children) await child.end("SIGKILL");
    expect(await appendsDuring(locks, async () => (await locks.acquire("a", untilDead)).release())).toBe(2);
  });

  it("waits for one lease, however many processes stand still", { timeout: 60_000 }, async () => {
    const leaseMs = 1000;
    const others = await LocksWorld.make();
    onTestFinished(() => others.end());
    const [one, five] = [await world.open({ leaseMs }), await others.open({ leaseMs })];
    const lonely = [startHolder(world.root, { name: "u", leaseMs })];
    const crowd = ["v", "w", "x", "y", "z"].map((name) => startHolder(others.root, { name, leaseMs }));
    for (const child of [...lonely, ...crowd]) expect(await child.hear()).toBe("held");
    for (const child of [...lonely, ...crowd]) child.process.kill("SIGSTOP");
    // At the same time, on the same machine: what slows down one of them slows down the other.
    const [oneMs, fiveMs] = await Promise.all(
      [one, five].map(async (locks) => {
        const startMs = performance.now();
        await (await locks.acquire("a", untilDead)).release();
        return performance.now() - startMs;
      }),
    );
    expect(oneMs).toBeGreaterThan(0.5 * leaseMs);
    expect(fiveMs! / oneMs!).toBeLessThan(2.5);
  });

  it("looks often at the heartbeat of its last blocker, and seldom at those of the others", async () => {
    for (const name of ["v", "w", "x", "y", "z"]) await keep((await world.open()).acquire(`a/${name}`));
    const seen = new Map<string, number>();
    const locks = await world.open({
      tamper: withDisk((disk) => ({
        readFile: async (path, bytesMax) => {
          if (path.endsWith(".beat")) seen.set(path, (seen.get(path) ?? 0) + 1);
          return await disk.readFile(path, bytesMax);
        },
      })),
    });
    seen.clear();
    const waiting = locks.acquire("a", { mode: "tree", timeoutMs: Infinity }).catch((error: unknown) => error);
    while ([...seen.values()].reduce((sum, each) => sum + each, 0) < 4) await sleep(20);
    expect(seen.size).toBe(1);
    await locks.close();
    expect(await waiting).toMatchObject({ code: "CLOSED" });
  });
});
