// A sync blocks while the device is quick and the caller is alone, and never where a call must not block.
import { openSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { NodeDisk } from "../../src/ports/node/disk/disk.ts";
import { DiskSyncs } from "../../src/ports/node/disk/disk-syncs.ts";
import { blockingCalls, pooledCalls, type FileCalls } from "../../src/ports/node/disk/file-calls.ts";
import { NodeFile } from "../../src/ports/node/disk/file.ts";
import { nfsCalls } from "../../src/ports/node/disk/nfs-calls.ts";
import { smbCalls } from "../../src/ports/node/disk/smb-calls.ts";
import { makeScratch } from "../sites/scratch.ts";

/** A disk on a device that takes as long as it is told, and the way that each sync took. */
class Device {
  readonly ways: string[] = [];
  tookMs = 0.2;
  #nowMs = 0;
  readonly syncs: DiskSyncs = new DiskSyncs(
    {
      fsync: () => this.#takeInPool(),
      fsyncAtOnce: () => this.#take("at once"),
      fdatasync: () => this.#takeInPool(),
      fdatasyncAtOnce: () => this.#take("at once"),
    },
    () => this.#nowMs,
  );

  async sync(times: number, isIdle?: () => boolean): Promise<void> {
    for (let n = 0; n < times; n++) await this.syncs.run(3, { what: n % 2 === 0 ? "all" : "data", bytes: 0, isIdle });
  }

  async #takeInPool(): Promise<void> {
    this.#take("pool");
    await new Promise<void>((resolve) => setImmediate(resolve));
  }

  #take(way: string): void {
    this.ways.push(way);
    this.#nowMs += this.tookMs;
  }
}

it("a sync goes to the pool until the device has shown that it is quick", async () => {
  const device = new Device();
  await device.sync(5);
  expect(device.ways).toEqual(["pool", "pool", "pool", "at once", "at once"]);
});

it("a long sync sends the next ones to the pool, until three in a row were brief", async () => {
  const device = new Device();
  await device.sync(3);
  device.tookMs = 2;
  await device.sync(4);
  device.tookMs = 0.2;
  await device.sync(4);
  expect(device.ways.slice(3)).toEqual(["at once", "pool", "pool", "pool", "pool", "pool", "pool", "at once"]);
});

it("the way to the pool does not count as time of the device", async () => {
  const device = new Device();
  device.tookMs = 0.8;
  await device.sync(5);
  expect(device.ways).toEqual(["pool", "pool", "pool", "at once", "pool"]);
});

it("two callers sync beside each other in the pool, on two disks, too", async () => {
  const device = new Device();
  await device.sync(3);
  await Promise.all([device.sync(2), device.sync(2)]);
  expect(new Set(device.ways)).toEqual(new Set(["pool"]));
  const other = new Device();
  await other.sync(3);
  await Promise.all([device.sync(2), other.sync(2)]);
  expect(new Set([...device.ways, ...other.ways])).toEqual(new Set(["pool"]));
});

it("several syncs block one after the other if all of them take less than the way to the pool", async () => {
  const device = new Device();
  device.tookMs = 0.01;
  await device.sync(4);
  await Promise.all([device.sync(1), device.sync(1), device.sync(1)]);
  expect(device.ways.slice(3)).toEqual(["at once", "at once", "at once", "at once"]);
  const many = Array.from({ length: 16 }, () => device.sync(1));
  await Promise.all(many);
  expect(new Set(device.ways.slice(7, 14))).toEqual(new Set(["pool"]));
});

it("a sync goes to the pool for a caller that has other work to do", async () => {
  const device = new Device();
  await device.sync(5, () => false);
  expect(new Set(device.ways)).toEqual(new Set(["pool"]));
});

it("a sync lets other callbacks run before it blocks, and goes to the pool when a caller has come", async () => {
  const device = new Device();
  await device.sync(3);
  let others = 0;
  setImmediate(() => others++);
  await device.sync(1, () => others === 0);
  expect(device.ways).toEqual(["pool", "pool", "pool", "pool"]);
});

it("a sync behind many unsynced bytes goes to the pool, however quick the small ones are", async () => {
  const ways: string[] = [];
  const calls: FileCalls = {
    ...blockingCalls,
    fdatasync: (fd) => (ways.push("pool"), blockingCalls.fdatasync(fd)),
    fdatasyncAtOnce: () => ways.push("at once"),
  };
  const path = join(makeScratch(), "a");
  // A clock that stands still: every sync is brief.
  const file = new NodeFile(path, openSync(path, "w+"), calls, new DiskSyncs(calls, () => 0));
  for (let n = 0; n < 3; n++) await file.sync();
  await file.write(0, new Uint8Array(512 * 1024));
  await file.sync();
  await file.sync();
  expect(ways).toEqual(["pool", "pool", "pool", "pool", "at once"]);
  await file.close();
});

it("a share never blocks", () => {
  for (const calls of [pooledCalls, nfsCalls, smbCalls]) {
    expect(calls.fsyncAtOnce).toBeUndefined();
    expect(calls.fdatasyncAtOnce).toBeUndefined();
  }
});

it("a blocking sync that fails is reported like one in the pool", async () => {
  const fails = Object.assign(new Error("EIO"), { code: "EIO" });
  const fail = (): never => {
    throw fails;
  };
  const failing: Partial<FileCalls> = { fsync: async () => fail(), fdatasync: async () => fail() };
  const calls: FileCalls = { ...blockingCalls, ...failing, fsyncAtOnce: fail, fdatasyncAtOnce: fail };
  const path = join(makeScratch(), "a");
  const brief = new DiskSyncs({ ...calls, fdatasync: async () => undefined }, () => 0);
  const file = new NodeFile(path, openSync(path, "w+"), calls, brief);
  for (let n = 0; n < 3; n++) await file.sync();
  await expect(file.sync()).rejects.toMatchObject({ code: "IO_ERROR", errno: "EIO" });
  await file.close();
  const disk = new NodeDisk({ kind: "local" } as NodeDisk["volume"], calls);
  await expect(disk.syncDirectory(makeScratch())).rejects.toMatchObject({ code: "IO_ERROR", errno: "EIO" });
});
