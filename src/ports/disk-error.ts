// Turns a failed disk operation into the error that users may see, and keeps the POSIX name on
// which protocols branch.
import { HoldfastError, isHoldfastError, type ErrorCode } from "../errors.ts";

const codeOf: Partial<Record<string, ErrorCode>> = {
  ENOSPC: "DISK_FULL",
  EDQUOT: "DISK_FULL",
  EACCES: "NO_PERMISSION",
  EPERM: "NO_PERMISSION",
  EROFS: "NO_PERMISSION",
  EXDEV: "CROSS_DEVICE",
  ENAMETOOLONG: "INVALID_PATH",
  ELOOP: "INVALID_PATH",
};

const remedyOf: Partial<Record<string, string>> = {
  ENOSPC: "the disk is full: make room and try again, nothing was half-written",
  EDQUOT: "the quota is used up: make room and try again, nothing was half-written",
  EACCES: "this user may not do that: check owner and mode of the path and of the directories above it",
  EPERM: "this user may not do that, or the file system does not support it: `holdfast doctor` shows which",
  EROFS: "the file system is mounted read-only",
  EXDEV: "both paths must be on one file system",
  ENOTDIR: "a file is where a directory should be: move it away",
  EISDIR: "a directory is where a file should be: move it away",
  ENXIO: "something that is not a file is in its place (a FIFO, a socket, a device): move it away",
  ENOENT: "it is not there",
  EEXIST: "it already exists",
  EIO: "the disk or the network failed: the operation may or may not have happened",
  ESTALE: "the server no longer knows this file: it was removed or the server was restarted",
  EHOSTDOWN: "the server does not answer: the operation may or may not have happened",
  EAGAIN: "the connection to the server was lost: the operation may or may not have happened",
  ELOOP: "its symbolic links lead in a circle",
  ENAMETOOLONG: "the name or the path is too long for this file system",
};

/**
 * Creates the error of a failed disk operation. `errno` is the POSIX name, even where the platform
 * has only a number.
 */
export function diskError(errno: string, operation: string, path: string, cause?: unknown): HoldfastError {
  const remedy = remedyOf[errno];
  const message = `${operation} ${path}: ${errno}${remedy === undefined ? "" : `, ${remedy}`}`;
  return new HoldfastError(codeOf[errno] ?? "IO_ERROR", message, { path, errno }, cause);
}

/** Returns the POSIX name of a disk failure; undefined for any other error. */
export function errnoOf(error: unknown): string | undefined {
  if (!isHoldfastError(error)) return undefined;
  const errno: unknown = (error as { errno?: unknown }).errno;
  return typeof errno === "string" ? errno : undefined;
}

export function hasErrno(error: unknown, ...names: readonly string[]): boolean {
  const errno = errnoOf(error);
  return errno !== undefined && names.includes(errno);
}

/** Returns the result of `look`; undefined if nothing exists there or it disappeared meanwhile. */
export async function findIfThere<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return undefined;
    throw error;
  }
}

/**
 * True if nothing can be written here now: no permission, a read-only mount, a full disk. The
 * operation did not happen.
 */
export function isUnwritable(error: unknown): boolean {
  return isHoldfastError(error, "NO_PERMISSION", "DISK_FULL");
}

// Errors of an SMB client while its server is unreachable or it reconnects. An NFS client waits on
// its own, unless it is mounted soft.
const outages = [
  // An NFS client reports this for a reply that it does not recognize. A server sent one to a client that it had
  // given up and that came back.
  "EREMOTEIO",
  ...["EAGAIN", "ETIMEDOUT", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH"],
  ...["ENOTCONN", "ECONNREFUSED", "ECONNRESET", "ECONNABORTED"],
];

// The request timed out, was reset, or was lost in transit: the server may have executed it.
const unknownOutcomes = ["EIO", "ESTALE", ...outages];

/** True if the operation may have happened although it failed: the content must decide. */
export function isOutcomeUnknown(error: unknown): boolean {
  return hasErrno(error, ...unknownOutcomes);
}

/** True if the server was unreachable, or was lost before it replied: it may be back soon. */
export function isOutage(error: unknown): boolean {
  return hasErrno(error, ...outages);
}
