// Where a store lock is used: the kind of gate is recorded once for all, a process that cannot use
// it refuses, and errors say what is wrong with the input.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { holdfastError } from "../../src/errors.ts";
import { openStoreLock } from "../../src/locks/index.ts";
import { createStoreLock } from "../../src/locks/store/store-lock.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { asNewerFormat } from "../durable/newer-format.ts";
import { changedDisk } from "../sites/disks.ts";
import { nfs, World } from "../sites/world.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { gateRecord, makeSite, treeOf } from "./store-lock-site.ts";

const gateOf = (record: string | undefined): unknown =>
  (JSON.parse(record ?? "{}") as { body?: { gate: unknown } }).body?.gate;

describe("the gate of a store lock", () => {
  it("is recorded in the directory when it is opened first, and never again", async () => {
    const { directory, open } = makeSite("os");
    const locks = await Promise.all(Array.from({ length: 4 }, () => open()));
    const record = readFileSync(join(directory, "gate.json"), "utf8");
    expect(gateOf(record)).toBe("os");
    expect(locks.map(({ gate }) => gate)).toEqual(["os", "os", "os", "os"]);
    const hold = await locks[0]?.acquire();
    for (const lock of locks) expect(await lock.tryAcquire()).toBe(undefined);
    await hold?.release();
    await open();
    expect(readFileSync(join(directory, "gate.json"), "utf8")).toBe(record);
  });

  it("that is recorded as a table is used on a local disk too, and no OS lock is made beside it", async () => {
    const { directory, open } = makeSite("table");
    const lock = await open();
    await (await lock.acquire()).release();
    expect(lock.gate).toBe("table");
    expect(existsSync(join(directory, ".store.lock"))).toBe(false);
  });

  it.each(["network", "unknown"] as const)("is a table on a volume that is %s", async (kind) => {
    const world = new World({ volume: { ...nfs, kind } });
    const lock = await createStoreLock(world.ports("ada"), "/shop");
    expect(lock).toMatchObject({ gate: "table", path: "/shop/.store.lock" });
    expect(gateOf(world.tree("/shop")["/shop/gate.json"])).toBe("table");
    await lock.close();
  });

  it("is a table where there are no OS locks", async () => {
    const world = new World({ quirks: { osLocks: "none" } });
    const lock = await createStoreLock(world.ports("ada"), "/shop");
    expect(lock.gate).toBe("table");
    await (await lock.acquire()).release();
    await lock.close();
  });

  it("that is an OS lock is refused from a volume that is not known to be local, and nothing is written", async () => {
    const { directory, open } = makeSite("os");
    await (await open()).close();
    const before = treeOf(directory);
    const ports = await openNodePorts(directory);
    const far = { ...ports, disk: changedDisk(ports.disk, () => ({ volume: nfs })) };
    const error: unknown = await createStoreLock(far, directory).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "UNSUPPORTED_DISK", path: directory, missing: ["a local disk"] });
    expect((error as Error).message).toContain("Nothing was written");
    expect(treeOf(directory)).toEqual(before);
  });

  it("that is an OS lock is refused by a process that has none, and nothing is written", async () => {
    const { directory, open } = makeSite("os");
    await (await open()).close();
    const before = treeOf(directory);
    const refused = holdfastError("UNSUPPORTED_DISK", "no OS locks", { path: directory, missing: ["OS locks"] });
    const ports = { ...(await openNodePorts(directory)), osLock: { open: () => Promise.reject(refused) } };
    await expect(createStoreLock(ports, directory)).rejects.toBe(refused);
    expect(treeOf(directory)).toEqual(before);
  });

  it("is not decided where nothing can be decided: without hard links", async () => {
    const world = new World({ volume: nfs, quirks: { noHardLinks: true } });
    await expect(createStoreLock(world.ports("ada"), "/shop")).rejects.toMatchObject({ code: "UNSUPPORTED_DISK" });
    expect(Object.keys(world.tree("/shop"))).not.toContain("/shop/gate.json");
  });
});

describe("a store lock is refused, and nothing is written, for", () => {
  it("a directory in which this user may not write", async () => {
    const directory = makeScratch();
    chmodSync(directory, 0o555);
    await asOrdinaryUser(async () => {
      await expect(openStoreLock(directory)).rejects.toMatchObject({
        code: "NO_PERMISSION",
        path: expect.stringContaining(directory) as string,
      });
    });
    expect(treeOf(directory)).toEqual({});
  });

  it("a lock file that this user may not write", async () => {
    const { directory, open } = makeSite("os");
    await (await open()).close();
    chmodSync(join(directory, ".store.lock"), 0o444);
    const before = treeOf(directory);
    await asOrdinaryUser(async () => {
      await expect(openStoreLock(directory)).rejects.toMatchObject({
        code: "NO_PERMISSION",
        path: `${directory}/.store.lock`,
      });
    });
    expect(treeOf(directory)).toEqual(before);
  });

  it("a file where the directory should be", async () => {
    const file = join(makeScratch(), "file");
    writeFileSync(file, "mine");
    for (const directory of [file, join(file, "below")]) {
      const error: unknown = await openStoreLock(directory).catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        code: "IO_ERROR",
        errno: "ENOTDIR",
        path: expect.stringContaining(file) as string,
      });
      expect((error as Error).message).toContain("move it away");
    }
    expect(readFileSync(file, "utf8")).toBe("mine");
  });

  const damaged: Readonly<Record<string, Uint8Array>> = {
    "an empty gate.json": Buffer.from(""),
    "a torn gate.json": gateRecord("os").slice(0, 40),
    "a gate.json that was edited by hand": Buffer.from(
      Buffer.from(gateRecord("os")).toString().replace('"os"', '"table"'),
    ),
    "a gate.json of an unknown kind": gateRecord("flock"),
    "a gate.json of garbage": Buffer.from("\u0000\u0001garbage"),
    "a gate.json of 10 MB": Buffer.alloc(10_000_000, "x"),
  };
  it.each(Object.entries(damaged))("%s", async (_, bytes) => {
    const directory = makeScratch();
    writeFileSync(join(directory, "gate.json"), bytes);
    const error: unknown = await openStoreLock(directory).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "CORRUPT", action: "fix-data", path: `${directory}/gate.json` });
    expect(Object.keys(treeOf(directory))).toEqual(["gate.json"]);
  });

  it("a gate.json that is a directory", async () => {
    const directory = makeScratch();
    mkdirSync(join(directory, "gate.json"));
    await expect(openStoreLock(directory)).rejects.toMatchObject({ code: "CORRUPT", path: `${directory}/gate.json` });
    expect(Object.keys(treeOf(directory))).toEqual(["gate.json/"]);
  });

  it("a gate.json of a later release", async () => {
    const directory = makeScratch();
    writeFileSync(join(directory, "gate.json"), asNewerFormat(gateRecord("os")));
    await expect(openStoreLock(directory)).rejects.toMatchObject({
      code: "NEWER_FORMAT",
      path: `${directory}/gate.json`,
      writtenBy: "9.9.9",
    });
    expect(Object.keys(treeOf(directory))).toEqual(["gate.json"]);
  });
});

it("a store lock whose directory is removed while it is held can still be released", async () => {
  const { rmSync } = await import("node:fs");
  for (const gate of ["os", "table"] as const) {
    const { directory, open } = makeSite(gate);
    const lock = await open();
    const hold = await lock.acquire();
    rmSync(directory, { recursive: true });
    await hold.release();
  }
});
