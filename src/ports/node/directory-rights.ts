// Permissions of directories: gives a new file those of its directory, so that exactly the users
// who may write there can open the file; and determines what may be renamed there.
import { constants, type Stats } from "node:fs";
import { dirname } from "node:path";
import { diskError } from "../disk-error.ts";
import { findErrno } from "./disk/errno.ts";
import type { FileCalls } from "./disk/file-calls.ts";

/** A user may not give a file away, a container does not know the user, or a file system has no users. */
const refusals: readonly (string | undefined)[] = ["EPERM", "EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

const stickyBit = 0o1000;

/** Called before other processes know the file, which was created with mode 0600. */
export async function fitDirectory(calls: FileCalls, fd: number, directory: string): Promise<void> {
  const { uid, gid, mode } = await calls.stat(directory);
  const own = await calls.fstat(fd);
  const isGiven =
    (own.uid === uid && own.gid === gid) || (await isDone(() => calls.fchown(fd, Number(uid), Number(gid))));
  const hasGroup = isGiven || own.gid === gid || (await isDone(() => calls.fchown(fd, Number(own.uid), Number(gid))));
  const others = (mode & 0o002n) === 0n ? 0 : 0o006;
  // A group other than the directory's has the permissions of "others" there.
  const group = (mode & (hasGroup ? 0o020n : 0o002n)) === 0n ? 0 : 0o060;
  await isDone(() => calls.fchmod(fd, 0o600 | group | others));
}

/**
 * True if `path` may be renamed into or out of its directory. It asks the operating system instead
 * of trying, because others would see the attempt. `path` need not exist.
 */
export async function mayRename(calls: FileCalls, path: string): Promise<boolean> {
  const directory = dirname(path);
  if (!(await isWritable(calls, directory))) return false;
  const own = await calls.lstat(path);
  if (own === undefined) return true;
  // A directory that changes its parent gets a new `..` entry, so it must be writable too.
  if (own.isDirectory() && !(await isWritable(calls, path))) return false;
  const above = await statOf(calls, directory);
  const user = process.geteuid?.() ?? 0;
  return (above.mode & stickyBit) === 0 || user === 0 || [above.uid, own.uid].includes(user);
}

async function isWritable(calls: FileCalls, directory: string): Promise<boolean> {
  // `access` answers for the user that started the process.
  if (process.getuid?.() !== process.geteuid?.()) return isWritableBy(await statOf(calls, directory));
  try {
    await calls.access(directory, constants.W_OK | constants.X_OK);
    return true;
  } catch (error) {
    if (!["EACCES", "EPERM", "EROFS"].includes(findErrno(error) ?? "")) throw error;
    return false;
  }
}

function isWritableBy({
  mode,
  uid,
  gid,
}: {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}): boolean {
  const user = process.geteuid?.() ?? 0;
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  const bits = user === uid ? mode >> 6 : groups.includes(gid) ? mode >> 3 : mode;
  return user === 0 || (bits & 0o3) === 0o3;
}

async function statOf(calls: FileCalls, path: string): Promise<Stats> {
  const stats = await calls.lstat(path);
  if (stats === undefined) throw diskError("ENOENT", "look at", path);
  return stats;
}

async function isDone(change: () => void | Promise<void>): Promise<boolean> {
  try {
    await change();
    return true;
  } catch (error) {
    if (!refusals.includes(findErrno(error))) throw error;
    return false;
  }
}
