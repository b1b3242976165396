// Files in folders of other programs: taken from there, and placed there, in one step each. Such names may be made again
// at any moment, so no change of them is repeated after a lost reply: a look tells what has happened.
import { holdfastError } from "../../errors.ts";
import { findIfThere, hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import { parentOf, syncNames } from "./directory.ts";
import { outcomeUnknown } from "./publish.ts";
import type { Disk } from "../../ports/disk.ts";

/**
 * Moves a foreign file to `to`, a name of this process alone: false when it is gone, so that another process has it.
 * Its producer may have made a new file of that name meanwhile, and a second rename would put that in the place of the
 * first. OUTCOME_UNKNOWN.
 */
export async function takeForeign(disk: Disk, from: string, to: string): Promise<boolean> {
  try {
    await disk.rename(from, to);
    return true;
  } catch (error) {
    const isUnknown = isOutcomeUnknown(error) && !hasErrno(error, "ESTALE");
    if (!isUnknown && !hasErrno(error, "ENOENT", "ESTALE")) throw error;
    if ((await findIfThere(disk.look(to))) !== undefined) return true;
    if (isUnknown) throw outcomeUnknown(to, error);
    return false;
  }
}

/**
 * Gives the file `temp` the name `path` too; durable when it resolves. False when another file has that name. After
 * a lost reply the file itself tells: both names are of one file, or they are not.
 */
export async function linkInto(disk: Disk, temp: string, path: string): Promise<boolean> {
  try {
    await disk.link(temp, path);
  } catch (error) {
    if (hasErrno(error, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) throw noHardLinks(path, error);
    if (!hasErrno(error, "EEXIST") && !isOutcomeUnknown(error)) throw error;
    if (!(await isSameFile(disk, temp, path))) {
      if (hasErrno(error, "EEXIST")) return false;
      throw outcomeUnknown(path, error);
    }
  }
  await syncPlaced(disk, path);
  return true;
}

/** Gives the file `temp` the name `path` instead, whatever had it. */
export async function renameInto(disk: Disk, temp: string, path: string): Promise<void> {
  const own = await disk.look(temp);
  try {
    await disk.rename(temp, path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT") && !isOutcomeUnknown(error)) throw error;
    if ((await findIfThere(disk.look(path)))?.identity !== own.identity) throw outcomeUnknown(path, error);
  }
  await syncPlaced(disk, path);
}

export async function isSameFile(disk: Disk, a: string, b: string): Promise<boolean> {
  const [one, other] = [await findIfThere(disk.look(a)), await findIfThere(disk.look(b))];
  return one !== undefined && one.identity === other?.identity;
}

/** The name can be seen by now, and what was seen cannot be taken back. */
async function syncPlaced(disk: Disk, path: string): Promise<void> {
  try {
    await syncNames(disk, parentOf(path));
  } catch (error) {
    throw outcomeUnknown(path, error);
  }
}

function noHardLinks(path: string, cause: unknown): Error {
  const message = `${path} cannot be made without the risk of replacing another file: this file system has no hard links. Use another folder, or replace files there.`;
  return holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["hard links"] }, cause);
}
