// The store lock: one writer at a time in a directory, among all processes that open it. The directory records which
// kind of lock that is.
import { posix } from "node:path";
import type { BlockingLock, Hold, OpenOptions, Waiting } from "../../common.ts";
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import { findGateHolder } from "../../durable/gate/gate-holder.ts";
import { Ground } from "../../durable/liveness/ground.ts";
import {
  decideGate,
  findGate,
  lockPathOf,
  openOsGate,
  type GateKind,
  type GateRecord,
} from "../../durable/gate/gate-record.ts";
import { checkExpectedStore } from "../../durable/publish/record-file.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import { workUnder, type PathHold } from "../path/path-hold.ts";
import { TablePathLocks } from "../path/table-path-locks.ts";
import type { RequestTable } from "../table/request-table.ts";

/** Options of `openStoreLock`. */
export interface StoreLockOptions extends OpenOptions {
  /** Default `timeoutMs` of `acquire`. Default 5,000. */
  timeoutMs?: number | undefined;
  /** Between machines: a holder that is silent for this long has lost the lock. Default 30,000. */
  leaseMs?: number | undefined;
}

/** A held store lock. */
export interface StoreHold extends Hold {
  /** Returns true if another process waits for the lock, or if that is unknown, as between machines. */
  isContended(): Promise<boolean>;
  /**
   * Checks against the disk that the lock is still held. Between machines, this process may have
   * been judged dead; on one machine, the lock file may have been deleted or replaced. Throws
   * LOCK_LOST.
   */
  assertHeld(): Promise<void>;
  /** On one machine: identifies the lock file. A process that holds a deleted file has another id. */
  readonly lockId: string;
  /**
   * On one machine only. Frees the lock without waking the process that waits for it, for a holder
   * that may `resume` in a moment. To hand the lock over, `release`.
   */
  pause?(): Promise<void>;
  /**
   * Acquires the paused lock again, before those that wait. Returns false if another process has
   * acquired it meanwhile: then this hold is released.
   */
  resume?(): Promise<boolean>;
}

/** The lock of a directory: one writer at a time. It is not re-entrant. */
export interface StoreLock extends AsyncDisposable {
  /** The path of the lock. */
  readonly path: string;
  /**
   * `os`: an OS lock, on one machine. `table`: a lock in a table, between machines. The directory
   * records it, so all processes use the same.
   */
  readonly gate: "os" | "table";
  /** Acquires the lock if it is free. Returns undefined if another holder has it. */
  tryAcquire(): Promise<StoreHold | undefined>;
  /**
   * Acquires the lock, and waits for at most `timeoutMs`. Throws LOCK_TIMEOUT, with the holder if
   * it is known, and CLOSED.
   */
  acquire(options?: Waiting): Promise<StoreHold>;
  /** Returns the current holder, if it is known. For people: it may have changed since. */
  findHolder(): Promise<BlockingLock | undefined>;
  /**
   * Runs `work` under the lock and always releases it. Passes errors of `work` on unchanged. Throws
   * as `acquire` does, and LOCK_LOST if the lock was lost before `work` ended.
   */
  withLock<T>(work: (hold: StoreHold) => Promise<T>, options?: Waiting): Promise<T>;
  /**
   * Closes the lock; waiting callers get CLOSED. On one machine it waits until a hold of this
   * object is released, because closing earlier would admit another process. Between machines it
   * releases the hold.
   */
  close(): Promise<void>;
}

/** The underlying lock: an OS lock on one machine, a lock in a table between machines. */
type UnderlyingLock = Pick<StoreLock, "tryAcquire" | "findHolder" | "close"> & {
  readonly acquire: (options: Waiting & { readonly timeoutMs: number }) => Promise<StoreHold>;
};

export interface GroundOption {
  /**
   * The ground of the store whose part `directory` is. A new lock is recorded as one in its table. This lock does not
   * close it.
   */
  readonly ground?: Ground | undefined;
}

export async function createStoreLock(
  ports: Ports,
  directory: string,
  { timeoutMs = 5000, leaseMs, ground, ...meant }: StoreLockOptions & GroundOption = {},
): Promise<StoreLock> {
  checkTimeout(timeoutMs);
  checkExpectedStore({ what: "store lock", path: directory, found: await findGate(ports, directory) }, meant);
  const { gate, excluder } = await openExcluder(ports, directory, { leaseMs, ground });
  return storeLockOf({ path: lockPathOf(directory), gate, excluder, timeoutMs });
}

/** Returns a store lock that is a lock on `path` in a table. Closing it closes `locks`. */
export function tableStoreLock(locks: TablePathLocks<RequestTable>, path: string, timeoutMs = 5000): StoreLock {
  checkTimeout(timeoutMs);
  return storeLockOf({ path, gate: "table", excluder: tableExcluder(locks, path), timeoutMs });
}

interface StoreLockContext extends Pick<StoreLock, "path" | "gate"> {
  readonly excluder: UnderlyingLock;
  readonly timeoutMs: number;
}

function storeLockOf({ path, gate, excluder, timeoutMs }: StoreLockContext): StoreLock {
  const acquire = (options: Waiting = {}): Promise<StoreHold> =>
    excluder.acquire({ signal: options.signal, timeoutMs: options.timeoutMs ?? timeoutMs });
  const close = (): Promise<void> => excluder.close();
  return {
    path,
    gate,
    tryAcquire: () => excluder.tryAcquire(),
    acquire,
    findHolder: () => excluder.findHolder(),
    withLock: async (work, options) => await workUnder(await acquire(options), work),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A store lock in a directory that is not writable now. The first use opens it, and fails as long as that is so. */
export function createLateStoreLock(path: string, gate: GateKind, open: () => Promise<StoreLock>): StoreLock {
  let opening: Promise<StoreLock> | undefined;
  const opened = (): Promise<StoreLock> =>
    (opening ??= open().catch((error: unknown) => {
      // Retry at the next call: there may be space or permission then.
      opening = undefined;
      throw error;
    }));
  const acquire = async (options?: Waiting): Promise<StoreHold> => await (await opened()).acquire(options);
  const close = async (): Promise<void> => {
    const lock = await opening?.catch(() => undefined);
    await lock?.close();
  };
  return {
    path,
    gate,
    tryAcquire: async () => await (await opened()).tryAcquire(),
    acquire,
    findHolder: async () => await (await opened()).findHolder(),
    withLock: async (work, options) => await workUnder(await acquire(options), work),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function openExcluder(
  ports: Ports,
  directory: string,
  { leaseMs, ground: shared }: { readonly leaseMs: number | undefined } & GroundOption,
): Promise<{ gate: GateKind; excluder: UnderlyingLock }> {
  const known = await findGate(ports, directory);
  // Already recorded, as at every opening but the first. An OS lock needs nothing else here.
  if (known?.gate === "os") return { gate: "os", excluder: await openOsGate(ports, directory) };
  await ensureDirectory(ports.disk, directory);
  const path = known === undefined && shared !== undefined ? shared.layout.directory : groundOf(directory, known);
  const isShared = shared?.layout.directory === path;
  // A ground outside this directory belongs to a store, which creates it.
  const ground = isShared ? shared : await Ground.open(ports, path, { leaseMs, create: known?.ground === undefined });
  const leave = async (): Promise<void> => {
    if (!isShared) await ground.close();
  };
  try {
    const record = known ?? (await decideGate(ports, ground.staging, directory, recordedGround(directory, ground)));
    if (record.gate === "os") {
      const excluder = await openOsGate(ports, directory);
      await leave();
      return { gate: "os", excluder };
    }
    if (groundOf(directory, record) === path)
      return { gate: "table", excluder: await openTableGate(ground, directory, record, { ownsGround: !isShared }) };
  } catch (error) {
    await leave();
    throw error;
  }
  // Another process has decided meanwhile, with another ground. Its record decides.
  await leave();
  return await openExcluder(ports, directory, { leaseMs, ground: shared });
}

/**
 * Opens a lock in a table. It excludes processes of all machines, and a holder that is silent for its lease loses it.
 */
async function openTableGate(
  ground: Ground,
  directory: string,
  record: GateRecord,
  { listOnly = false, ownsGround = true } = {},
): Promise<UnderlyingLock> {
  const path = lockPathOf(directory);
  const lockKey = keyOf(ground, directory, record);
  // Errors show the path as this machine sees it, but its key in the table is the same for all. The tree is not read.
  const keys = { clean: () => path, locate: async () => ({ path, key: lockKey }), keyOf: async () => lockKey };
  return tableExcluder(await TablePathLocks.open(ground, { keys, listOnly, ownsGround }), path);
}

function tableExcluder(locks: TablePathLocks<RequestTable>, path: string): UnderlyingLock {
  return {
    tryAcquire: async () => {
      const hold = await locks.tryAcquire(path);
      return hold === undefined ? undefined : storeHold(hold);
    },
    acquire: async (options) => storeHold(await locks.acquire(path, options)),
    findHolder: async () => {
      const [held] = await locks.list();
      return held && { path, mode: held.mode, shared: held.shared, holder: held.holder, since: held.since };
    },
    close: () => locks.close(),
  };
}

function storeHold(hold: PathHold): StoreHold {
  const { signal, acquiredAt } = hold;
  const release = (): Promise<void> => hold.release();
  return {
    signal,
    acquiredAt,
    release,
    isContended: async () => true,
    assertHeld: () => hold.assertHeld(),
    lockId: "",
    [Symbol.asyncDispose]: release,
  };
}

/**
 * Returns a ground of its own, not that of path locks which a user may have in the same directory: in a common table,
 * a lock on the whole tree would block this one. A store has one ground, in which the lock is a name.
 */
function groundOf(directory: string, record: GateRecord | undefined): string {
  return record?.ground === undefined ? `${directory}/.holdfast/gate` : posix.join(directory, record.ground);
}

function recordedGround(directory: string, { layout }: Ground): Pick<GateRecord, "ground"> {
  if (layout.directory === groundOf(directory, undefined)) return {};
  return { ground: posix.relative(directory, layout.directory) };
}

/**
 * In its own table it is the only lock. In that of a store its key begins with a slash, so no file has the same key.
 */
function keyOf({ layout }: Ground, directory: string, { ground }: GateRecord): string {
  if (ground === undefined) return ".store.lock";
  return `/${posix.relative(parentOf(layout.directory), directory)}/.store.lock`;
}

/**
 * Returns the holder of the store lock of `directory`, or undefined if there is no lock or its holder is unknown.
 * Creates no lock, and works on a disk that is not writable.
 */
export async function findStoreHolder(ports: Ports, directory: string): Promise<BlockingLock | undefined> {
  const record = await findGate(ports, directory);
  if (record === undefined) return undefined;
  if (record.gate === "os") return await findGateHolder(ports, lockPathOf(directory));
  try {
    await using lock = await createStoreLock(ports, directory);
    return await lock.findHolder();
  } catch (error) {
    if (!isUnwritable(error)) throw error;
  }
  const table = await openTableGate(await Ground.openUnjoined(ports, groundOf(directory, record)), directory, record, {
    listOnly: true,
  });
  try {
    return await table.findHolder();
  } finally {
    await table.close();
  }
}
