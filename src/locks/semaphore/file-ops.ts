// The two forms of a lock, a file and a directory: how each is made so that one of many wins, and removed by its holder.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import { linkOnce } from "../../durable/publish/publish.ts";
import { isHoldfastError } from "../../errors.ts";
import { hasErrno, isOutage, isOutcomeUnknown } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { notALock, tempPathOf } from "./path.ts";
import { isSame, observe, recordPathOf, takenBy, type LockForm, type Observation, type Taken } from "./observe.ts";

/** How often a lock is asked to go when the server goes away meanwhile. */
const triesMax = 3;

export interface FileOptions {
  readonly fsync: boolean;
  readonly mode: number;
}

/**
 * Writes the lock file under another name, and syncs it; `link` makes it the lock if the name is free then: of many callers
 * one gets true. A file that is created and then filled would be seen empty. UNSUPPORTED_DISK where there are no hard links.
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
    // Again if it is not there after all: it is ours only once we are told so, and whoever took it away by force meanwhile took it from nobody.
    return await action(() => linkOnce(ports.disk, temp, path, bytes, { mayRepeat: true }));
  } finally {
    await discard(ports.disk, temp);
  }
}

/** For file systems without hard links, as the protocol describes it: others see the file empty for a moment. */
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
    // Somebody else's; or, after a lost reply, our own, but then it is empty, and goes like any that was never filled.
    if (hasErrno(error, "EEXIST")) return false;
    throw error;
  }
}

/** The directory form: `mkdir` is what decides, on every version of NFS too; the record is moved in whole. */
export async function makeLockDirectory(
  ports: Ports,
  path: string,
  bytes: Uint8Array,
  options: FileOptions,
): Promise<boolean> {
  const { disk } = ports;
  // First, so that a full disk is met before the name is taken.
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
    // Ours, and empty; if it is neither any more, it is left alone.
    await disk.rmdir(path).catch(() => undefined);
    throw error;
  }
  return true;
}

/** Removes what was just looked at; fine when it is gone already. Only what is our own and young, or where nothing is taken over. */
export async function removeLock(ports: Ports, path: string, observation: Taken): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await removeOnce(ports, path, observation);
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error;
      // The answer was lost on the way, and what was asked for may be done: then something else is there by now, or nothing. What stands as it was is removed
      // again; never without a look, because the name may be another's.
      if (!isSame(observation, await observe(ports.disk, path))) return;
      if (tries >= triesMax || !isOutage(error)) throw error;
    }
  }
}

async function removeOnce(ports: Ports, path: string, { form, isBare }: Taken): Promise<void> {
  const { disk } = ports;
  try {
    if (form === "file") return await disk.unlink(path);
    // Whatever is in a directory that we know nothing of stays.
    if (isBare) return await disk.rmdir(path);
    const away = tempPathOf(path, ports.random);
    // In one step, record and all: to empty it first would leave a bare directory, which counts as held, to a crash in between.
    await disk.rename(path, away);
    // It is in nobody's way there: if it cannot be removed now, the next sweep finds it.
    await removeLockDirectory(disk, away);
  } catch (error) {
    if (hasErrno(error, "ENOTEMPTY", "EEXIST")) throw notALock(path, form, error);
    if (!hasErrno(error, "ENOENT")) throw error;
  }
}

/** How often a lock is put back that was moved by mistake, when its name is taken and free again meanwhile. */
const putBackTriesMax = 5;

/**
 * Moves what was just looked at to a name of our own, looks at it there, and calls `then`; the name is free by then unless
 * another process was faster. What turns out to be something else is put back at once. Undefined when that was so, or
 * nothing was there. Only under the guard.
 */
export async function takeAway<T>(
  ports: Ports,
  path: string,
  observation: Taken,
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
    await removeMoved(disk, away, moved);
  }
}

/** What was moved. */
async function move(disk: Disk, path: string, away: string): Promise<Observation> {
  let failure: unknown;
  try {
    await disk.rename(path, away);
  } catch (error) {
    if (!hasErrno(error, "ENOENT") && !isOutcomeUnknown(error)) throw error;
    // A repeated request fails although the first one was done; what is there tells.
    failure = error;
  }
  let moved: Observation;
  try {
    moved = await observe(disk, away);
  } catch (error) {
    // It is not known what was moved, and so it may not stay away. The first error tells more.
    await putBack(disk, away, path).catch(() => undefined);
    throw error;
  }
  if (moved.kind === "free" && failure !== undefined && !hasErrno(failure, "ENOENT")) throw failure as Error;
  return moved;
}

/**
 * By a link, which overwrites nothing. A lock of ours that was made on the free name meanwhile does not count yet: its maker
 * looks under the guard, which this process holds, whether it still stands. So it has to go. A lock of another program
 * stays, and then two programs without a guard hold the lock: see the page of the format.
 */
async function putBack(disk: Disk, away: string, path: string, moved?: Taken): Promise<void> {
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
      // No hard links here, or not for this user, or it is a directory: then what is moved back may overwrite, within a moment.
      if (hasErrno(failure, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) return await disk.rename(away, path);
    } else if (moved !== undefined && isSame(moved, now)) break;
    else if (now.record?.token !== undefined) await disk.unlink(path).catch(() => undefined);
    else if (!isOutcomeUnknown(failure)) break;
    if (tries >= putBackTriesMax) throw failure;
  }
  await removeMoved(disk, away, moved);
}

/** In nobody's way: if it cannot be removed now, the next sweep finds it. */
async function removeMoved(disk: Disk, away: string, moved: Taken | undefined): Promise<void> {
  if (moved?.form === "directory") await removeLockDirectory(disk, away);
  else await disk.unlink(away).catch(() => undefined);
}

/** One on its way out, with its record and nothing else: what somebody put into the lock while it was held stays, and so does the directory. */
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
  // Whatever stands in the way: it is in nobody's way, and the next sweep finds it.
  await disk.unlink(temp).catch(() => undefined);
}

async function carries(disk: Disk, path: string, form: LockForm, bytes: Uint8Array): Promise<boolean> {
  return isSame(takenBy(form, bytes), await observe(disk, path));
}
