// The subpath "holdfast/locks": semaphore files, the store lock, and path locks, on real file systems.
import { ensureDirectory } from "../durable/directory.ts";
import { Ground } from "../durable/ground.ts";
import { isUnwritable } from "../ports/disk-error.ts";
import { directoryOf } from "../ports/node/location.ts";
import { openNodePorts } from "../ports/node/ports.ts";
import { OwnStoreHolds } from "./own-store-holds.ts";
import { follow, type FollowedPath } from "./followed-path.ts";
import { findRoot, hasTable, type LockRoot } from "./lock-root.ts";
import { checkLockPath } from "./semaphore/lock-path.ts";
import type { SemaphoreOptions } from "./semaphore/options.ts";
import { Places } from "./semaphore/place.ts";
import { PortsSemaphore } from "./semaphore/semaphore.ts";
import type { HeldLock, PathLocks, PathLocksOptions } from "./path-locks.ts";
import { createStoreLock, type StoreLock, type StoreLockOptions } from "./store-lock.ts";
import { TablePathLocks } from "./table-path-locks.ts";

export type { BlockingLock, Hold, HolderInfo, LockMode, Waiting } from "../common.ts";
export type { FollowedPath } from "./followed-path.ts";
export type { LockRoot } from "./lock-root.ts";
export type { PathHold } from "./path-hold.ts";
export type {
  AcquireManyOptions,
  AcquireOptions,
  HeldLock,
  LockRequest,
  PathLocks,
  PathLocksOptions,
} from "./path-locks.ts";
export type { StoreLock, StoreLockOptions } from "./store-lock.ts";
export type { SemaphoreHold } from "./semaphore/hold.ts";
export { formatLockFile, parseLockFile, type LockFileInfo } from "./semaphore/lock-file.ts";
export type { SemaphoreOptions } from "./semaphore/options.ts";
export type { SemaphoreStatus } from "./semaphore/semaphore.ts";

// One each for the whole process: semaphores on one path know of each other, and so do store locks.
const places = new Places();
const ownStoreHolds = new OwnStoreHolds();

/** A lock file at `path`, whose directory must exist. INVALID_PATH for what cannot be one; nothing is touched before the first call. */
export class Semaphore extends PortsSemaphore {
  constructor(path: string, options: SemaphoreOptions = {}) {
    checkLockPath(path);
    super({ openPorts: openNodePorts, places }, directoryOf(path), options);
  }
}

/** One writer at a time in `directory`, among all processes of all machines that open it. Makes the directory if it is not there. */
export async function openStoreLock(directory: string | URL, options?: StoreLockOptions): Promise<StoreLock> {
  const path = directoryOf(directory);
  return await createStoreLock(await openNodePorts(path), path, options, ownStoreHolds);
}

/** Locks on the paths below `root`, whether anything is there or not. They live in `.holdfast` in that directory, outside of what they protect. */
export async function openPathLocks(root: string | URL, options: PathLocksOptions = {}): Promise<PathLocks> {
  const { leaseMs = 300_000, ...more } = options;
  const path = directoryOf(root);
  const ports = await openNodePorts(path);
  await ensureDirectory(ports.disk, path);
  const ground = await Ground.open(ports, `${path}/.holdfast`, { leaseMs });
  try {
    return await TablePathLocks.open(ground, { ...more, root: path, ownsGround: true });
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/**
 * The path locks that are held below `root`, as `list` of `openPathLocks` gives them. Makes none where there are none. Also where nothing can be written (no permission, a read-only mount, a
 * full disk); then holders whose death only a lock could prove are shown as if they lived.
 */
export async function listPathLocks(
  root: string | URL,
  options: { under?: string | undefined } = {},
): Promise<HeldLock[]> {
  const path = directoryOf(root);
  const ports = await openNodePorts(path);
  if (!(await hasTable(ports.disk, path))) return [];
  try {
    await using locks = await openPathLocks(path);
    return await locks.list(options);
  } catch (error) {
    if (!isUnwritable(error)) throw error;
    const ground = await Ground.look(ports, `${path}/.holdfast`);
    await using locks = await TablePathLocks.open(ground, { root: path, toLook: true, ownsGround: true });
    return await locks.list(options);
  }
}

/** The nearest directory at or above `path`, which need not exist, that is a store or has path locks. Undefined when there is none; nothing is made. */
export async function findLockRoot(path: string | URL): Promise<LockRoot | undefined> {
  const absolute = directoryOf(path);
  const { disk } = await openNodePorts(absolute);
  return await findRoot(disk, absolute);
}

/** What `path` means: its symbolic links followed as the system does, also one that leads to nothing yet. It need not exist, and nothing is made. */
export async function followPath(path: string | URL): Promise<FollowedPath> {
  const absolute = directoryOf(path);
  const { disk } = await openNodePorts(absolute);
  return await follow(disk, absolute);
}
