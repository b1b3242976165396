// Keeps commits with outputs apart from those without, on a local disk of Windows.
//
// An entry with outputs is a directory that is renamed to its name. Windows lets it replace a file,
// so the disk looks first, and a file may get the name between the look and the rename. There,
// commits under one name hold an OS lock, which dies with its process.
import { posix } from "node:path";
import { isHoldfastError } from "../../errors.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Box } from "../box/box.ts";

/** Digits of the hash of a name: 256 locks, so that commits under different names seldom meet. */
const digits = 2;

/** Runs `commit`, which wins the name `path` of the ledger, alone on this machine where that is necessary. */
export async function inTurn<T>(box: Box, path: string, commit: () => Promise<T>): Promise<T> {
  const { kind, hasWindowsNames } = box.disk.volume;
  if (!hasWindowsNames || kind !== "local") return await commit();
  const lock = await findLock(box, path);
  try {
    await lock?.lock();
    return await commit();
  } finally {
    await lock?.close();
  }
}

/** Undefined where the native module is missing: nothing else excludes the other processes there. */
async function findLock(box: Box, path: string): Promise<OsLockFile | undefined> {
  const directory = await box.ensure(`${box.layout.directory}/ledger.locks`);
  const name = posix.basename(posix.dirname(path)).slice(0, digits);
  try {
    return await box.ground.ports.osLock.open(`${directory}/${name}`);
  } catch (error) {
    if (isHoldfastError(error, "UNSUPPORTED_DISK")) return undefined;
    throw error;
  }
}
