// Where a process writes files that no other process may see yet: a directory of its own, swept
// only when its holder is dead.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Random } from "../../ports/random.ts";
import { parentOf } from "./directory.ts";
import { createUniqueFile } from "./unique-file.ts";

export interface Staging {
  readonly disk: Disk;
  readonly random: Random;
  /**
   * Gives `temp/<holder>` of the session that this process has now, on the same file system as
   * every target.
   */
  readonly directory: () => Promise<string>;
  /** Called when that directory is found gone: only its holder knows what ends with it. */
  readonly onSwept?: ((directory: string) => void) | undefined;
}

export interface StageOptions {
  readonly sync: boolean;
  /** Default: a new name in the staging directory. If it is given, it must be new too. */
  readonly path?: string | undefined;
}

/**
 * Writes a new file under a name of 128 random bits: a name made of pid and counter is the same in
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

/** A name in `directory` that no other process makes. */
export function newTemp({ random }: Staging, directory: string): string {
  return `${directory}/${randomName(random.bytes(16))}`;
}

/**
 * LOCK_LOST when `directory`, which `staging` gave, is gone. Finds out by making a file in it: on a
 * share only a change is surely answered by the server.
 */
export async function assertNotSwept(staging: Staging, directory: string): Promise<void> {
  const path = newTemp(staging, directory);
  await discard(staging, await stage(staging, new Uint8Array(), { sync: false, path }));
}

/** The directory of a holder goes only when it is closed or judged dead. */
function swept(path: string, cause: unknown): Error {
  const message = `${path} cannot be made: its directory is gone, so this process was closed or taken for dead meanwhile. Open it again.`;
  return holdfastError("LOCK_LOST", message, { path }, cause);
}

/** Removes a temp file that has served. */
export async function discard(staging: Staging, temp: string): Promise<void> {
  // If it cannot be removed, it does no harm, and goes when its holder is swept.
  await staging.disk.unlink(temp).catch(() => undefined);
}

/** A process that sleeps past its lease so often in one call is not getting anywhere. */
const sleepsMax = 10;

/**
 * Repeats work on a chain during which this process slept past its lease. Its temp directory was
 * swept, so nothing from it was linked, and the next session has another one. Whether the result
 * still counts is for the chain to say, by a fence or by what has changed since. Only around a
 * chain: a LOCK_LOST of the caller's own code is the caller's.
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
