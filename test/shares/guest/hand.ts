// A hand in a guest: does one operation on the share after the other, as it is told, and says what
// came of each and how long it took.
import { createHash } from "node:crypto";
import type { Dir } from "node:fs";
import {
  open,
  opendir,
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rmdir,
  stat,
  unlink,
  type FileHandle,
} from "node:fs/promises";
import { basename, dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tryLock, unlock } from "fs-native-extensions";
import { isHoldfastError } from "../../../src/errors.ts";
import { openNodeDisk } from "../../../src/ports/node/disk/disk.ts";
import { report } from "../../../harness/processes/child-side.ts";
import { objectOperations } from "./object-hand.ts";

export interface HandOrder {
  readonly id: number;
  readonly operation: HandOperation;
  readonly args: readonly (string | number)[];
}

export interface HandAnswer {
  readonly id: number;
  readonly ms: number;
  readonly value?: unknown;
  /** As libuv calls it; ESTALE, which it does not know, by its name. */
  readonly errno?: string;
}

export type HandOperation = keyof typeof operations;

const handles = new Map<number, FileHandle | Dir>();
let lastHandle = 0;
let lastLink = 0;
/** A client of NFS 4 waits for 5 s. */
const stateMs = 4500;
/** For all opens of one order. */
const openMsMax = 60_000;
const megabyte = 1024 * 1024;

function handleOf(id: number): FileHandle {
  const handle = handles.get(id);
  if (handle === undefined || !("fd" in handle)) throw new RangeError(`There is no file with the handle ${id}.`);
  return handle;
}

/**
 * "open" is how a chain asks whether its epoch is open. The others are what it could ask instead.
 */
export type Question = keyof typeof questions;

const questions = {
  open: async (path: string): Promise<boolean> => await (await openNodeDisk(path)).canOpen(path),
  // An NFS client asks the server for a directory's attributes when it opens it, and then knows
  // whether the names that it remembers still hold.
  "open after its directory": async (path: string): Promise<boolean> => {
    await (await open(dirname(path), "r")).close();
    return await questions.open(path);
  },
  // What a chain does: it links a slot into the directory first. The answer to that tells the
  // client, too, whether others have changed it.
  "open after a link beside it": async (path: string, unique: string): Promise<boolean> => {
    await (await open(unique, "w")).close();
    await link(unique, `${path}.${String(lastLink++)}`);
    await unlink(unique);
    return await questions.open(path);
  },
  stat: async (path: string): Promise<boolean> => await succeeds(() => stat(path)),
  readdir: async (path: string): Promise<boolean> => (await readdir(dirname(path))).includes(basename(path)),
  "link from it": async (path: string, unique: string): Promise<boolean> =>
    await succeeds(async () => {
      await link(path, unique);
      await unlink(unique);
    }),
  // What a waiter asks of the hold file of another: its inode has another name, so a client that
  // acts on a handle which it remembers links from that.
  "link from it after its directory": async (path: string, unique: string): Promise<boolean> => {
    await (await open(dirname(path), "r")).close();
    return await questions["link from it"](path, unique);
  },
  "link from it after a link beside it": async (path: string, unique: string): Promise<boolean> => {
    await questions["open after a link beside it"](path, unique);
    return await questions["link from it"](path, unique);
  },
  /** Of directories. */
  "list it": async (path: string): Promise<boolean> => await succeeds(() => readdir(path)),
  "open it": async (path: string): Promise<boolean> =>
    await succeeds(async () => await (await open(path, "r")).close()),
  "exclusive create": async (path: string): Promise<boolean> => {
    const isFree = await succeeds(async () => await (await open(path, "wx")).close(), ["EEXIST"]);
    if (isFree) await unlink(path);
    return !isFree;
  },
};

/** False when it fails in the way that was expected. */
async function succeeds(
  action: () => Promise<unknown>,
  otherwise: readonly string[] = ["ENOENT", "ESTALE"],
): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    if (otherwise.includes(errnoOf(error))) return false;
    throw error;
  }
}

const operations = {
  ...objectOperations,
  open: async (path: string, flags: string): Promise<number> => {
    handles.set(++lastHandle, await open(path, flags));
    return lastHandle;
  },
  /** A listing that is begun and not ended: on some shares that is when the directory is opened. */
  openListing: async (path: string): Promise<number> => {
    const listing = await opendir(path);
    await listing.read();
    handles.set(++lastHandle, listing);
    return lastHandle;
  },
  /**
   * Several at a time open and close one file. Tells how many opens took as long as a client waits for a state that it
   * misses, and how many have not come back.
   */
  openAndClose: async (how: "node" | "disk", path: string, callers: number, times: number) => {
    const disk = await openNodeDisk(path);
    const openOne = async (): Promise<{ close(): Promise<void> }> =>
      how === "disk" ? await disk.open(path, "read") : await open(path, "r");
    const counts = { opened: 0, slow: 0, missing: 0 };
    const call = async (): Promise<void> => {
      while (counts.opened + counts.missing < times) {
        const startMs = performance.now();
        counts.missing++;
        const file = await openOne();
        counts.missing--;
        counts.opened++;
        if (performance.now() - startMs > stateMs) counts.slow++;
        await file.close();
      }
    };
    const all = Promise.all(Array.from({ length: callers }, call));
    await Promise.race([all, sleep(openMsMax)]);
    return counts;
  },
  close: async (id: number): Promise<void> => {
    await handles.get(id)?.close();
    handles.delete(id);
  },
  pwrite: async (id: number, text: string, at: number): Promise<void> => void (await handleOf(id).write(text, at)),
  sync: async (id: number): Promise<void> => await handleOf(id).sync(),
  tryLock: async (id: number): Promise<boolean> => tryLock(handleOf(id).fd, 0, 0),
  unlock: async (id: number): Promise<void> => unlock(handleOf(id).fd, 0, 0),
  /** A complete, synced file. */
  make: async (path: string, text: string): Promise<void> => {
    const handle = await open(path, "wx");
    try {
      await handle.write(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
  link,
  rename,
  unlink,
  mkdir: async (path: string): Promise<void> => await mkdir(path),
  rmdir: async (path: string): Promise<void> => await rmdir(path),
  readdir: async (path: string): Promise<string[]> => await readdir(path),
  readFile: async (path: string): Promise<string> => await readFile(path, "utf8"),
  readByDisk: async (path: string): Promise<string> =>
    Buffer.from(await (await openNodeDisk(path)).readFile(path, 1000)).toString(),
  /** The first `count` names, by our disk. */
  listByDisk: async (path: string, count: number): Promise<string[]> =>
    await (await openNodeDisk(path)).listSome(path, count),
  /** Empty files with numbers for names. */
  makeMany: async (path: string, count: number): Promise<void> => {
    for (let number = 0; number < count; number++) await (await open(`${path}/${number}`, "wx")).close();
  },
  /** Of those files the first, as far as they are there. */
  removeMany: async (path: string, count: number): Promise<void> => {
    for (let number = 0; number < count; number++) await succeeds(() => unlink(`${path}/${number}`), ["ENOENT"]);
  },
  /** A synced file of so many megabytes, each of them different; gives its hash. */
  makeLarge: async (path: string, megabytes: number): Promise<string> => {
    const [handle, hash] = [await open(path, "wx"), createHash("sha256")];
    try {
      for (let number = 0; number < megabytes; number++) {
        const bytes = Buffer.alloc(megabyte, `${number},`);
        hash.update(bytes);
        await handle.write(bytes);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    return hash.digest("hex");
  },
  /** By our disk, as it reads payloads or as it reads records; gives the hash. */
  readLarge: async (path: string, isBulk: number): Promise<string> => {
    const file = await (await openNodeDisk(path)).open(path, "read", { isBulk: isBulk === 1 });
    const hash = createHash("sha256");
    try {
      for (let offset = 0; ;) {
        const piece = await file.read(offset, megabyte);
        if (piece.length === 0) return hash.digest("hex");
        hash.update(piece);
        offset += piece.length;
      }
    } finally {
      await file.close();
    }
  },
  lookByDisk: async (path: string): Promise<string> => (await (await openNodeDisk(path)).look(path)).kind,
  stat: async (path: string): Promise<object> => {
    const { dev, ino, nlink, size } = await stat(path);
    return { dev, ino, nlink, size };
  },
  /**
   * Whether the path is there, asked in one of several ways. `unique`: a path that no other process
   * uses.
   */
  isThere: async (how: Question, path: string, unique: string): Promise<boolean> => await questions[how](path, unique),
  /**
   * Asks every `everyMs` whether the path is there, until it is not: how long that took, or
   * undefined after `msMax`.
   */
  awaitAbsence: async (how: "stat" | "open", path: string, everyMs: number, msMax: number) => {
    const startMs = performance.now();
    for (;;) {
      try {
        if (how === "stat") await stat(path);
        else await (await open(path, "r")).close();
      } catch (error) {
        return { ms: performance.now() - startMs, errno: errnoOf(error) };
      }
      if (performance.now() - startMs > msMax) return undefined;
      await sleep(everyMs);
    }
  },
};

function errnoOf(error: unknown): string {
  if (isHoldfastError(error)) return error.code;
  if (!(error instanceof Error) || !("errno" in error)) return String(error);
  return error.errno === -116 ? "ESTALE" : String("code" in error ? error.code : error.errno);
}

// The bed loads this file for its types only.
process.on("message", (order: HandOrder) => void obey(order));
process.once("disconnect", () => process.exit(1));
report({ id: 0, ms: 0 });

async function obey({ id, operation, args }: HandOrder): Promise<void> {
  // The arguments come from `Hand`, which is typed by these operations.
  const act = operations[operation] as (...args: readonly unknown[]) => Promise<unknown>;
  const startMs = performance.now();
  const ms = (): number => Math.round((performance.now() - startMs) * 100) / 100;
  try {
    const value = await act(...args);
    report({ id, ms: ms(), value } satisfies HandAnswer);
  } catch (error) {
    report({ id, ms: ms(), errno: errnoOf(error) } satisfies HandAnswer);
  }
}
