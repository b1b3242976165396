// Locks on a disk whose calls take time, like those of a share: then most things happen between two
// calls.
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { HoldfastError } from "../../src/errors.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { changedDisk } from "../sites/disks.ts";
import { LocksWorld } from "../sites/path-locks.ts";

const callMs = 15;
let world: LocksWorld;

beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

function slowly(ports: Ports): Ports {
  const late =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      // Time passes: that is what makes it slow.
      await sleep(callMs);
      return await call(...args);
    };
  const disk = changedDisk(ports.disk, (real): Partial<Disk> => ({
    volume: { kind: "network", type: "nfs4", mountOptions: ["vers=4.2", "hard"] },
    createFile: late((path, bytes, options) => real.createFile(path, bytes, options)),
    readFile: late((path, bytesMax) => real.readFile(path, bytesMax)),
    link: late((from, to) => real.link(from, to)),
    list: late((path) => real.list(path)),
  }));
  return { ...ports, disk };
}

async function codeOf(action: Promise<unknown>): Promise<string | undefined> {
  return await action.then(
    () => undefined,
    (error: unknown) => (error as HoldfastError).code,
  );
}

it("of two readers that both upgrade only one is refused, though both look before either has announced it", async () => {
  const [a, b] = [await world.open({ tamper: slowly }), await world.open({ tamper: slowly })];
  const holds = [await a.acquire("x", { shared: true }), await b.acquire("x", { shared: true })];
  const answers = await Promise.all(
    holds.map(async (hold) => {
      const code = await codeOf(hold.upgrade({ shared: false }, { timeoutMs: 20_000 }));
      if (code !== undefined) await hold.release();
      return code ?? "upgraded";
    }),
  );
  expect(answers.sort()).toEqual(["DEADLOCK", "upgraded"]);
});

it("a caller that is acquiring when the locks are closed gets CLOSED, at whatever call it is", async () => {
  const other = await world.open();
  const hold = await other.acquire("x");
  for (let waitedMs = 0; waitedMs <= 8 * callMs; waitedMs += callMs) {
    const locks = await world.open({ tamper: slowly });
    const waiting = codeOf(locks.acquire("x", { timeoutMs: 20_000 }));
    // Time passes: it is at another call each time.
    await sleep(waitedMs);
    await locks.close();
    expect(await waiting, `after ${waitedMs} ms`).toBe("CLOSED");
  }
  await hold.release();
});
