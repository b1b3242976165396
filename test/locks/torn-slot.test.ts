// A disk that was pulled and put back in the same boot is another device: a slot that was not on it
// yet is torn, and the heartbeat of a holder has another identity than its record says.
import { copyFile, readdir, rename, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Ports } from "../../src/ports/ports.ts";
import { startChild, type Child } from "../durable/child.ts";
import { LocksWorld } from "../sites/path-locks.ts";

const locksModule = new URL("../../dist/locks/index.js", import.meta.url).href;
/** Longer than any test waits. */
const longLeaseMs = 300_000;

let world: LocksWorld;
beforeEach(async () => void (world = await LocksWorld.make()));
afterEach(() => world.end());

async function startHolder(leaseMs: number): Promise<Child> {
  const child = startChild(
    `
    const { openPathLocks } = await import(${JSON.stringify(locksModule)});
    const locks = await openPathLocks(args[0], { leaseMs: ${leaseMs} });
    const hold = await locks.acquire("till.txt");
    say("held");
    await told.next();`,
    world.root,
  );
  expect(await child.hear()).toBe("held");
  return child;
}

/** Half of the newest slot did not reach the disk. */
async function tearSlot(): Promise<void> {
  const table = join(world.root, ".holdfast/table");
  const [epoch = ""] = (await readdir(table)).filter((name) => name !== "epochs");
  const slot =
    (await readdir(join(table, epoch)))
      .filter((name) => name !== "open")
      .sort()
      .at(-1) ?? "";
  const path = join(table, epoch, slot);
  await truncate(path, Math.floor((await stat(path)).size / 2));
}

async function changeIdentities(): Promise<void> {
  const holders = join(world.root, ".holdfast/holders");
  for (const name of (await readdir(holders)).filter((each) => each.endsWith(".beat"))) {
    await copyFile(join(holders, name), join(holders, "copy"));
    await rename(join(holders, "copy"), join(holders, name));
  }
}

const fromAnotherContainer = (ports: Ports): Ports => ({ ...ports, host: { ...ports.host, processSpace: "another" } });

describe("a lock table that came back with a torn slot", () => {
  it("goes on at once when the process table says that the holder is gone", async () => {
    const child = await startHolder(longLeaseMs);
    await child.end("SIGKILL");
    await tearSlot();
    await changeIdentities();
    const locks = await world.open();
    await (await locks.acquire("till.txt")).release();
  });

  it("goes on after the lease of the holder where no process table knows it", { timeout: 60_000 }, async () => {
    const leaseMs = 1000;
    const child = await startHolder(leaseMs);
    await child.end("SIGKILL");
    await tearSlot();
    await changeIdentities();
    const startMs = performance.now();
    const locks = await world.open({ tamper: fromAnotherContainer });
    await (await locks.acquire("till.txt")).release();
    expect(performance.now() - startMs).toBeGreaterThan(0.9 * leaseMs);
  });

  it.each([
    ["of this process table", (ports: Ports): Ports => ports],
    ["of another one", fromAnotherContainer],
  ])("is damaged while the holder lives, a process %s", { timeout: 60_000 }, async (_, tamper) => {
    const child = await startHolder(1000);
    await tearSlot();
    await expect(world.open({ tamper }).then((locks) => locks.acquire("till.txt"))).rejects.toMatchObject({
      code: "CORRUPT",
    });
    await child.end("SIGKILL");
  });

  // The hold file of a transferred hold has the name of the process that acquired it, and that one was gone.
  it("is damaged while the process lives that has received a hold", { timeout: 60_000 }, async () => {
    const [giver, receiver] = [await world.open(), await world.open()];
    const hold = await receiver.receive(await (await giver.acquire("till.txt")).transfer());
    await giver.close();
    await tearSlot();
    await expect(world.open().then((locks) => locks.acquire("till.txt"))).rejects.toMatchObject({ code: "CORRUPT" });
    await hold.release().catch(() => undefined);
    expect((await readdir(join(world.root, ".holdfast/holds"))).filter((name) => name.endsWith(".received"))).toEqual(
      [],
    );
  });
});
