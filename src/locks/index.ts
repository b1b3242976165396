// The subpath "holdfast/locks": semaphore files, the store lock, and path locks, on real file
// systems.
import type { BlockingLock } from "../common.ts";
import { ensureDirectory } from "../durable/publish/directory.ts";
import { Ground } from "../durable/liveness/ground.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { isUnwritable } from "../ports/disk-error.ts";
import { directoryOf } from "../ports/node/location.ts";
import { openNodePorts } from "../ports/node/ports.ts";
import { followLinks, type FollowedPath } from "./naming/follow-path.ts";
import { findLockPlace, findRoot, hasLocks, type LockRoot } from "./naming/lock-root.ts";
import { checkLockPath } from "./semaphore/path.ts";
import type { SemaphoreOptions } from "./semaphore/options.ts";
import { InProcessLocks } from "./semaphore/in-process.ts";
import { PortsSemaphore } from "./semaphore/semaphore.ts";
import type { HeldLock, PathLocks, PathLocksOptions } from "./path/path-locks.ts";
import {
  createStoreLock,
  findStoreHolder as findHolder,
  type StoreLock,
  type StoreLockOptions,
} from "./store/store-lock.ts";
import { TablePathLocks } from "./path/service.ts";

export type { BlockingLock, Hold, HolderInfo, LockMode, OpenOptions, Waiting } from "../common.ts";
export type { FollowedPath } from "./naming/follow-path.ts";
export type { LockRoot } from "./naming/lock-root.ts";
export type { PathHold } from "./path/path-hold.ts";
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
export type { SemaphoreStatus } from "./semaphore/semaphore.ts";

// One for the whole process, so that semaphores on one path take turns.
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
 * A lock file at `path`, whose directory must exist. INVALID_PATH for a path that cannot be one.
 * Nothing is touched before the first call.
 */
export class Semaphore extends PortsSemaphore {
  constructor(path: string, options: SemaphoreOptions = {}) {
    checkLockPath(path);
    checkOptions("new Semaphore", options, semaphoreOptions);
    super({ openPorts: openNodePorts, inProcess }, directoryOf(path), options);
  }
}

/**
 * One writer at a time in `directory`, among all processes of all machines that open it. Makes the
 * directory if it is missing.
 */
export async function openStoreLock(directory: string | URL, options?: StoreLockOptions): Promise<StoreLock> {
  checkOptions("openStoreLock", options, { timeoutMs: true, leaseMs: true, create: true, id: true });
  const path = directoryOf(directory);
  return await createStoreLock(await openNodePorts(path), path, options);
}

/**
 * The holder of the store lock of `directory` now, if known: for people. Undefined also where there
 * is no store lock; none is made.
 */
export async function findStoreHolder(directory: string | URL): Promise<BlockingLock | undefined> {
  const path = directoryOf(directory);
  return await findHolder(await openNodePorts(path), path);
}

const pathLocksOptions: OptionNames<PathLocksOptions> = {
  leaseMs: true,
  timeoutMs: true,
  interop: true,
  create: true,
  id: true,
};

/**
 * Locks on the paths below `root`, whether or not anything exists there. They live in `.holdfast`
 * in that directory. For a store they are the locks of the store: on the paths below its `files/`,
 * in its ground.
 */
export async function openPathLocks(root: string | URL, options: PathLocksOptions = {}): Promise<PathLocks> {
  checkOptions("openPathLocks", options, pathLocksOptions);
  const { leaseMs = 300_000, create, id, ...more } = options;
  const path = directoryOf(root);
  const ports = await openNodePorts(path);
  const place = await findLockPlace(ports.disk, path);
  if (create !== false && id === undefined) await ensureDirectory(ports.disk, place.root);
  const ground = await Ground.open(ports, place.ground, { leaseMs, create, id });
  try {
    return await TablePathLocks.open(ground, { ...more, root: place.root, ownsGround: true });
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/**
 * The path locks that are held below `root`, as `list` of `openPathLocks` returns them. Makes none
 * where there are none. Also works where nothing can be written (no permission, a read-only mount,
 * a full disk); then a holder whose death only a lock could prove is shown as alive.
 */
export async function listPathLocks(
  root: string | URL,
  options: { under?: string | undefined } = {},
): Promise<HeldLock[]> {
  const path = directoryOf(root);
  const ports = await openNodePorts(path);
  const place = await findLockPlace(ports.disk, path);
  if (!(await hasLocks(ports.disk, place))) return [];
  try {
    await using locks = await openPathLocks(path);
    return await locks.list(options);
  } catch (error) {
    if (!isUnwritable(error)) throw error;
    const ground = await Ground.openUnjoined(ports, place.ground);
    await using locks = await TablePathLocks.open(ground, { root: place.root, toLook: true, ownsGround: true });
    return await locks.list(options);
  }
}

/**
 * The nearest directory at or above `path`, which need not exist, that is a store or has path
 * locks. Undefined when there is none; nothing is made.
 */
export async function findLockRoot(path: string | URL): Promise<LockRoot | undefined> {
  const absolute = directoryOf(path);
  const { disk } = await openNodePorts(absolute);
  return await findRoot(disk, absolute);
}

/**
 * What `path` leads to: symbolic links are followed as the system does, also one that leads to
 * nothing yet. It need not exist, and nothing is made.
 */
export async function followPath(path: string | URL): Promise<FollowedPath> {
  const absolute = directoryOf(path);
  const { disk } = await openNodePorts(absolute);
  return await followLinks(disk, absolute);
}
