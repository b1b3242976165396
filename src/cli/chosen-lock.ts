// Which lock `holdfast run` takes, and that lock as one thing, whatever its kind.
import { resolve } from "node:path";
import { isHoldfastError, type Waiting } from "../index.ts";
import { findLockRoot, openPathLocks, Semaphore, type PathHold } from "../locks/index.ts";

/** What the user wants to have locked, and what he says of the way. */
export interface LockWish {
  readonly path: string;
  readonly store?: string | undefined;
  readonly tree: boolean;
  readonly shared: boolean;
}

export interface ChosenLock extends AsyncDisposable {
  /** LOCK_TIMEOUT. `tag` tells others what it is held for. */
  acquire(options: Waiting & { readonly tag: string }): Promise<TakenLock>;
}

export interface TakenLock {
  /** Aborts, with LOCK_LOST as its reason, when the lock is no longer ours. */
  readonly signal: AbortSignal;
  /** For whoever works under it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Gives the LOCK_LOST error when it was lost before, though nobody may have noticed until now. */
  release(): Promise<unknown>;
}

/** Undefined when there is no store above the path: then a semaphore file must do. */
export async function findPathLock({ path, store, tree, shared }: LockWish): Promise<ChosenLock | undefined> {
  const found = store === undefined ? await findLockRoot(path) : { root: store, path };
  if (found === undefined) return undefined;
  const locks = await openPathLocks(found.root);
  return {
    acquire: async (options) => {
      const hold = await locks.acquire(found.path, { ...options, mode: tree ? "tree" : "exact", shared });
      const environment = { HOLDFAST_FENCE: String(hold.fence) };
      return { signal: hold.signal, environment, release: () => releasePath(hold) };
    },
    [Symbol.asyncDispose]: () => locks.close(),
  };
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

/** The semaphore file for a path that is in no store. */
export function semaphoreFileOf(path: string): string {
  return `${resolve(path)}.lock`;
}
