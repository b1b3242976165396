// Operations on the files of a lock, in both forms (file and directory): create, remove, move away, put back. Each
// `make` is one atomic call, so of many callers one wins.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import { linkOnce } from "../../durable/publish/publish.ts";
import { isHoldfastError } from "../../errors.ts";
import { hasErrno, isOutage, isOutcomeUnknown } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { notALock, tempPathOf } from "./path.ts";
import {
  isSame,
  observe,
  recordPathOf,
  observationOf,
  type LockFileForm,
  type Observation,
  type TakenLock,
} from "./observe.ts";

/** The largest number of tries to remove a lock during an outage of the server. */
const triesMax = 3;

export interface FileOptions {
  readonly fsync: boolean;
  readonly mode: number;
}

/**
 * Writes the lock file under a temporary name and syncs it. `link` then makes it the lock if the name is free; of
 * many callers, one gets true. A file that is created first and filled later would be seen empty. Throws
 * UNSUPPORTED_DISK if there are no hard links.
 */
export async function withStaged<T>(
  ports: Ports,
  path: string,
  bytes: Uint8Array,
  options: FileOptions,
  action: (link: () => Promise<boolean>) => Promise<T>,
): Promise<T> {
  const temp = await stage(ports, path, bytes, options);
  try {
    // The link may be repeated: the caller holds the lock only once this returns. If a forced release removed the
    // first link meanwhile, no caller lost a hold.
    return await action(() => linkOnce(ports.disk, temp, path, bytes, { mayRepeat: true }));
  } finally {
    await discard(ports.disk, temp);
  }
}

/**
 * Creates the lock in place, as protocol 1.0 describes it for file systems without hard links. Readers see the file
 * empty for a moment.
 */
export async function createLockFile(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  options: FileOptions,
): Promise<boolean> {
  try {
    await disk.createFile(path, bytes, { sync: options.fsync, mode: options.mode });
    return true;
  } catch (error) {
    // Another process has the lock. Or the reply was lost and the file is ours: then it is empty, and is removed like
    // any lock file that was never filled.
    if (hasErrno(error, "EEXIST")) return false;
    throw error;
  }
}

/**
 * Creates a lock of the directory form. `mkdir` decides who wins, also on NFSv3. The complete record is then moved
 * into it.
 */
export async function makeLockDirectory(
  ports: Ports,
  path: string,
  bytes: Uint8Array,
  options: FileOptions,
): Promise<boolean> {
  const { disk } = ports;
  // Stage the record first, so that a full disk fails before the name is taken.
  const temp = await stage(ports, path, bytes, options);
  try {
    await disk.mkdir(path);
  } catch (error) {
    await discard(disk, temp);
    if (hasErrno(error, "EEXIST")) return false;
    throw error;
  }
  try {
    await disk.rename(temp, recordPathOf(path, "directory"));
  } catch (error) {
    if (await carries(disk, path, "directory", bytes)) return true;
    await discard(disk, temp);
    // The directory is ours and empty. If it is not empty any more, `rmdir` fails and it stays.
    await disk.rmdir(path).catch(() => undefined);
    throw error;
  }
  return true;
}

/**
 * Removes the lock that was just observed, if it still exists. Allowed only for a young lock of our own, and where no
 * lock is ever taken over.
 */
export async function removeLock(ports: Ports, path: string, observation: TakenLock): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await removeOnce(ports, path, observation);
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error;
      // The reply was lost, so the lock may be removed already. Observe before retrying: another process may have
      // taken the name since.
      if (!isSame(observation, await observe(ports.disk, path))) return;
      if (tries >= triesMax || !isOutage(error)) throw error;
    }
  }
}

async function removeOnce(ports: Ports, path: string, { form, isBare }: TakenLock): Promise<void> {
  const { disk } = ports;
  try {
    if (form === "file") return await disk.unlink(path);
    // Without a record the contents of the directory are unknown. `rmdir` removes only an empty one.
    if (isBare) return await disk.rmdir(path);
    const away = tempPathOf(path, ports.random);
    // One rename moves the directory with its record. If it were emptied first, a crash would leave a bare directory,
    // which counts as held.
    await disk.rename(path, away);
    // If this fails, the next sweep removes it.
    await removeLockDirectory(disk, away);
  } catch (error) {
    if (hasErrno(error, "ENOTEMPTY", "EEXIST")) throw notALock(path, form, error);
    if (!hasErrno(error, "ENOENT")) throw error;
  }
}

/**
 * The largest number of tries to put back a lock that was moved by mistake, while other processes take and free its
 * name.
 */
const putBackTriesMax = 5;

/**
 * Moves the lock that was just observed to a temporary name and checks there that it is the same. If it is, calls
 * `then`; the name is free unless another process took it. If it is not, puts it back. Returns undefined in that
 * case, and if nothing was there. Call it only under the guard: programs without a guard may replace the lock at any
 * moment, other takers may not.
 */
export async function moveAway<T>(
  ports: Ports,
  path: string,
  observation: TakenLock,
  then: () => Promise<T>,
): Promise<T | undefined> {
  const { disk } = ports;
  const away = tempPathOf(path, ports.random);
  const moved = await move(disk, path, away);
  if (moved.kind === "free") return undefined;
  if (!isSame(observation, moved)) {
    await putBack(disk, away, path, moved);
    return undefined;
  }
  try {
    return await then();
  } finally {
    await removeMovedLock(disk, away, moved);
  }
}

/** Returns the observation of the file that was moved. */
async function move(disk: Disk, path: string, away: string): Promise<Observation> {
  let failure: unknown;
  try {
    await disk.rename(path, away);
  } catch (error) {
    if (!hasErrno(error, "ENOENT") && !isOutcomeUnknown(error)) throw error;
    // A repeated rename fails although the first one succeeded. The observation below decides.
    failure = error;
  }
  let moved: Observation;
  try {
    moved = await observe(disk, away);
  } catch (error) {
    // It is unknown what was moved, so put it back. The first error is more informative than a second one.
    await putBack(disk, away, path).catch(() => undefined);
    throw error;
  }
  if (moved.kind === "free" && failure !== undefined && !hasErrno(failure, "ENOENT")) throw failure as Error;
  return moved;
}

/**
 * Puts a lock back by a link, which overwrites nothing. If another process has made a lock of Holdfast on the free
 * name meanwhile, that one does not count yet and is removed: its maker confirms it only under the guard, which this
 * process holds. A lock of a program without a guard stays; then two such programs hold the lock
 * (docs/format/semaphore.md).
 */
async function putBack(disk: Disk, away: string, path: string, moved?: TakenLock): Promise<void> {
  for (let tries = 1; ; tries++) {
    let failure: unknown;
    try {
      await disk.link(away, path);
      break;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return;
      failure = error;
    }
    const now = await observe(disk, path);
    if (now.kind === "free") {
      // Hard links are impossible here, for this user, or for a directory. A rename may overwrite a lock that was
      // made within this moment.
      if (hasErrno(failure, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) return await disk.rename(away, path);
    } else if (moved !== undefined && isSame(moved, now)) break;
    else if (now.record?.token !== undefined) await disk.unlink(path).catch(() => undefined);
    else if (!isOutcomeUnknown(failure)) break;
    if (tries >= putBackTriesMax) throw failure;
  }
  await removeMovedLock(disk, away, moved);
}

/** If this fails, the next sweep removes it. */
async function removeMovedLock(disk: Disk, away: string, moved: TakenLock | undefined): Promise<void> {
  if (moved?.form === "directory") await removeLockDirectory(disk, away);
  else await disk.unlink(away).catch(() => undefined);
}

/**
 * Removes a lock directory that was moved away, with its record and nothing else. If a program has put other files
 * into it, they stay, and so does the directory. Returns true if it is gone.
 */
export async function removeLockDirectory(disk: Disk, path: string): Promise<boolean> {
  try {
    await unlinkIfThere(disk, recordPathOf(path, "directory"));
    await disk.rmdir(path);
    return true;
  } catch (error) {
    if (isHoldfastError(error)) return false;
    throw error;
  }
}

async function stage(ports: Ports, path: string, bytes: Uint8Array, { fsync, mode }: FileOptions): Promise<string> {
  const temp = tempPathOf(path, ports.random);
  await createUniqueFile(ports.disk, temp, bytes, { sync: fsync, mode });
  return temp;
}

async function discard(disk: Disk, temp: string): Promise<void> {
  // If this fails, the next sweep removes it.
  await disk.unlink(temp).catch(() => undefined);
}

async function carries(disk: Disk, path: string, form: LockFileForm, bytes: Uint8Array): Promise<boolean> {
  return isSame(observationOf(form, bytes), await observe(disk, path));
}
