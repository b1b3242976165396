// Interop in trouble: foreign programs at the wrong moment, disks that fail, links that lead in
// circles.
import { existsSync, readdirSync } from "node:fs";
import { mkdir, symlink, utimes } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { InteropTree } from "../../src/locks/interop/tree.ts";
import { TablePathLocks } from "../../src/locks/path/service.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { foreignLock, InteropSite, tokenAt } from "./interop-site.ts";

const shortLeaseMs = 1500;

let site: InteropSite;
let opened: TablePathLocks[];
beforeEach(async () => {
  site = await InteropSite.make();
  opened = [];
  await mkdir(site.at("dir/sub"), { recursive: true });
});
afterEach(async () => {
  for (const locks of opened) await locks.close();
  await site.end();
});

/** Locks on a disk that does something else first, when a lock file is about to appear. */
async function openWith(
  onLink: (file: string) => void,
  { leaseMs = 30_000, warnings = [] as string[] } = {},
): Promise<TablePathLocks> {
  const ports = await openNodePorts(site.root);
  const link = async (from: string, to: string): Promise<void> => {
    if (to.includes(".ovlock")) onLink(to);
    await ports.disk.link(from, to);
  };
  const disk = changed(ports.disk, { link });
  const host = changed(ports.host, { warn: (message) => void warnings.push(message) });
  const ground = await Ground.open({ ...ports, disk, host }, site.at(".holdfast"), { leaseMs });
  const locks = await TablePathLocks.open(ground, { root: site.root, ownsGround: true, interop: true });
  opened.push(locks);
  return locks;
}

/** The same, with other methods in the place of some. */
function changed<T extends object>(original: T, methods: Partial<T>): T {
  const get = (_target: T, name: keyof T): unknown => {
    const value = methods[name] ?? original[name];
    return typeof value === "function" ? (value as () => unknown).bind(original) : value;
  };
  return new Proxy(original, { get: (target, name) => get(target, name as keyof T) });
}

const soon = async (check: () => void): Promise<void> => await vi.waitFor(check, { timeout: 10_000, interval: 20 });

describe("a foreign program at the wrong moment", () => {
  it("that locks a tree above while our lock file is being written is seen afterwards, and ours is taken back", async () => {
    const locks = await openWith(() => foreignLock(site.inside("dir"), "T"));
    expect(await locks.tryAcquire("dir/sub")).toBe(undefined);
    expect(site.lockFiles()).toEqual(["dir/.path.ovlock"]);
    expect(await locks.list()).toEqual([]);
  });

  it("that takes the very name while our lock file is being written keeps it", async () => {
    const locks = await openWith((file) => foreignLock(file, "E"));
    expect(await locks.tryAcquire("a")).toBe(undefined);
    expect(tokenAt(site.beside("a"))).toMatch(/^9b2f0d6e-foreign:/);
  });

  it("that has put its lock into the place of ours keeps it, and our hold is lost", async () => {
    const locks = await site.open({ leaseMs: shortLeaseMs });
    const hold = await locks.acquire("a");
    // Into the very file that we refresh.
    foreignLock(site.beside("a"));
    await soon(() => expect(hold.signal.aborted).toBe(true));
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    await hold.release();
    expect(tokenAt(site.beside("a"))).toMatch(/^9b2f0d6e-foreign:/);
  });

  it("that took a path during a transfer keeps it: the receiver gets an error and holds nothing", async () => {
    const [a, b] = [await site.open(), await site.open()];
    const secret = await (await a.acquire("a")).transfer();
    foreignLock(site.beside("a"));
    await expect(b.receive(secret)).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    expect(await b.list()).toEqual([]);
  });
});

describe("a lock file that cannot be written", () => {
  it("fails the acquire with the error of the disk, and nothing is held or left", async () => {
    const failing = await openWith((file) => {
      throw diskError("ENOSPC", "link", file);
    });
    await expect(failing.acquire("a")).rejects.toMatchObject({ code: "DISK_FULL", path: site.beside("a") });
    expect(await failing.list()).toEqual([]);
    expect(readdirSync(site.at(".holdfast/temp"), { recursive: true })).toHaveLength(1);
  });

  it("because a directory has its name fails the acquire too, and the directory stays", async () => {
    const locks = await site.open();
    await mkdir(site.inside("dir"));
    await utimes(site.inside("dir"), 0, 0);
    await expect(locks.acquire("dir")).rejects.toMatchObject({ code: "IO_ERROR", path: site.inside("dir") });
    expect(await locks.list()).toEqual([]);
    expect(existsSync(site.inside("dir"))).toBe(true);
  });

  it("at a refresh does not end the hold, and the process warns", async () => {
    const warnings: string[] = [];
    let isFull = false;
    const locks = await openWith(
      (file) => {
        if (isFull) throw diskError("ENOSPC", "link", file);
      },
      { leaseMs: shortLeaseMs, warnings },
    );
    await using hold = await locks.acquire("new", { mode: "tree" });
    isFull = true;
    // Its lock file has to move into it.
    await mkdir(site.at("new"));
    await soon(() => expect(warnings[0]).toContain(site.inside("new")));
    await hold.assertHeld();
    expect(existsSync(site.beside("new"))).toBe(true);
  });
});

describe("the search below a tree", () => {
  it("ends in spite of links that lead back, and follows none out of the tree", async () => {
    const locks = await site.open();
    await mkdir(site.at("other"));
    foreignLock(site.inside("other"), "E");
    await symlink(site.at("dir"), site.at("dir/sub/back"));
    await symlink(site.at("other"), site.at("dir/out"));
    await symlink("nowhere", site.at("dir/dangling"));
    await using _hold = await locks.acquire("dir", { mode: "tree" });
  });

  it("refuses a tree with too many entries", async () => {
    const ports = await openNodePorts(site.root);
    const list = async (): Promise<string[]> => Array.from({ length: 200_001 }, () => "nothing");
    const stat = await ports.disk.stat(site.root);
    const disk = changed(ports.disk, { list, stat: async () => ({ ...stat, kind: "file" }) });
    const tree = await InteropTree.open({ ...ports, disk }, { root: site.root, skipped: site.root });
    const below = tree.lockFilesBelow(site.root);
    await expect(below.next()).rejects.toMatchObject({ code: "TOO_LARGE", limit: 200_000 });
  });
});
