// The store lock: one writer at a time in a directory, among all processes that open it. The
// directory records how it excludes.
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
import { TablePathLocks } from "../path/service.ts";

export interface StoreLockOptions extends OpenOptions {
  /** Default 5_000. */
  timeoutMs?: number | undefined;
  /** Between machines: a holder that is silent for this long has lost the lock. Default 30_000. */
  leaseMs?: number | undefined;
}

export interface StoreHold extends Hold {
  /**
   * Whether another process waits: time to hand over. True where that cannot be told, as between
   * machines.
   */
  isContended(): Promise<boolean>;
  /**
   * LOCK_LOST. Looks at the disk once. Between machines this process may have been declared dead;
   * on one machine the lock file may have been deleted or replaced. Another process may then hold
   * the lock.
   */
  assertHeld(): Promise<void>;
  /**
   * On one machine: identifies the lock file. A process that holds a deleted file has another id.
   */
  readonly lockId: string;
}

export interface StoreLock extends AsyncDisposable {
  readonly path: string;
  /**
   * How it excludes here. Recorded in the directory, so that all processes of all machines use the
   * same; a process that cannot refuses to open it (UNSUPPORTED_DISK).
   */
  readonly gate: GateKind;
  tryAcquire(): Promise<StoreHold | undefined>;
  /** LOCK_TIMEOUT names path, time, option and, if known, the holder. Not re-entrant. */
  acquire(options?: Waiting): Promise<StoreHold>;
  /** The holder now, if known. For people: it may have changed by the time of the answer. */
  findHolder(): Promise<BlockingLock | undefined>;
  withLock<T>(work: (hold: StoreHold) => Promise<T>, options?: Waiting): Promise<T>;
  /**
   * Waiters get CLOSED. On one machine it waits until a hold of this object is released: closing
   * under it would let another process in beside its work. Between machines the hold is released.
   */
  close(): Promise<void>;
}

/** What excludes: an OS lock on one machine, a lock in a table between machines. */
type Excluder = Pick<StoreLock, "tryAcquire" | "findHolder" | "close"> & {
  readonly acquire: (options: Waiting & { readonly timeoutMs: number }) => Promise<StoreHold>;
};

export interface InGround {
  /** Of the store whose part `directory` is: a new lock is recorded as one in its table. It stays open. */
  readonly ground?: Ground | undefined;
}

export async function createStoreLock(
  ports: Ports,
  directory: string,
  { timeoutMs = 5000, leaseMs, ground, ...meant }: StoreLockOptions & InGround = {},
): Promise<StoreLock> {
  checkTimeout(timeoutMs);
  checkExpectedStore({ what: "store lock", path: directory, found: await findGate(ports, directory) }, meant);
  const { gate, excluder } = await openExcluder(ports, directory, { leaseMs, ground });
  const acquire = (options: Waiting = {}): Promise<StoreHold> =>
    excluder.acquire({ signal: options.signal, timeoutMs: options.timeoutMs ?? timeoutMs });
  const close = (): Promise<void> => excluder.close();
  return {
    path: lockPathOf(directory),
    gate,
    tryAcquire: () => excluder.tryAcquire(),
    acquire,
    findHolder: () => excluder.findHolder(),
    withLock: async (work, options) => await workUnder(await acquire(options), work),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * A store lock in a directory where nothing can be written now: it is opened by its first use,
 * which fails for as long as that is so.
 */
export function createLateStoreLock(path: string, gate: GateKind, open: () => Promise<StoreLock>): StoreLock {
  let opening: Promise<StoreLock> | undefined;
  const opened = (): Promise<StoreLock> =>
    (opening ??= open().catch((error: unknown) => {
      // There may be room, or permission, at the next call.
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
  { leaseMs, ground: shared }: { readonly leaseMs: number | undefined } & InGround,
): Promise<{ gate: GateKind; excluder: Excluder }> {
  const known = await findGate(ports, directory);
  // Recorded already, as at every opening but the first: an OS lock needs nothing else here.
  if (known?.gate === "os") return { gate: "os", excluder: await openOsGate(ports, directory) };
  await ensureDirectory(ports.disk, directory);
  const path = known === undefined && shared !== undefined ? shared.layout.directory : groundOf(directory, known);
  const isShared = shared?.layout.directory === path;
  // A ground elsewhere is that of a store, which makes it.
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
  // Another process has decided meanwhile, for another ground: follow its record.
  await leave();
  return await openExcluder(ports, directory, { leaseMs, ground: shared });
}

/** A lock in a table: it holds between machines, and a holder that is silent for its lease loses it. */
async function openTableGate(
  ground: Ground,
  directory: string,
  record: GateRecord,
  { toLook = false, ownsGround = true } = {},
): Promise<Excluder> {
  const path = lockPathOf(directory);
  const lockKey = keyOf(ground, directory, record);
  // Errors name the path as this machine sees it; its key in the table is the same for all. The
  // tree is not looked at.
  const keys = { clean: () => path, locate: async () => ({ path, key: lockKey }), keyOf: async () => lockKey };
  const locks = await TablePathLocks.open(ground, { keys, toLook, ownsGround });
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
 * Not the ground of the path locks that a user may have in the same directory: in one table with them, a
 * lock on the whole tree would be in the way. A store has one ground, and the lock a name in it.
 */
function groundOf(directory: string, record: GateRecord | undefined): string {
  return record?.ground === undefined ? `${directory}/.holdfast/gate` : posix.join(directory, record.ground);
}

function recordedGround(directory: string, { layout }: Ground): Pick<GateRecord, "ground"> {
  if (layout.directory === groundOf(directory, undefined)) return {};
  return { ground: posix.relative(directory, layout.directory) };
}

/** In a table of its own it is the only lock. In that of a store its key begins with a slash: no file has such a key. */
function keyOf({ layout }: Ground, directory: string, { ground }: GateRecord): string {
  if (ground === undefined) return ".store.lock";
  return `/${posix.relative(parentOf(layout.directory), directory)}/.store.lock`;
}

/**
 * The holder of the store lock of `directory`; undefined where there is no lock or its holder is
 * unknown. Makes no lock, and works where nothing can be written.
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
    toLook: true,
  });
  try {
    return await table.findHolder();
  } finally {
    await table.close();
  }
}
