// A sync behind which no caller waits: without the pool as long as the device is quick, and never
// where a call must not block.
import { openSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { blockingCalls, pooledCalls, type FileCalls } from "../../src/ports/node/disk/file-calls.ts";
import { FileSync } from "../../src/ports/node/disk/file-sync.ts";
import { NodeFile } from "../../src/ports/node/disk/file.ts";
import { nfsCalls } from "../../src/ports/node/disk/nfs-calls.ts";
import { makeScratch } from "../sites/scratch.ts";

const alone = (): boolean => true;

/** A file on a device that takes as long as it is told, and the way that each sync took. */
class Device {
  readonly ways: string[] = [];
  tookMs = 0.2;
  #nowMs = 0;
  readonly #file = new FileSync(
    3,
    { fdatasync: async () => this.#take("pool"), fdatasyncAtOnce: () => this.#take("at once") },
    () => this.#nowMs,
  );

  async sync(times: number, isIdle?: () => boolean): Promise<void> {
    for (let n = 0; n < times; n++) await this.#file.run(isIdle);
  }

  #take(way: string): void {
    this.ways.push(way);
    this.#nowMs += this.tookMs;
  }
}

it("goes to the pool until the device has shown that it is quick", async () => {
  const device = new Device();
  await device.sync(5, alone);
  expect(device.ways).toEqual(["pool", "pool", "pool", "at once", "at once"]);
});

it("goes back to the pool when one has taken long, until the device is quick again", async () => {
  const device = new Device();
  await device.sync(3, alone);
  device.tookMs = 2;
  await device.sync(4, alone);
  device.tookMs = 0.2;
  await device.sync(4, alone);
  expect(device.ways.slice(3)).toEqual(["at once", "pool", "pool", "pool", "pool", "pool", "pool", "at once"]);
});

it("does not hold the way to the pool against the device", async () => {
  const device = new Device();
  device.tookMs = 0.8;
  await device.sync(5, alone);
  expect(device.ways).toEqual(["pool", "pool", "pool", "at once", "pool"]);
});

it("a sync goes to the pool for a caller that does not say that it is alone", async () => {
  const device = new Device();
  await device.sync(5);
  await device.sync(5, () => false);
  expect(new Set(device.ways)).toEqual(new Set(["pool"]));
});

it("a sync lets other callbacks run before it blocks, and goes to the pool when a caller has come", async () => {
  const device = new Device();
  await device.sync(3, alone);
  let others = 0;
  setImmediate(() => others++);
  await device.sync(1, () => others === 0);
  expect(device.ways).toEqual(["pool", "pool", "pool", "pool"]);
});

it("never blocks on a share", () => {
  expect(pooledCalls.fdatasyncAtOnce).toBeUndefined();
  expect(nfsCalls.fdatasyncAtOnce).toBeUndefined();
});

it("tells a failure as the pool does", async () => {
  const fails = Object.assign(new Error("EIO"), { code: "EIO" });
  const calls: FileCalls = {
    ...blockingCalls,
    fdatasync: () => Promise.reject(fails),
    fdatasyncAtOnce: () => {
      throw fails;
    },
  };
  const path = join(makeScratch(), "a");
  const file = new NodeFile(path, openSync(path, "w+"), calls);
  await expect(file.sync({ isIdle: alone })).rejects.toMatchObject({ code: "IO_ERROR", errno: "EIO" });
  await file.close();
});
