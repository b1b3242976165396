// Chooses the lock that `holdfast run` takes, and gives all kinds one interface.
import { isHoldfastError, type Waiting } from "../../index.ts";
import { findLockRoot, followPath, openPathLocks, Semaphore, type HeldLock, type PathHold } from "../../locks/index.ts";
import type { Run } from "../run.ts";
import { isDatabase } from "../commands/location.ts";
import type { Blocking } from "./explained-wait.ts";
import { resolveBelow, namedRoot } from "./meant-path.ts";
import { TimeLeft } from "./patience.ts";
import { waitForSemaphore } from "./semaphore-first.ts";

/** The lock that the user asked for. */
export interface LockWish {
  readonly path: string;
  readonly store?: string | undefined;
  readonly tree: boolean;
  readonly shared: boolean;
  /** True if a named store may be created. */
  readonly create: boolean;
}

export interface ChosenLock extends AsyncDisposable {
  /** The name of the lock, for people. */
  readonly name: string;
  /** Returns the locks that block it now, for people. */
  findBlocking(): Promise<readonly Blocking[]>;
  /** Acquires the lock. `tag` tells others what it is held for. Throws LOCK_TIMEOUT. */
  acquire(options: Waiting & { readonly tag: string }): Promise<TakenLock>;
}

export interface TakenLock {
  /** Aborts, with LOCK_LOST as its reason, if the lock is lost. */
  readonly signal: AbortSignal;
  /** Environment of the command that runs under the lock. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * Releases the lock. Returns a LOCK_LOST error if the lock was lost earlier without being
   * noticed.
   */
  release(): Promise<unknown>;
}

/**
 * Returns the path lock; undefined if there is no store above the path: then a semaphore file is
 * used.
 */
export async function findPathLock(
  { path, store, tree, shared, create }: LockWish,
  run: Pick<Run, "output">,
): Promise<ChosenLock | undefined> {
  const root = store === undefined ? (await findLockRoot(path))?.root : await namedRoot(store, create, run);
  if (root === undefined) return undefined;
  const { absolute, inside } = await resolveBelow(root, store === undefined ? (await followPath(path)).path : path);
  const locks = await openPathLocks(root);
  // Names in a database have no files beside them.
  const semaphore = isDatabase(root) ? undefined : semaphoreFileOf(absolute);
  return {
    name: absolute,
    findBlocking: async () => [
      ...(await locks.list()).filter((lock) => isBlocking(lock, inside, tree) && !(shared && lock.shared)),
      // No semaphore file can exist there, so none is held.
      ...(semaphore === undefined ? [] : await findSemaphoreHolder(new Semaphore(semaphore)).catch(() => [])),
    ],
    acquire: async (options) => {
      const patience = new TimeLeft(options);
      const hold = await locks.acquire(inside, { ...options, mode: tree ? "tree" : "exact", shared });
      try {
        // A lock that is already held may be lost during this wait.
        const signal = AbortSignal.any([hold.signal, ...(options.signal === undefined ? [] : [options.signal])]);
        if (semaphore !== undefined) await waitForSemaphore(semaphore, { ...patience.left(), signal });
        signal.throwIfAborted();
      } catch (error) {
        await hold.release();
        throw error;
      }
      const environment = { HOLDFAST_FENCE: String(hold.fence) };
      return { signal: hold.signal, environment, release: () => releasePath(hold) };
    },
    [Symbol.asyncDispose]: () => locks.close(),
  };
}

/** True if a held lock overlaps the wanted path. */
export function isBlocking({ path, mode }: HeldLock, wanted: string, isTree: boolean): boolean {
  const isBelow = (lower: string, upper: string): boolean => upper === "" || lower.startsWith(`${upper}/`);
  return path === wanted || (mode === "tree" && isBelow(wanted, path)) || (isTree && isBelow(path, wanted));
}

async function releasePath(hold: PathHold): Promise<unknown> {
  try {
    // The lock may have been broken since the last check.
    await hold.assertHeld();
  } catch (error) {
    if (isHoldfastError(error, "LOCK_LOST")) return error;
    throw error;
  } finally {
    await hold.release();
  }
  return undefined;
}

/** `warn` receives the risks of the file's location. */
export function semaphoreLock(file: string, warn: (risk: string) => void): ChosenLock {
  const semaphore = new Semaphore(file);
  return {
    name: semaphore.path,
    findBlocking: () => findSemaphoreHolder(semaphore),
    acquire: async (options) => {
      const risk = await semaphore.findLocationRisk();
      if (risk !== undefined) warn(risk);
      const hold = await semaphore.acquire(options);
      const release = async (): Promise<unknown> => {
        await hold.release();
        return hold.signal.aborted ? hold.signal.reason : undefined;
      };
      return { signal: hold.signal, environment: {}, release };
    },
    // Nothing to close: a semaphore file keeps nothing open.
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** Returns the holder in the form that `explain` expects. */
export async function findSemaphoreHolder(semaphore: Semaphore): Promise<readonly Blocking[]> {
  const holder = await semaphore.findHolder();
  return holder === undefined ? [] : [holder];
}

/**
 * The semaphore file of a path outside any store. If another process creates a store above the path
 * before the file is acquired, uses a path lock of that store instead: others use that store, and
 * check for the semaphore file only once, after they acquired the path lock.
 */
export async function storelessLock(
  wish: LockWish,
  warn: (risk: string) => void,
  run: Pick<Run, "output">,
): Promise<StorelessLock> {
  const file = semaphoreFileOf((await followPath(wish.path)).path);
  const semaphore = semaphoreLock(file, warn);
  let lateStore: ChosenLock | undefined;
  return {
    file,
    name: file,
    findBlocking: async () => await (lateStore ?? semaphore).findBlocking(),
    acquire: async (options) => {
      const patience = new TimeLeft(options);
      const taken = await semaphore.acquire(options);
      try {
        lateStore = await findPathLock(wish, run);
      } catch (error) {
        await taken.release();
        throw error;
      }
      if (lateStore === undefined) return taken;
      await taken.release();
      return await lateStore.acquire({ ...options, ...patience.left() });
    },
    [Symbol.asyncDispose]: async () => await lateStore?.[Symbol.asyncDispose](),
  };
}

interface StorelessLock extends ChosenLock {
  readonly file: string;
}

function semaphoreFileOf(absolute: string): string {
  return `${absolute}.lock`;
}
