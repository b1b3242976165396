// Staging: a directory in which a process writes files that no other process may see yet. It is
// swept only after its holder is dead.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Random } from "../../ports/random.ts";
import { parentOf } from "./directory.ts";
import { createUniqueFile } from "./unique-file.ts";

/**
 * The place where a process writes files that no other process may see yet: a directory of its own,
 * which is swept only when its holder is dead.
 */
export interface Staging {
  /** The disk of the directory. */
  readonly disk: Disk;
  /** Randomness for names. */
  readonly random: Random;
  /**
   * Returns `temp/<holder>` of the current session of this process, on the same file system as
   * every target.
   */
  readonly directory: () => Promise<string>;
  /** Called when that directory is found missing: its holder was judged dead. */
  readonly onSwept?: ((directory: string) => void) | undefined;
}

export interface StageOptions {
  readonly sync: boolean;
  /** Default: a new name in the staging directory. A given name must be new too. */
  readonly path?: string | undefined;
}

/**
 * Writes a new file under a name of 128 random bits: names made of pid and counter collide between
 * two containers. DISK_FULL and other failures leave nothing behind.
 */
export async function stage(staging: Staging, bytes: Uint8Array, { sync, path }: StageOptions): Promise<string> {
  const temp = path ?? newTemp(staging, await staging.directory());
  try {
    await createUniqueFile(staging.disk, temp, bytes, { sync });
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
    staging.onSwept?.(parentOf(temp));
    throw swept(temp, error);
  }
  return temp;
}

/** Returns a name in `directory` that no other process makes. */
export function newTemp({ random }: Staging, directory: string): string {
  return `${directory}/${randomName(random.bytes(16))}`;
}

/**
 * Throws LOCK_LOST if `directory`, which `staging` returned, is gone. It finds out by creating a
 * file there: on a share, only changes are certain to reach the server.
 */
export async function assertNotSwept(staging: Staging, directory: string): Promise<void> {
  const path = newTemp(staging, directory);
  await discard(staging, await stage(staging, new Uint8Array(), { sync: false, path }));
}

/** A holder's directory is removed only when the holder is closed or judged dead. */
function swept(path: string, cause: unknown): Error {
  const message = `${path} cannot be created: its directory is gone, because this process was closed or judged dead meanwhile. Open it again.`;
  return holdfastError("LOCK_LOST", message, { path }, cause);
}

/** Removes a temp file after use. */
export async function discard(staging: Staging, temp: string): Promise<void> {
  // A file that cannot be removed does no harm; the sweep of its holder removes it.
  await staging.disk.unlink(temp).catch(() => undefined);
}

/** A process that sleeps past its lease this often in one call makes no progress. */
const sleepsMax = 10;

/**
 * Repeats work on a chain during which this process slept past its lease. Its temp directory was
 * swept, so nothing from it was linked, and the next session has another directory. The chain
 * decides if the result still counts, by a fence or by what changed since. Use it only around a
 * chain: a LOCK_LOST from the caller's own code belongs to the caller.
 */
export async function retryIfSwept<T>(work: () => Promise<T>): Promise<T> {
  for (let sleeps = 1; ; sleeps++) {
    try {
      return await work();
    } catch (error) {
      if (sleeps >= sleepsMax || !isHoldfastError(error, "LOCK_LOST")) throw error;
    }
  }
}
