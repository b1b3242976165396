// The subpath "holdfast/locks": semaphore files, the store lock, and path locks, on real file
// systems.
import type * as engine from "../postgres/by-location.ts";
import type { BlockingLock } from "../common.ts";
import { findGateKind, storeLockName } from "../durable/gate/gate-record.ts";
import { ensureDirectory, listIfThere } from "../durable/publish/directory.ts";
import { Ground } from "../durable/liveness/ground.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { isHoldfastError } from "../errors.ts";
import { isUnwritable } from "../ports/disk-error.ts";
import { directoryOf, isPostgres } from "../ports/node/location.ts";
import { openLocation, openNodePorts } from "../ports/node/ports.ts";
import { followLinks, type FollowedPath } from "./naming/follow-path.ts";
import { findLockDirectories, findRoot, hasLocks, type LockRoot } from "./naming/lock-root.ts";
import { checkLockPath } from "./semaphore/path.ts";
import type { SemaphoreOptions } from "./semaphore/options.ts";
import { InProcessLocks } from "./semaphore/in-process.ts";
import { PortsSemaphore, type SemaphoreHolder } from "./semaphore/semaphore.ts";
import type { HeldLock, PathLocks, PathLocksOptions } from "./path/path-locks.ts";
import {
  createStoreLock,
  findStoreHolder as findHolder,
  type StoreLock,
  type StoreLockOptions,
} from "./store/store-lock.ts";
import { TablePathLocks } from "./path/table-path-locks.ts";
import { tracedStoreLock } from "./traced-methods.ts";

export type { BlockingLock, Hold, HolderInfo, LockMode, NameRule, OpenOptions, Waiting } from "../common.ts";
export type { FollowedPath } from "./naming/follow-path.ts";
export type { LockRoot } from "./naming/lock-root.ts";
export type { LockChange, PathHold } from "./path/path-hold.ts";
export type {
  AcquireManyOptions,
  AcquireOptions,
  HeldLock,
  LockRequest,
  PathLocks,
  PathLocksOptions,
} from "./path/path-locks.ts";
export type { StoreHold, StoreLock, StoreLockOptions } from "./store/store-lock.ts";
export type { SemaphoreHold } from "./semaphore/hold.ts";
export { formatLockFile, parseLockFile, type LockFileInfo } from "./semaphore/lock-file.ts";
export type { SemaphoreOptions } from "./semaphore/options.ts";
export type { SemaphoreAcquireOptions, SemaphoreHolder, SemaphoreStatus } from "./semaphore/semaphore.ts";

// One for the whole process, so that semaphores on one path queue together.
const inProcess = new InProcessLocks();

const semaphoreOptions: OptionNames<SemaphoreOptions> = {
  staleMs: true,
  retryMs: true,
  fsync: true,
  mode: true,
  form: true,
  owner: true,
};

/**
 * A lock file at `path` that programs of other vendors can honour (protocol 1.0). Its directory
 * must exist. The constructor touches nothing on the disk, and throws INVALID_PATH for a path that
 * cannot be a lock.
 *
 * @example
 * ```ts
 * const lock = new Semaphore("/mnt/shop/nightly.lock");
 * await lock.withLock(async () => await runNightly(), { timeoutMs: 60_000 });
 * ```
 */
export class Semaphore extends PortsSemaphore {
  constructor(path: string, options: SemaphoreOptions = {}) {
    checkLockPath(path);
    checkOptions("new Semaphore", options, semaphoreOptions);
    super({ openPorts: openNodePorts, inProcess }, directoryOf(path), options);
  }
}

/**
 * Returns the holders of the semaphore files directly in `directory`, held or stale. Reads files
 * whose name ends in `.lock`, and skips those that are not locks or have no readable record.
 * Returns an empty list if there is no such directory.
 */
export async function listSemaphores(directory: string | URL): Promise<SemaphoreHolder[]> {
  const path = directoryOf(directory);
  const { disk } = await openNodePorts(path);
  const found: SemaphoreHolder[] = [];
  for (const name of (await listIfThere(disk, path)).sort()) {
    if (!name.endsWith(".lock") || name === storeLockName) continue;
    try {
      const holder = await new Semaphore(`${path}/${name}`).findHolder();
      if (holder !== undefined) found.push(holder);
    } catch (error) {
      // The entry is not a lock, or cannot be read. It must not hide the others.
      if (!isHoldfastError(error)) throw error;
    }
  }
  return found;
}

/**
 * Opens the lock of `directory`: one writer at a time among all processes on all machines that open
 * it. Creates the directory if it does not exist. `memory:` opens a new lock in memory each time.
 *
 * Throws NOT_A_STORE or WRONG_STORE if the directory is not what `create` and `id` ask for, and
 * UNSUPPORTED_DISK if this process cannot use the gate that the directory records.
 *
 * @example
 * ```ts
 * await using lock = await openStoreLock("/mnt/shop/ledger");
 * await lock.withLock(async (hold) => await postEntries(hold.signal));
 * ```
 */
export async function openStoreLock(directory: string | URL, options?: StoreLockOptions): Promise<StoreLock> {
  checkOptions("openStoreLock", options, { timeoutMs: true, leaseMs: true, create: true, id: true });
  if (isPostgres(directory))
    return tracedStoreLock(await (await onPostgres()).openStoreLockAt(directory, options ?? {}));
  const { ports, path } = await openLocation(directory);
  return tracedStoreLock(await createStoreLock(ports, path, options));
}

/**
 * Returns the current holder of the store lock of `directory`, for people. Returns undefined if the
 * lock is free, if its holder is unknown, or if there is no store lock. Creates nothing.
 */
export async function findStoreHolder(directory: string | URL): Promise<BlockingLock | undefined> {
  if (isPostgres(directory)) return await (await onPostgres()).findStoreHolderAt(directory);
  const path = directoryOf(directory);
  return await findHolder(await openNodePorts(path), path);
}

/** Returns true if a store lock was ever opened in `directory`. Creates nothing. */
export async function hasStoreLock(directory: string | URL): Promise<boolean> {
  if (isPostgres(directory)) return (await findLockRoot(directory)) !== undefined;
  const path = directoryOf(directory);
  return (await findGateKind(await openNodePorts(path), path)) !== undefined;
}

const pathLocksOptions: OptionNames<PathLocksOptions> = {
  leaseMs: true,
  timeoutMs: true,
  interop: true,
  names: true,
  create: true,
  id: true,
};

/**
 * Opens the locks on paths below `root`; the paths need not exist. The locks live in `.holdfast` in
 * that directory. In a store they are the locks of the store: on paths below its `files/`, in its
 * ground. `memory:` opens new locks in memory each time, without files. In a location like
 * `postgres://host/db?store=shop` the paths are names: there is no tree.
 *
 * Throws NOT_A_STORE or WRONG_STORE if the directory is not what `create` and `id` ask for, and INVALID_PATH
 * for a directory below the files of a store.
 *
 * @example
 * ```ts
 * await using locks = await openPathLocks("/mnt/shop/files");
 * await using hold = await locks.acquire("reports/2026", { mode: "tree", timeoutMs: 10_000 });
 * ```
 */
export async function openPathLocks(root: string | URL, options: PathLocksOptions = {}): Promise<PathLocks> {
  checkOptions("openPathLocks", options, pathLocksOptions);
  if (isPostgres(root)) return await (await onPostgres()).openPathLocksAt(root, options);
  const { leaseMs = 300_000, create, id, ...more } = options;
  const { ports, path } = await openLocation(root);
  const found = await findLockDirectories(ports.disk, path);
  if (create !== false && id === undefined) await ensureDirectory(ports.disk, found.root);
  const ground = await Ground.open(ports, found.ground, { leaseMs, create, id });
  try {
    return await TablePathLocks.open(ground, { ...more, root: found.root, ownsGround: true });
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/**
 * Returns the path locks that are held below `root`, as `PathLocks.list` does. Returns an empty list
 * if there are no path locks, and creates none. Works on a disk that is not writable; there, a holder
 * whose death only a lock could prove is reported as alive.
 */
export async function listPathLocks(
  root: string | URL,
  options: { under?: string | undefined } = {},
): Promise<HeldLock[]> {
  if (isPostgres(root)) return await (await onPostgres()).listPathLocksAt(root, options);
  const path = directoryOf(root);
  const ports = await openNodePorts(path);
  const found = await findLockDirectories(ports.disk, path);
  if (!(await hasLocks(ports.disk, found))) return [];
  try {
    await using locks = await openPathLocks(path);
    return await locks.list(options);
  } catch (error) {
    if (!isUnwritable(error)) throw error;
    const ground = await Ground.openUnjoined(ports, found.ground);
    await using locks = await TablePathLocks.open(ground, { root: found.root, listOnly: true, ownsGround: true });
    return await locks.list(options);
  }
}

/**
 * Finds the nearest directory at or above `path` that is a store or has path locks. `path` need not
 * exist. Returns undefined if there is none. Creates nothing. A store in a database is its own root.
 */
export async function findLockRoot(path: string | URL): Promise<LockRoot | undefined> {
  if (isPostgres(path)) return await (await onPostgres()).findLockRootAt(path);
  const absolute = directoryOf(path);
  const { disk } = await openNodePorts(absolute);
  return await findRoot(disk, absolute);
}

/**
 * Resolves the symbolic links of `path` as the operating system does, including links to targets
 * that do not exist. `path` need not exist. Creates nothing.
 */
export async function followPath(path: string | URL): Promise<FollowedPath> {
  const absolute = directoryOf(path);
  const { disk } = await openNodePorts(absolute);
  return await followLinks(disk, absolute);
}

/** Loaded on demand: most programs only open folders. */
async function onPostgres(): Promise<typeof engine> {
  return await import("../postgres/by-location.ts");
}
