// Which lock `holdfast run` takes, and that lock as one thing, whatever its kind.
import { isHoldfastError, type Waiting } from "../../index.ts";
import { findLockRoot, followPath, openPathLocks, Semaphore, type HeldLock, type PathHold } from "../../locks/index.ts";
import { describeHolder } from "./explained-wait.ts";
import { meantBelow, namedRoot } from "./meant-path.ts";
import { TimeLeft } from "./patience.ts";
import { waitForSemaphore } from "./semaphore-first.ts";

/** What the user wants to have locked, and how. */
export interface LockWish {
  readonly path: string;
  readonly store?: string | undefined;
  readonly tree: boolean;
  readonly shared: boolean;
}

export interface ChosenLock extends AsyncDisposable {
  /** For people: what is waited for. */
  readonly name: string;
  /** For people: which process has it now. */
  findHolder(): Promise<string | undefined>;
  /** LOCK_TIMEOUT. `tag` tells others what it is held for. */
  acquire(options: Waiting & { readonly tag: string }): Promise<TakenLock>;
}

export interface TakenLock {
  /** Aborts, with LOCK_LOST as its reason, when the lock is no longer ours. */
  readonly signal: AbortSignal;
  /** For the command that works under it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Gives the LOCK_LOST error when it was lost before, though it was not noticed until now. */
  release(): Promise<unknown>;
}

/** Undefined when there is no store above the path: then a semaphore file must do. */
export async function findPathLock({ path, store, tree, shared }: LockWish): Promise<ChosenLock | undefined> {
  const root = store === undefined ? (await findLockRoot(path))?.root : await namedRoot(store);
  if (root === undefined) return undefined;
  const { absolute, inside } = await meantBelow(root, store === undefined ? (await followPath(path)).path : path);
  const locks = await openPathLocks(root);
  return {
    name: absolute,
    findHolder: async () => {
      const blocking = (await locks.list()).find((lock) => isInTheWay(lock, inside, tree));
      return blocking === undefined ? undefined : describeHolder(blocking.holder, blocking.since, blocking.tag);
    },
    acquire: async (options) => {
      const patience = new TimeLeft(options);
      const hold = await locks.acquire(inside, { ...options, mode: tree ? "tree" : "exact", shared });
      try {
        // The wait may be long enough to lose what is in hand.
        const signal = AbortSignal.any([hold.signal, ...(options.signal === undefined ? [] : [options.signal])]);
        await waitForSemaphore(semaphoreFileOf(absolute), { ...patience.left(), signal });
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

function isInTheWay({ path, mode }: HeldLock, wanted: string, isTree: boolean): boolean {
  const isBelow = (lower: string, upper: string): boolean => upper === "" || lower.startsWith(`${upper}/`);
  return path === wanted || (mode === "tree" && isBelow(wanted, path)) || (isTree && isBelow(path, wanted));
}

async function releasePath(hold: PathHold): Promise<unknown> {
  try {
    // It may have been broken since the last look.
    await hold.assertHeld();
  } catch (error) {
    if (isHoldfastError(error, "LOCK_LOST")) return error;
    throw error;
  } finally {
    await hold.release();
  }
  return undefined;
}

/** `warn` is told what is unsafe about the place of the file. */
export function semaphoreLock(file: string, warn: (risk: string) => void): ChosenLock {
  const semaphore = new Semaphore(file);
  return {
    name: semaphore.path,
    findHolder: () => findSemaphoreHolder(semaphore),
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
    // It keeps nothing open.
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** In words, as `explain` wants it. */
export async function findSemaphoreHolder(semaphore: Semaphore): Promise<string | undefined> {
  const { info } = await semaphore.status();
  return info === undefined
    ? undefined
    : `process ${info.pid} since ${new Date(info.timestamp * 1000).toISOString()}${info.tag === undefined ? "" : ` (${info.tag})`}`;
}

/**
 * The semaphore file of a path that is in no store. When another process has made a store above it
 * by the time that the file is taken, the path is locked there instead: others find that store, and
 * look for the file only once, when they have the lock of the path.
 */
export async function storelessLock(wish: LockWish, warn: (risk: string) => void): Promise<StorelessLock> {
  const file = semaphoreFileOf((await followPath(wish.path)).path);
  const semaphore = semaphoreLock(file, warn);
  let lateStore: ChosenLock | undefined;
  return {
    file,
    name: file,
    findHolder: async () => await (lateStore ?? semaphore).findHolder(),
    acquire: async (options) => {
      const patience = new TimeLeft(options);
      const taken = await semaphore.acquire(options);
      try {
        lateStore = await findPathLock(wish);
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
