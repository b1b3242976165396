// The store lock: one writer at a time in a directory, among all processes that open it there. How it excludes is recorded in the directory.
import type { BlockingLock, Hold, OpenOptions, Waiting } from "../../common.ts";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import { findGateHolder } from "../../durable/gate/gate-holder.ts";
import { Ground } from "../../durable/liveness/ground.ts";
import {
  decideGate,
  findGate,
  findGateKind,
  lockPathOf,
  openOsGate,
  type GateKind,
} from "../../durable/gate/gate-record.ts";
import { checkExpectedStore } from "../../durable/publish/record-file.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import { workUnder, type PathHold } from "../path/path-hold.ts";
import { TablePathLocks } from "../path/service.ts";

/** Of the one lock in the table. */
const lockKey = ".store.lock";

export interface StoreLockOptions extends OpenOptions {
  /** Default 5_000. */
  timeoutMs?: number | undefined;
  /** Between machines: whoever is silent for so long has lost it. Default 30_000. */
  leaseMs?: number | undefined;
}

export interface StoreHold extends Hold {
  /** Whether anybody waits: time to hand over. True also where nobody can tell, as between machines. */
  isContended(): Promise<boolean>;
  /**
   * LOCK_LOST. One look at the disk: between machines others may have taken this process for dead, and on
   * one machine the lock file may have been deleted or replaced; then another process may be inside.
   */
  assertHeld(): Promise<void>;
  /** On one machine: of the lock file. A holder by a file that was deleted has another one. */
  readonly lockId: string;
}

export interface StoreLock extends AsyncDisposable {
  readonly path: string;
  /** How it excludes here. Recorded in the directory, so that all processes of all machines use the same; who cannot, refuses (UNSUPPORTED_DISK). */
  readonly gate: GateKind;
  tryAcquire(): Promise<StoreHold | undefined>;
  /** LOCK_TIMEOUT naming path, time, option and, as far as it is known, who has it. Not re-entrant. */
  acquire(options?: Waiting): Promise<StoreHold>;
  /** Who has it now, as far as it is known. For people: it may be another one by the time of the answer. */
  findHolder(): Promise<BlockingLock | undefined>;
  withLock<T>(work: (hold: StoreHold) => Promise<T>, options?: Waiting): Promise<T>;
  /** Whoever waits is told CLOSED. On one machine a hold of this object is waited for, so release it before: closing under it would let another process in beside its work. Between machines it is let go. */
  close(): Promise<void>;
}

/** What a store lock is made of: an OS lock on one machine, a lock in a table between several. */
type Excluder = Pick<StoreLock, "tryAcquire" | "findHolder" | "close"> & {
  readonly acquire: (options: Waiting & { readonly timeoutMs: number }) => Promise<StoreHold>;
};

export async function createStoreLock(
  ports: Ports,
  directory: string,
  { timeoutMs = 5000, leaseMs, ...meant }: StoreLockOptions = {},
): Promise<StoreLock> {
  checkTimeout(timeoutMs);
  checkExpectedStore({ what: "store lock", path: directory, found: await findGate(ports, directory) }, meant);
  const { gate, excluder } = await openExcluder(ports, directory, leaseMs);
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

async function openExcluder(
  ports: Ports,
  directory: string,
  leaseMs: number | undefined,
): Promise<{ gate: GateKind; excluder: Excluder }> {
  // Known already, as at every opening but the first: then an OS lock needs nothing else here.
  if ((await findGateKind(ports, directory)) === "os")
    return { gate: "os", excluder: await openOsGate(ports, directory) };
  await ensureDirectory(ports.disk, directory);
  // Not the ground of the path locks that somebody may have in the same directory: in one table with them, a lock on the whole tree would be in the way.
  const ground = await Ground.open(ports, groundOf(directory), { leaseMs });
  try {
    const gate = await decideGate(ports, ground.staging, directory);
    if (gate === "table") return { gate, excluder: await openTableGate(ground, directory) };
    const excluder = await openOsGate(ports, directory);
    await ground.close();
    return { gate, excluder };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/** One lock in a table that has no other: it holds between machines, and a holder that is silent for its lease loses it. */
async function openTableGate(ground: Ground, directory: string, { toLook = false } = {}): Promise<Excluder> {
  const path = lockPathOf(directory);
  // Errors name the path as this machine sees it; in the table its key is the same for all. Nothing of the tree is looked at.
  const keys = { clean: () => path, locate: async () => ({ path, key: lockKey }), keyOf: async () => lockKey };
  const locks = await TablePathLocks.open(ground, { keys, toLook, ownsGround: true });
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

function groundOf(directory: string): string {
  return `${directory}/.holdfast/gate`;
}

/** Who has the store lock of `directory`; undefined where there is none, or its holder is not known. Makes no lock. Also where nothing can be written. */
export async function findStoreHolder(ports: Ports, directory: string): Promise<BlockingLock | undefined> {
  const gate = await findGateKind(ports, directory);
  if (gate === undefined) return undefined;
  if (gate === "os") return await findGateHolder(ports, lockPathOf(directory));
  try {
    await using lock = await createStoreLock(ports, directory);
    return await lock.findHolder();
  } catch (error) {
    if (!isUnwritable(error)) throw error;
  }
  const table = await openTableGate(await Ground.openUnjoined(ports, groundOf(directory)), directory, { toLook: true });
  try {
    return await table.findHolder();
  } finally {
    await table.close();
  }
}
