// Gives a new file the rights of its directory: each user who may write there may open the file,
// and no other.
import { findErrno } from "./disk/errno.ts";
import type { FileCalls } from "./disk/file-calls.ts";

/**
 * A user may not give a file away, a container does not know the user, or a file system has no
 * users.
 */
const refusals: readonly (string | undefined)[] = ["EPERM", "EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/** Called before other processes know of the file, which was made with mode 0600. */
export async function fitDirectory(calls: FileCalls, fd: number, directory: string): Promise<void> {
  const { uid, gid, mode } = await calls.stat(directory);
  const own = await calls.fstat(fd);
  const isGiven =
    (own.uid === uid && own.gid === gid) || (await isDone(() => calls.fchown(fd, Number(uid), Number(gid))));
  const hasGroup = isGiven || own.gid === gid || (await isDone(() => calls.fchown(fd, Number(own.uid), Number(gid))));
  const others = (mode & 0o002n) === 0n ? 0 : 0o006;
  // A group that is not the directory's has the rights of all others there.
  const group = (mode & (hasGroup ? 0o020n : 0o002n)) === 0n ? 0 : 0o060;
  await isDone(() => calls.fchmod(fd, 0o600 | group | others));
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
