// Takes files from folders of other programs and places files there, in one step each. Other
// programs may reuse such names at any moment, so no change is repeated after a lost reply: a stat
// shows what happened.
import { holdfastError } from "../../errors.ts";
import { findIfThere, hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import { parentOf, syncNames } from "./directory.ts";
import { outcomeUnknown } from "./publish.ts";
import type { Disk } from "../../ports/disk.ts";

/**
 * Moves a foreign file to `to`, a name that only this process uses. False if the file is gone:
 * another process has it. The rename is not repeated: the producer may have made a new file of that
 * name, and a second rename would replace the first file with it. Throws OUTCOME_UNKNOWN.
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
 * Links `temp` to `path`; durable when it resolves. False if another file has that name. After a
 * lost reply the identities decide: both names belong to one file, or they do not.
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

/** Renames `temp` to `path`, replacing whatever had that name. */
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

/** The name is visible by now and cannot be taken back, so a failed sync means OUTCOME_UNKNOWN. */
async function syncPlaced(disk: Disk, path: string): Promise<void> {
  try {
    await syncNames(disk, parentOf(path));
  } catch (error) {
    throw outcomeUnknown(path, error);
  }
}

function noHardLinks(path: string, cause: unknown): Error {
  const message = `${path} cannot be created without the risk of replacing another file: this file system has no hard links. Use another folder, or replace files there.`;
  return holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["hard links"] }, cause);
}
