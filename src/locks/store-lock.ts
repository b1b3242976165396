// The store lock: one writer at a time in a directory, among all processes that open it there. How it excludes is recorded in the directory.
import type { Hold, Waiting } from "../common.ts";
import { ensureDirectory } from "../durable/directory.ts";
import { checkTimeout } from "../durable/deadline.ts";
import { Ground } from "../durable/ground.ts";
import { decideGate, findGateKind, lockPathOf, openOsGate, type GateKind } from "../durable/open-gate.ts";
import type { Ports } from "../ports/ports.ts";
import { KnownGate, OwnStoreHolds } from "./own-store-holds.ts";
import { TablePathLocks } from "./table-path-locks.ts";
import { workUnder } from "./work-under.ts";

/** Of the one lock in the table. */
const lockKey = ".store.lock";

export interface StoreLockOptions {
  /** Default 5_000. */
  timeoutMs?: number | undefined;
  /** Between machines: whoever is silent for so long has lost it. Default 30_000. */
  leaseMs?: number | undefined;
}

export interface StoreHold extends Hold {
  /** Whether anybody waits: time to hand over. True also where nobody can tell, as between machines. */
  isContended(): Promise<boolean>;
}

export interface StoreLock extends AsyncDisposable {
  readonly path: string;
  /** How it excludes here. Recorded in the directory, so that all processes of all machines use the same; who cannot, refuses (UNSUPPORTED_DISK). */
  readonly gate: GateKind;
  tryAcquire(): Promise<StoreHold | undefined>;
  /** LOCK_TIMEOUT naming path, time and option; who has it as well, if that is this process or the gate is a table. Not re-entrant. */
  acquire(options?: Waiting): Promise<StoreHold>;
  withLock<T>(work: (hold: StoreHold) => Promise<T>, options?: Waiting): Promise<T>;
  /** Whoever waits is told CLOSED. On one machine a hold of this object is waited for, so release it before: closing under it would let another process in beside its work. Between machines it is let go. */
  close(): Promise<void>;
}

/** What a store lock is made of: an OS lock on one machine, a lock in a table between several. */
type Excluder = Pick<StoreLock, "tryAcquire" | "close"> & {
  readonly acquire: (options: Waiting & { readonly timeoutMs: number }) => Promise<StoreHold>;
};

export async function createStoreLock(
  ports: Ports,
  directory: string,
  { timeoutMs = 5000, leaseMs }: StoreLockOptions = {},
  ownHolds: OwnStoreHolds = new OwnStoreHolds(),
): Promise<StoreLock> {
  checkTimeout(timeoutMs);
  const { gate, excluder } = await openExcluder(ports, directory, leaseMs, ownHolds);
  const acquire = (options: Waiting = {}): Promise<StoreHold> =>
    excluder.acquire({ signal: options.signal, timeoutMs: options.timeoutMs ?? timeoutMs });
  const close = (): Promise<void> => excluder.close();
  return {
    path: lockPathOf(directory),
    gate,
    tryAcquire: () => excluder.tryAcquire(),
    acquire,
    withLock: async (work, options) => await workUnder(await acquire(options), work),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function openExcluder(
  ports: Ports,
  directory: string,
  leaseMs: number | undefined,
  ownHolds: OwnStoreHolds,
): Promise<{ gate: GateKind; excluder: Excluder }> {
  const openKnownGate = async (): Promise<Excluder> =>
    new KnownGate(await openOsGate(ports, directory), lockPathOf(directory), ports.host, ownHolds);
  // Known already, as at every opening but the first: then an OS lock needs nothing else here.
  if ((await findGateKind(ports, directory)) === "os") return { gate: "os", excluder: await openKnownGate() };
  await ensureDirectory(ports.disk, directory);
  // Not the ground of the path locks that somebody may have in the same directory: in one table with them, a lock on the whole tree would be in the way.
  const ground = await Ground.open(ports, `${directory}/.holdfast/gate`, { leaseMs });
  try {
    const gate = await decideGate(ports, ground.staging, directory);
    if (gate === "table") return { gate, excluder: await openTableGate(ground, directory) };
    const excluder = await openKnownGate();
    await ground.close();
    return { gate, excluder };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/** One lock in a table that has no other: it holds between machines, and a holder that is silent for its lease loses it. */
async function openTableGate(ground: Ground, directory: string): Promise<Excluder> {
  const path = lockPathOf(directory);
  // Errors name the path as this machine sees it; in the table its key is the same for all. Nothing of the tree is looked at.
  const keys = { clean: () => path, locate: async () => ({ path, key: lockKey }), keyOf: async () => lockKey };
  const locks = await TablePathLocks.open(ground, { keys, ownsGround: true });
  return {
    tryAcquire: async () => {
      const hold = await locks.tryAcquire(path);
      return hold === undefined ? undefined : storeHold(hold);
    },
    acquire: async (options) => storeHold(await locks.acquire(path, options)),
    close: () => locks.close(),
  };
}

function storeHold(hold: Hold): StoreHold {
  const { signal, acquiredAt } = hold;
  const release = (): Promise<void> => hold.release();
  return { signal, acquiredAt, release, isContended: async () => true, [Symbol.asyncDispose]: release };
}
