import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { chmod } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Volume } from "../../src/ports/disk.ts";
import { NodeDisk, openNodeDisk } from "../../src/ports/node/disk/disk.ts";
import { blockingCalls, pooledCalls, type FileCalls } from "../../src/ports/node/disk/file-calls.ts";
import { NodeFile } from "../../src/ports/node/disk/file.ts";
import { describeDiskContract } from "../sites/contracts.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";

const local: Volume = { kind: "local", type: "test", mountOptions: [] };
const failing = (code: string): Error => Object.assign(new Error(code), { code });

describeDiskContract("a real directory, as it is opened", async () => {
  const root = makeScratch();
  return { disk: await openNodeDisk(root), root };
});
describeDiskContract("a real directory, by blocking calls", async () => ({
  disk: new NodeDisk(local, blockingCalls),
  root: makeScratch(),
}));
describeDiskContract("a real directory, by the pool", async () => ({
  disk: new NodeDisk(local, pooledCalls),
  root: makeScratch(),
}));
// A system call may do less than it was asked for; nothing above may notice.
const byteByByte: FileCalls = {
  ...blockingCalls,
  read: (fd, into, position) => blockingCalls.read(fd, into.subarray(0, 1), position),
  write: (fd, from, position) => blockingCalls.write(fd, from.subarray(0, 1), position),
};
describeDiskContract("a real directory, one byte per call", async () => ({
  disk: new NodeDisk(local, byteByByte),
  root: makeScratch(),
}));

describe.each([
  ["blocking calls", blockingCalls],
  ["the pool", pooledCalls],
])("the real disk by %s", (_, calls) => {
  it("lets timers run however long a program awaits one call after the other", async () => {
    const root = makeScratch();
    const disk = new NodeDisk(local, calls);
    await disk.createFile(join(root, "a"), new Uint8Array(1), { sync: false });
    const file = await disk.open(join(root, "a"), "read");
    for (const call of [() => disk.stat(root), () => file.read(0, 1)]) {
      const stop = AbortSignal.timeout(30);
      for (const untilMs = performance.now() + 20_000; !stop.aborted; await call())
        expect(performance.now()).toBeLessThan(untilMs);
    }
    await file.close();
  });

  it("reports a directory that this user may not write to as NO_PERMISSION", async () => {
    const root = makeScratch();
    const disk = new NodeDisk(local, calls);
    await chmod(root, 0o555);
    const create = asOrdinaryUser(() => disk.createFile(join(root, "a"), new Uint8Array(1), { sync: false }));
    await expect(create).rejects.toMatchObject({ code: "NO_PERMISSION", errno: "EACCES" });
    await expect(asOrdinaryUser(() => disk.mkdir(join(root, "d")))).rejects.toMatchObject({ code: "NO_PERMISSION" });
    await expect(asOrdinaryUser(() => disk.canOpen(join(root, "a")))).resolves.toBe(false);
  });

  it("asks again by name when a share says that a handle is stale, and tells when it goes on saying so", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "text");
    const stale = Object.assign(new Error("Unknown system error -116"), { code: "Unknown system error -116" });
    let times = 0;
    const fail = (): never => {
      times++;
      throw stale;
    };
    const opened: string[] = [];
    const once = {
      ...calls,
      open: (name: string, flags: string | number) => {
        opened.push(name);
        return calls.open(name, flags);
      },
      fstat: (fd: number) => (times === 0 ? fail() : calls.fstat(fd)),
    };
    expect(Buffer.from(await new NodeDisk(local, once).readFile(path, 100)).toString()).toBe("text");
    // Its directory in between: an NFS client would hand out the stale one for half a minute.
    expect(opened).toEqual([path, dirname(path), path]);
    times = 0;
    await expect(new NodeDisk(local, { ...calls, isThere: fail }).canOpen(path)).rejects.toMatchObject({
      errno: "ESTALE",
    });
    expect(times).toBe(8);
  });

  it("rejects canOpen when the answer is neither yes nor no", async () => {
    const directory = join(makeScratch(), "d");
    mkdirSync(directory, { mode: 0o000 });
    const disk = new NodeDisk(local, calls);
    const looking = asOrdinaryUser(() => disk.canOpen(join(directory, "a")));
    await expect(looking).rejects.toMatchObject({ code: "NO_PERMISSION" });
  });

  it.runIf(process.platform === "linux")("reports a full device as DISK_FULL", async () => {
    const file = await new NodeDisk(local, calls).open("/dev/full", "write");
    await expect(file.write(0, new Uint8Array(10))).rejects.toMatchObject({ code: "DISK_FULL", errno: "ENOSPC" });
    await file.close();
  });

  it("moves megabytes whole", async () => {
    const path = join(makeScratch(), "a");
    const disk = new NodeDisk(local, calls);
    const bytes = new Uint8Array(3_000_000).map((_, i) => i % 251);
    await disk.createFile(path, bytes, { sync: false });
    expect(Buffer.compare(await disk.readFile(path, bytes.length), bytes)).toBe(0);
  });

  it("refuses a file that is too large before it reads it", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "");
    truncateSync(path, 2 ** 40);
    await expect(new NodeDisk(local, calls).readFile(path, 1000)).rejects.toMatchObject({ errno: "EFBIG" });
  });

  it("reads what was there at the open from a file that grows meanwhile", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "12345");
    const grower = openSync(path, "a");
    const growing: FileCalls = {
      ...calls,
      read: (fd, into, position) => {
        writeSync(grower, "more");
        return calls.read(fd, into.subarray(0, 2), position);
      },
    };
    const bytes = await new NodeDisk(local, growing).readFile(path, 6);
    closeSync(grower);
    expect(new TextDecoder().decode(bytes)).toBe("12345");
  });

  it("stops listing at the limit", async () => {
    const root = makeScratch();
    for (const name of ["a", "b", "c"]) writeFileSync(join(root, name), "");
    expect(await calls.listSome(root, 4)).toHaveLength(3);
    expect(await calls.listSome(root, 2)).toHaveLength(2);
    const disk = new NodeDisk(local, { ...calls, listSome: (_, count) => Array.from({ length: count }, String) });
    await expect(disk.list(root)).rejects.toMatchObject({ code: "TOO_LARGE", limit: 1_000_000 });
  });

  it("tells two files apart whose inodes differ only in bits that a number does not have", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "12345");
    const real = await calls.stat(path);
    const withInode = (ino: bigint) =>
      new NodeDisk(local, { ...calls, stat: () => Object.assign(Object.create(real) as typeof real, { ino }) });
    const [one, other] = [await withInode(2n ** 60n).stat(path), await withInode(2n ** 60n + 1n).stat(path)];
    expect(one).toMatchObject({ kind: "file", size: 5 });
    expect(one.identity).not.toBe(other.identity);
    expect(Math.abs(one.mtimeMs - statSync(path).mtimeMs)).toBeLessThan(0.001);
  });

  it.skipIf(process.platform === "win32")("creates files with all permissions that the umask leaves", async () => {
    const path = join(makeScratch(), "a");
    const umask = process.umask(0o027);
    await new NodeDisk(local, calls).createFile(path, new Uint8Array(), { sync: false });
    process.umask(umask);
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  it.skipIf(process.platform === "win32")(
    "creates a file with the mode that it is given, never with more",
    async () => {
      const [root, disk] = [makeScratch(), new NodeDisk(local, calls)];
      const umask = process.umask(0);
      await disk.createFile(join(root, "a"), new Uint8Array(), { sync: false, mode: 0o600 });
      await disk.createFile(join(root, "b"), new Uint8Array(), { sync: false, mode: 0o644 });
      process.umask(umask);
      expect([statSync(join(root, "a")).mode & 0o777, statSync(join(root, "b")).mode & 0o777]).toEqual([0o600, 0o644]);
      chmodSync(root, 0o1777);
      expect([(await disk.stat(join(root, "a"))).mode, (await disk.stat(root)).mode]).toEqual([0o600, 0o1777]);
    },
  );

  it("follows every symbolic link on the way, and tells where one points that leads nowhere", async () => {
    const [root, disk] = [makeScratch(), new NodeDisk(local, calls)];
    mkdirSync(join(root, "d"));
    writeFileSync(join(root, "d", "a"), "");
    symlinkSync("d", join(root, "e"));
    symlinkSync("d/a", join(root, "b"));
    symlinkSync("nowhere", join(root, "dangling"));
    symlinkSync("circle", join(root, "circle"));
    const real = join(await disk.realPath(root), "d", "a");
    expect(await disk.realPath(join(root, "e", "a"))).toBe(real);
    expect(await disk.realPath(join(root, "b"))).toBe(real);
    expect(await disk.readLink(join(root, "dangling"))).toBe("nowhere");
    for (const path of ["e", "e/a", "dangling", "circle/x"]) expect(await disk.hasLink(root, path)).toBe(true);
    for (const path of ["d/a", "d/a/x"]) expect(await disk.hasLink(root, path)).toBe(false);
    await expect(disk.realPath(join(root, "dangling"))).rejects.toMatchObject({ errno: "ENOENT" });
    await expect(disk.realPath(join(root, "circle"))).rejects.toMatchObject({ errno: "ELOOP" });
  });

  it("gives paths with forward slashes on Windows", async () => {
    const disk = new NodeDisk(
      local,
      { ...calls, realpath: () => String.raw`C:\shared\a`, readlink: () => String.raw`..\a` },
      "win32",
    );
    expect(await disk.realPath("C:/link")).toBe("C:/shared/a");
    expect(await disk.readLink("C:/link")).toBe("../a");
  });
});

describe("a create that fails half-way", () => {
  const broken: Record<string, Partial<FileCalls>> = {
    write: { write: () => Promise.reject(failing("ENOSPC")) },
    sync: { fsync: () => Promise.reject(failing("ENOSPC")) },
    close: {
      // On a share the error of an earlier write comes with the close.
      close: (fd) => {
        closeSync(fd);
        throw failing("ENOSPC");
      },
    },
  };
  it.each(Object.keys(broken))("leaves no file and no descriptor behind when its %s fails", async (step) => {
    const root = makeScratch();
    const open: number[] = [];
    const calls: FileCalls = { ...blockingCalls, ...broken[step] };
    const counting: FileCalls = {
      ...calls,
      open: async (path, flags) => {
        const fd = await calls.open(path, flags);
        open.push(fd);
        return fd;
      },
      close: (fd) => {
        open.splice(open.indexOf(fd), 1);
        return calls.close(fd);
      },
    };
    const create = new NodeDisk(local, counting).createFile(join(root, "a"), new Uint8Array(10), { sync: true });
    await expect(create).rejects.toMatchObject({ code: "DISK_FULL", errno: "ENOSPC" });
    expect(readdirSync(root)).toEqual([]);
    expect(open).toEqual([]);
  });

  it("does not remove a file that was there before", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "theirs");
    await expect(
      openNodeDisk(path).then((disk) => disk.createFile(path, new Uint8Array(), { sync: true })),
    ).rejects.toMatchObject({ errno: "EEXIST" });
    expect(statSync(path).size).toBe(6);
  });
});

describe("syncDirectory", () => {
  it.each(["EINVAL", "ENOTSUP"])("reports %s of a file system that cannot sync directories", async (code) => {
    const disk = new NodeDisk(local, { ...blockingCalls, fsync: () => Promise.reject(failing(code)) }, "linux");
    await expect(disk.syncDirectory(makeScratch())).rejects.toMatchObject({ errno: code });
  });

  it("does nothing on Windows, which has no such call", async () => {
    const disk = new NodeDisk(local, { ...blockingCalls, fsync: () => Promise.reject(failing("EPERM")) }, "win32");
    await disk.syncDirectory(makeScratch());
  });
});

describe("an open file", () => {
  it("ends the users of its bare descriptor before it closes", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "");
    const steps: string[] = [];
    const calls: FileCalls = {
      ...blockingCalls,
      close: (fd) => {
        steps.push("closed");
        return blockingCalls.close(fd);
      },
    };
    const file = await new NodeDisk(local, calls).open(path, "read");
    if (!(file instanceof NodeFile)) throw new TypeError("not a NodeFile");
    file.use(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      steps.push("user ended");
    });
    const leave = file.use(async () => {
      steps.push("user that had left ended");
    });
    leave();
    await file.close();
    expect(steps).toEqual(["user ended", "closed"]);
  });

  it("closes only after what is under way, so that no operation meets a descriptor that is another file's by now", async () => {
    const path = join(makeScratch(), "a");
    writeFileSync(path, "content");
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const calls: FileCalls = {
      ...blockingCalls,
      read: async (fd, into, position) => {
        await gate;
        return blockingCalls.read(fd, into, position);
      },
    };
    const file = await new NodeDisk(local, calls).open(path, "read");
    const [reading, closing] = [file.read(0, 7), file.close()];
    await new Promise((resolve) => setImmediate(resolve));
    release();
    expect(new TextDecoder().decode(await reading)).toBe("content");
    await closing;
  });
});
