// The exit codes of the command line, and the one for each error code.
import type { ErrorCode, HoldfastError } from "../index.ts";

export const exitCodes = {
  done: 0,
  failed: 1,
  wrongUsage: 2,
  /** DIR exists, and the requested ticket, object or file is not in it. */
  nothingToDo: 3,
  notHeld: 4,
  verificationFailed: 5,
  /** The input is wrong and would fail again. The number is EX_DATAERR of sysexits.h. */
  failedForGood: 65,
  /**
   * The location that DIR names is missing: no store, log, box, bucket, tree or directory. The
   * number is EX_NOINPUT of sysexits.h.
   */
  missing: 66,
  /** Busy or timed out. The number is EX_TEMPFAIL of sysexits.h. */
  tryAgain: 75,
} as const;

// Every error code has an entry: a new one without an exit code does not compile.
const exitCodeByError: Record<ErrorCode, number> = {
  INVALID_PATH: exitCodes.wrongUsage,
  INVALID_NAME: exitCodes.wrongUsage,
  TOO_LARGE: exitCodes.wrongUsage,
  NOT_A_STORE: exitCodes.missing,
  WRONG_STORE: exitCodes.failed,
  NEWER_FORMAT: exitCodes.failed,
  CORRUPT: exitCodes.verificationFailed,
  UNSUPPORTED_DISK: exitCodes.verificationFailed,
  UNSUPPORTED: exitCodes.wrongUsage,
  COPY_CONFLICT: exitCodes.verificationFailed,
  CROSS_DEVICE: exitCodes.failed,
  DISK_FULL: exitCodes.failed,
  NO_PERMISSION: exitCodes.failed,
  IO_ERROR: exitCodes.failed,
  OUTCOME_UNKNOWN: exitCodes.tryAgain,
  CLOSED: exitCodes.failed,
  LOCK_TIMEOUT: exitCodes.tryAgain,
  LOCK_LOST: exitCodes.notHeld,
  NOT_HELD: exitCodes.notHeld,
  DEADLOCK: exitCodes.tryAgain,
  NO_SUCH_TRANSFER: exitCodes.nothingToDo,
  APPEND_CONDITION_FAILED: exitCodes.failed,
  EVENT_ID_REUSED: exitCodes.failedForGood,
  LOG_REWOUND: exitCodes.verificationFailed,
  EVENT_INVALID: exitCodes.failedForGood,
  CLAIM_LOST: exitCodes.notHeld,
  PAYLOAD_MISMATCH: exitCodes.verificationFailed,
  NO_SUCH_TICKET: exitCodes.nothingToDo,
  NO_SUCH_BUCKET: exitCodes.missing,
  BUCKET_EXISTS: exitCodes.failed,
  BUCKET_NOT_EMPTY: exitCodes.failed,
  NO_SUCH_KEY: exitCodes.nothingToDo,
  NO_SUCH_VERSION: exitCodes.nothingToDo,
  NO_SUCH_UPLOAD: exitCodes.nothingToDo,
  INVALID_PART: exitCodes.wrongUsage,
  INVALID_RANGE: exitCodes.wrongUsage,
  BAD_DIGEST: exitCodes.verificationFailed,
  PRECONDITION_FAILED: exitCodes.failed,
  RETAINED: exitCodes.failed,
  RESOURCE_BUSY: exitCodes.tryAgain,
  NO_SUCH_FILE: exitCodes.nothingToDo,
  FILE_EXISTS: exitCodes.failed,
  INDEX_FAILED: exitCodes.failed,
};

export function exitCodeOf(code: ErrorCode): number {
  return exitCodeByError[code];
}

/**
 * Like `exitCodeOf`, with two exceptions: a path whose directory does not exist is a missing
 * location, and a file where a directory is expected is wrong usage.
 */
export function exitCodeOfError(error: HoldfastError): number {
  const { errno } = (error.cause ?? {}) as { readonly errno?: unknown };
  if (error.code === "INVALID_PATH" && errno === "ENOENT") return exitCodes.missing;
  return isFileForDirectory(error) ? exitCodes.wrongUsage : exitCodeOf(error.code);
}

/** True if the user named a file where a directory is expected. */
export function isFileForDirectory(error: HoldfastError): boolean {
  return error.code === "IO_ERROR" && (error as { readonly errno?: unknown }).errno === "ENOTDIR";
}
