// The calls of Node that the disk uses, in two tables of the same shape: blocking for a local
// volume, through libuv's pool for any other.
import * as fs from "node:fs";
import { promisify } from "node:util";
import { findErrno } from "./errno.ts";
import { statWithoutCache } from "./uncached-stat.ts";

/** A value or a promise of one. `await` accepts both, so the disk need not distinguish the two tables. */
export type Answer<T> = T | Promise<T>;

export interface FileCalls {
  /** `mode` applies to a file that this call makes. */
  open(path: string, flags: string | number, mode?: number): Answer<number>;
  /** Opens a large file for reading: through the page cache and with read-ahead, on every file system. */
  openBulk(path: string): Answer<number>;
  close(fd: number): Answer<void>;
  /** May read less than requested, like the system call. */
  read(fd: number, into: Uint8Array, position: number): Answer<number>;
  /** May write less than requested, like the system call. */
  write(fd: number, from: Uint8Array, position: number): Answer<number>;
  fsync(fd: number): Promise<void>;
  /** Like `fsync`, without the pool. Only where a call may block. */
  fsyncAtOnce?(fd: number): void;
  /** Syncs the content and the metadata needed to read it; not the time stamps. */
  fdatasync(fd: number): Promise<void>;
  /** Like `fdatasync`, without the pool. Only where a call may block. */
  fdatasyncAtOnce?(fd: number): void;
  fstat(fd: number): Answer<fs.BigIntStats>;
  fchmod(fd: number, mode: number): Answer<void>;
  fchown(fd: number, uid: number, gid: number): Answer<void>;
  stat(path: string): Answer<fs.BigIntStats>;
  /** Like `stat`, answered by the file system itself, not by a cache. */
  look(path: string): Answer<fs.BigIntStats>;
  /** True if the name exists now, according to the file system itself, not a cache. */
  isThere(path: string): Answer<boolean>;
  /** Undefined if nothing exists there. */
  lstat(path: string): Answer<fs.Stats | undefined>;
  /** Fails if the user that started the process lacks this access to `path`. */
  access(path: string, mode: number): Answer<void>;
  realpath(path: string): Answer<string>;
  readlink(path: string): Answer<string>;
  symlink(target: string, path: string): Answer<void>;
  link(from: string, to: string): Answer<void>;
  rename(from: string, to: string): Answer<void>;
  unlink(path: string): Answer<void>;
  mkdir(path: string): Answer<void>;
  rmdir(path: string): Answer<void>;
  /** Returns at most `count` names, so that an endless directory cannot fill the memory. */
  listSome(path: string, count: number): Answer<string[]>;
  /** True if `isWanted` accepts a name in the directory. Reads page by page, however many names there are. */
  hasName(path: string, isWanted: (name: string) => boolean): Answer<boolean>;
}

// Every user that the umask allows may read and write: processes of several users may share one
// folder.
const fileMode = 0o666;
// Names per system call. With Node's default of 32, a long directory takes a pool round trip for
// each handful.
const namesPerCall = 1024;
// A number loses the low bits of an inode above 2^53 (XFS, ReFS, some servers), and two files look
// like one. The bigint costs 0.2 µs of 2.
const exact = { bigint: true } as const;

/**
 * Opening a FIFO for reading waits for a writer forever; with this flag it does not. For a file the
 * flag means nothing, with one exception: a file that a server on this machine has lent to a client
 * (a lease) fails with EAGAIN instead of waiting, and is then opened without the flag.
 */
export const forReading: number = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0);

async function openPooled(path: string, flags: string | number, mode = fileMode): Promise<number> {
  const open = promisify(fs.open);
  if (flags !== "r") return await open(path, flags, mode);
  try {
    return await open(path, forReading);
  } catch (error) {
    if (findErrno(error) !== "EAGAIN") throw error;
    return await open(path, flags);
  }
}

function openBlocking(path: string, flags: string | number, mode = fileMode): number {
  if (flags !== "r") return fs.openSync(path, flags, mode);
  try {
    return fs.openSync(path, forReading);
  } catch (error) {
    if (findErrno(error) !== "EAGAIN") throw error;
    return fs.openSync(path, flags);
  }
}

/** Never blocks the event loop: one call to a share was measured to hang for 14 s. */
export const pooledCalls: FileCalls = {
  open: openPooled,
  openBulk: (path) => openPooled(path, "r"),
  close: promisify(fs.close),
  read: async (fd, into, position) => (await promisify(fs.read)(fd, into, 0, into.length, position)).bytesRead,
  write: async (fd, from, position) => (await promisify(fs.write)(fd, from, 0, from.length, position)).bytesWritten,
  fsync: promisify(fs.fsync),
  fdatasync: promisify(fs.fdatasync),
  fstat: (fd) => promisify(fs.fstat)(fd, exact),
  fchmod: promisify(fs.fchmod),
  fchown: promisify(fs.fchown),
  stat: (path) => promisify(fs.stat)(path, exact),
  look: (path) => statWithoutCache(pooledCalls, path),
  // An open reaches the server; a stat is answered from a cache.
  isThere: async (path) => {
    try {
      await promisify(fs.close)(await openPooled(path, "r"));
      return true;
    } catch (error) {
      if (isAbsence(error)) return false;
      throw error;
    }
  },
  lstat: (path) =>
    promisify(fs.lstat)(path).catch((error: unknown) => {
      if (isAbsence(error)) return undefined;
      throw error;
    }),
  access: (path, mode) => promisify(fs.access)(path, mode),
  realpath: (path) => promisify(fs.realpath.native)(path),
  readlink: (path) => promisify(fs.readlink)(path),
  symlink: (target, path) => promisify(fs.symlink)(target, path),
  link: promisify(fs.link),
  rename: promisify(fs.rename),
  unlink: promisify(fs.unlink),
  mkdir: (path) => promisify(fs.mkdir)(path),
  rmdir: (path) => promisify(fs.rmdir)(path),
  async listSome(path, count) {
    const names: string[] = [];
    const directory = await fs.promises.opendir(path, bufferFor(count));
    try {
      for (let left = count; left > 0; left--) {
        const entry = await directory.read();
        if (entry === null) break;
        names.push(entry.name);
      }
      return names;
    } finally {
      await directory.close();
    }
  },
  async hasName(path, isWanted) {
    for await (const { name } of await fs.promises.opendir(path, { bufferSize: namesPerCall }))
      if (isWanted(name)) return true;
    return false;
  },
};

function bufferFor(count: number): { readonly bufferSize: number } {
  return { bufferSize: Math.min(Math.max(count, 1), namesPerCall) };
}

/** Adds a case that Node itself does not treat as absence: a file in place of a directory. */
function withoutAbsence<T>(look: () => T | undefined): T | undefined {
  try {
    return look();
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

export function isAbsence(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(findErrno(error) ?? "");
}

// Copying more takes longer than the round trip to the pool.
const blockingBytesMax = 256 * 1024;

/**
 * Two to three times as fast as the pool for small operations on a local disk. Calls that wait for
 * the device still use the pool.
 */
export const blockingCalls: FileCalls = {
  open: openBlocking,
  openBulk: (path) => openBlocking(path, "r"),
  close: (fd) => fs.closeSync(fd),
  read: (fd, into, position) =>
    into.length > blockingBytesMax
      ? pooledCalls.read(fd, into, position)
      : fs.readSync(fd, into, 0, into.length, position),
  write: (fd, from, position) =>
    from.length > blockingBytesMax
      ? pooledCalls.write(fd, from, position)
      : fs.writeSync(fd, from, 0, from.length, position),
  fsync: promisify(fs.fsync),
  fdatasync: promisify(fs.fdatasync),
  fsyncAtOnce: (fd) => fs.fsyncSync(fd),
  fdatasyncAtOnce: (fd) => fs.fdatasyncSync(fd),
  fstat: (fd) => fs.fstatSync(fd, exact),
  fchmod: (fd, mode) => fs.fchmodSync(fd, mode),
  fchown: (fd, uid, gid) => fs.fchownSync(fd, uid, gid),
  stat: (path) => fs.statSync(path, exact),
  look: (path) => fs.statSync(path, exact),
  // One system call instead of two, and no error object for an absent file.
  isThere: (path) => withoutAbsence(() => fs.statSync(path, { throwIfNoEntry: false })) !== undefined,
  lstat: (path) => withoutAbsence(() => fs.lstatSync(path, { throwIfNoEntry: false })),
  access: (path, mode) => fs.accessSync(path, mode),
  realpath: (path) => fs.realpathSync.native(path),
  readlink: (path) => fs.readlinkSync(path),
  symlink: (target, path) => fs.symlinkSync(target, path),
  link: (from, to) => fs.linkSync(from, to),
  rename: (from, to) => fs.renameSync(from, to),
  unlink: (path) => fs.unlinkSync(path),
  mkdir: (path) => fs.mkdirSync(path),
  rmdir: (path) => fs.rmdirSync(path),
  listSome(path, count) {
    const names: string[] = [];
    const directory = fs.opendirSync(path, bufferFor(count));
    try {
      for (let left = count; left > 0; left--) {
        const entry = directory.readSync();
        if (entry === null) break;
        names.push(entry.name);
      }
      return names;
    } finally {
      directory.closeSync();
    }
  },
  hasName: (path, isWanted) => pooledCalls.hasName(path, isWanted),
};
