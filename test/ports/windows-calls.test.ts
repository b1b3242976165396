// The calls on Windows, over a real directory whose calls fail as those of Windows do. Where these
// failures come from, only Windows and Wine show.
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Volume } from "../../src/ports/disk.ts";
import { hasErrno } from "../../src/ports/disk-error.ts";
import { NodeDisk } from "../../src/ports/node/disk/disk.ts";
import { blockingCalls, type FileCalls } from "../../src/ports/node/disk/file-calls.ts";
import { windowsCalls, type WindowsOptions } from "../../src/ports/node/windows/windows-calls.ts";
import { describeDiskContract } from "../sites/contracts.ts";
import { makeScratch } from "../sites/scratch.ts";

const local: Volume = { kind: "local", type: "ntfs", mountOptions: [] };
const failing = (code: string): Error => Object.assign(new Error(code), { code });
const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** Fails as libuv does on Windows where that differs from POSIX. */
const likeWindows: FileCalls = renaming({
  ...blockingCalls,
  rename: (from, to) => {
    if (isDirectory(to) || to.startsWith(`${from}/`)) throw failing("EPERM");
    // A directory replaces a file.
    if (isDirectory(from)) rmSync(to, { force: true });
    return blockingCalls.rename(from, to);
  },
  unlink: (path) => {
    if (isDirectory(path)) throw failing("EPERM");
    return blockingCalls.unlink(path);
  },
  open: (path, flags, mode) => {
    if (flags === "r+" && isDirectory(path)) throw failing("EPERM");
    return blockingCalls.open(path, flags, mode);
  },
});

/** A file in place of a directory is ENOENT. */
function renaming(calls: FileCalls): FileCalls {
  const renamed = Object.entries(calls).map(([name, call]): [string, unknown] => [
    name,
    typeof call !== "function" || name === "hasName"
      ? call
      : (...args: readonly never[]): unknown => {
          try {
            return (call as (...args: readonly never[]) => unknown)(...args);
          } catch (error) {
            throw (error as NodeJS.ErrnoException).code === "ENOTDIR" ? failing("ENOENT") : error;
          }
        },
  ]);
  return Object.fromEntries(renamed) as unknown as FileCalls;
}

/** A disk whose calls wait without a clock, and the waits. */
function openDisk(
  calls: FileCalls,
  options: WindowsOptions = {},
): { readonly disk: NodeDisk; readonly waits: number[] } {
  const waits: number[] = [];
  const wait = async (ms: number): Promise<void> => void waits.push(ms);
  return { disk: new NodeDisk(local, windowsCalls(calls, { wait, isShare: false, ...options }), "win32"), waits };
}

describeDiskContract("a directory whose calls fail as on Windows", async () => ({
  // With the syncs of Linux: there are none on Windows.
  disk: new NodeDisk(local, windowsCalls(likeWindows), "linux"),
  root: makeScratch(),
}));

describe("a name that another program has open", () => {
  /** Each call of the disk that takes a path. */
  const calls: Readonly<Record<string, (disk: NodeDisk, path: string) => Promise<unknown>>> = {
    create: (disk, path) => disk.createFile(`${path}-new`, new Uint8Array(1), { sync: false }),
    "open to create": async (disk, path) => await (await disk.open(`${path}-new`, "create")).close(),
    "open to read": async (disk, path) => await (await disk.open(path, "read")).close(),
    "open to read in bulk": async (disk, path) => await (await disk.open(path, "read", { isBulk: true })).close(),
    "open to write": async (disk, path) => await (await disk.open(path, "write")).close(),
    read: (disk, path) => disk.readFile(path, 10),
    canOpen: (disk, path) => disk.canOpen(path),
    link: (disk, path) => disk.link(path, `${path}-new`),
    rename: (disk, path) => disk.rename(path, `${path}-new`),
    unlink: (disk, path) => disk.unlink(path),
    mkdir: (disk, path) => disk.mkdir(`${path}-new`),
    rmdir: (disk, path) => disk.rmdir(join(dirname(path), "d")),
    list: (disk, path) => disk.list(dirname(path)),
    stat: (disk, path) => disk.stat(path),
    look: (disk, path) => disk.look(path),
    realPath: (disk, path) => disk.realPath(path),
    hasLink: (disk, path) => disk.hasLink(dirname(path), "a"),
    readLink: (disk, path) => disk.readLink(path).catch(mustBeLinkless),
  };
  const mustBeLinkless = (error: unknown): void => {
    if (!hasErrno(error, "EINVAL")) throw error;
  };
  const namesOfCalls = Object.keys(blockingCalls).filter(
    (name) => !["close", "read", "write", "fsync", "fdatasync", "fstat"].includes(name) && !/AtOnce|^fch/.test(name),
  );

  /** Refuses the first calls by name, as many as `failures`. */
  function refusing(code: string, failures: number): { readonly calls: FileCalls; readonly refused: () => number } {
    let refused = 0;
    const all = blockingCalls as unknown as Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
    const refusals = namesOfCalls.map((name) => [
      name,
      (...args: readonly unknown[]): unknown => {
        if (name === "lstat" && code !== "EBUSY") return all[name]?.(...args);
        if (refused++ < failures) throw failing(code);
        return all[name]?.(...args);
      },
    ]);
    return { calls: { ...blockingCalls, ...Object.fromEntries(refusals) } as FileCalls, refused: () => refused };
  }

  function openScratch(): string {
    const root = makeScratch();
    writeFileSync(join(root, "a"), "x");
    mkdirSync(join(root, "d"));
    return join(root, "a");
  }

  it.each(Object.keys(calls))("is waited for by %s", async (name) => {
    const { disk, waits } = openDisk(refusing("EBUSY", 3).calls);
    await calls[name]?.(disk, openScratch());
    expect(waits.length).toBeGreaterThan(0);
  });

  it.each(Object.keys(calls))("is RESOURCE_BUSY with its path after a second of %s", async (name) => {
    const { disk, waits } = openDisk(refusing("EBUSY", Infinity).calls);
    const path = openScratch();
    const error: unknown = await calls[name]?.(disk, path).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "RESOURCE_BUSY", errno: "EBUSY", worthWaiting: true, blockedBy: [] });
    expect((error as { readonly path: string }).path.startsWith(dirname(path))).toBe(true);
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(1000);
  });

  it.each(["EPERM", "EACCES"])("is waited for although the answer is %s", async (code) => {
    for (const name of ["open to read", "open to write", "rename", "unlink", "rmdir", "list", "stat", "canOpen"]) {
      const { disk, waits } = openDisk(refusing(code, 1).calls);
      await calls[name]?.(disk, openScratch());
      expect([name, waits.length]).toEqual([name, 1]);
    }
  });

  it("is waited for as long as the name of a removed file cannot be made or looked up", async () => {
    const root = makeScratch();
    let looks = 0;
    const pending = (): never => {
      throw failing("EPERM");
    };
    const hidden: FileCalls = {
      ...blockingCalls,
      lstat: (path) => (looks++ < 4 ? pending() : blockingCalls.lstat(path)),
      open: (path, flags, mode) => (looks < 4 ? pending() : blockingCalls.open(path, flags, mode)),
    };
    const { disk, waits } = openDisk(hidden);
    await disk.createFile(join(root, "a"), new Uint8Array(), { sync: false });
    expect(waits).toHaveLength(4);
  });
});

it("a directory with an open file in it is waited for, and is RESOURCE_BUSY then", async () => {
  const root = makeScratch();
  mkdirSync(join(root, "d"));
  let refusals = 0;
  const busyBelow = (times: number): FileCalls => ({
    ...blockingCalls,
    rename: (from, to) => {
      if (refusals++ < times) throw failing("EPERM");
      return blockingCalls.rename(from, to);
    },
  });
  const { disk, waits } = openDisk(busyBelow(3));
  await disk.rename(join(root, "d"), join(root, "e"));
  expect(waits).toHaveLength(3);
  const rename = openDisk(busyBelow(Infinity)).disk.rename(join(root, "e"), join(root, "f"));
  await expect(rename).rejects.toMatchObject({ code: "RESOURCE_BUSY", errno: "EBUSY", path: join(root, "f") });
});

describe("the name of a removed file that stays open", () => {
  const refuse = (): never => {
    throw failing("EPERM");
  };
  const hidden: FileCalls = { ...blockingCalls, lstat: refuse, stat: refuse, isThere: refuse, open: refuse };

  it("is RESOURCE_BUSY for each call, because its directory can be listed", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "");
    for (const call of [
      (disk: NodeDisk) => disk.canOpen(path),
      (disk: NodeDisk) => disk.stat(path),
      (disk: NodeDisk) => disk.open(path, "read"),
      (disk: NodeDisk) => disk.open(path, "create"),
    ])
      await expect(call(openDisk(hidden).disk)).rejects.toMatchObject({ code: "RESOURCE_BUSY", path });
  });

  it("is a lack of permission where not even its directory can be listed", async () => {
    const { disk } = openDisk({ ...hidden, listSome: refuse });
    await expect(disk.stat(join(makeScratch(), "a"))).rejects.toMatchObject({ code: "NO_PERMISSION" });
  });
});

describe("a lack of permission", () => {
  it("is reported soon where nothing has the name that is to be made", async () => {
    const refuse = (): never => {
      throw failing("EPERM");
    };
    const path = join(makeScratch(), "a");
    writeFileSync(`${path}-there`, "");
    const { disk, waits } = openDisk({ ...blockingCalls, open: refuse, mkdir: refuse, link: refuse });
    for (const make of [
      () => disk.createFile(path, new Uint8Array(), { sync: false }),
      () => disk.mkdir(path),
      () => disk.link(`${path}-there`, path),
    ])
      await expect(make()).rejects.toMatchObject({ code: "NO_PERMISSION", errno: "EACCES" });
    expect(waits).toEqual([10, 20, 10, 20, 10, 20]);
  });
});

describe("a hard link", () => {
  it("is not supported where libuv says EISDIR, which is what FAT and exFAT say", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "");
    const link = (): never => {
      throw failing("EISDIR");
    };
    await expect(openDisk({ ...blockingCalls, link }).disk.link(path, `${path}2`)).rejects.toMatchObject({
      errno: "ENOTSUP",
    });
  });
});

describe("a rename onto a directory", () => {
  it.each([
    ["d", "full", "ENOTEMPTY"],
    ["d", "a", "ENOTDIR"],
    ["a", "full", "EISDIR"],
    ["d", "d/inner", "EINVAL"],
  ])("of %s to %s is %s at once", async (from, to, errno) => {
    const root = makeScratch();
    for (const name of ["d", "full"]) mkdirSync(join(root, name));
    for (const name of ["a", "full/x"]) writeFileSync(join(root, name), "");
    const { disk, waits } = openDisk(likeWindows);
    await expect(disk.rename(join(root, from), join(root, to))).rejects.toMatchObject({ errno });
    expect(waits).toEqual([]);
  });

  it("replaces an empty one, and loses against a file that comes into it meanwhile", async () => {
    const root = makeScratch();
    for (const name of ["d", "empty", "other", "target"]) mkdirSync(join(root, name));
    const { disk, waits } = openDisk(likeWindows);
    await disk.rename(join(root, "d"), join(root, "empty"));
    const racing: FileCalls = {
      ...likeWindows,
      rmdir: (path) => {
        writeFileSync(join(path, "x"), "theirs");
        rmdirSync(path);
      },
    };
    const rename = openDisk(racing).disk.rename(join(root, "other"), join(root, "target"));
    await expect(rename).rejects.toMatchObject({ errno: "ENOTEMPTY" });
    expect(readdirSync(root).sort()).toEqual(["empty", "other", "target"]);
    expect(readFileSync(join(root, "target", "x"), "utf8")).toBe("theirs");
    expect(waits).toEqual([]);
  });
});

describe("a failure without a name", () => {
  const lost = (): never => {
    throw failing("UNKNOWN");
  };
  it("is an outage on a share, and a failure of the disk elsewhere", async () => {
    const path = join(makeScratch(), "a");
    for (const [isShare, errno] of [
      [true, "EHOSTDOWN"],
      [false, "EIO"],
    ] as const) {
      const { disk } = openDisk({ ...blockingCalls, stat: lost, open: lost }, { isShare });
      await expect(disk.stat(path)).rejects.toMatchObject({ errno });
      await expect(disk.readFile(path, 1)).rejects.toMatchObject({ errno });
    }
  });
});

it("gives one device number to a file by its name and by its handle", async () => {
  const path = join(makeScratch(), "a");
  writeFileSync(path, "");
  const wide: FileCalls = {
    ...blockingCalls,
    stat: (name) => Object.assign(statSync(name, { bigint: true }), { dev: 0x1234_0000_0005n }),
    fstat: (fd) => Object.assign(statSync(path, { bigint: true }), { dev: 0x5n, fd }),
  };
  const calls = windowsCalls(wide);
  const fd = openSync(path, "r");
  expect((await calls.stat(path)).dev).toBe((await calls.fstat(fd)).dev);
  closeSync(fd);
});
