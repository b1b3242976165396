// Path locks on the real disk and in memory: the promises of the interface, one by one.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Ground } from "../../src/durable/ground.ts";
import { TablePathLocks } from "../../src/locks/table-path-locks.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";

let root: string;
let opened: TablePathLocks[];

async function open(options: { leaseMs?: number; timeoutMs?: number } = {}): Promise<TablePathLocks> {
  const { leaseMs = 30_000, timeoutMs } = options;
  const ground = await Ground.open(await openNodePorts(root), `${root}/.holdfast`, { leaseMs });
  const locks = await TablePathLocks.open(ground, { root, timeoutMs, ownsGround: true });
  opened.push(locks);
  return locks;
}

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "holdfast-locks-"));
  opened = [];
});
afterEach(async () => {
  for (const locks of opened) await locks.close();
  await rm(root, { recursive: true, force: true });
});

describe("path locks", () => {
  it("give a path to one holder at a time", async () => {
    const [a, b] = [await open(), await open()];
    const hold = await a.acquire("x");
    expect(await b.tryAcquire("x")).toBe(undefined);
    await hold.release();
    const next = await b.tryAcquire("x");
    expect(next?.fence).toBeGreaterThan(hold.fence);
  });

  it("hand over to the one who waits", async () => {
    const [a, b] = [await open(), await open()];
    const hold = await a.acquire("x");
    const waiting = b.acquire("x", { timeoutMs: 5000 });
    await hold.release();
    expect((await waiting).fence).toBeGreaterThan(hold.fence);
  });
});
