// What the command line tells a script by its exit code, and which code of an error leads to which.
import type { ErrorCode } from "../index.ts";

export const exitCodes = {
  done: 0,
  failed: 1,
  wrongUsage: 2,
  /** What was asked for is not there, so there is nothing to do it to. */
  nothingToDo: 3,
  notHeld: 4,
  verificationFailed: 5,
  /** The same input will fail again. The number is EX_DATAERR of sysexits.h. */
  failedForGood: 65,
  /** Busy or timed out. The number is EX_TEMPFAIL of sysexits.h. */
  tryAgain: 75,
} as const;

// Complete, so that a new error code does not compile before it has an exit code here.
const exitCodeByError: Record<ErrorCode, number> = {
  INVALID_PATH: exitCodes.wrongUsage,
  INVALID_NAME: exitCodes.wrongUsage,
  TOO_LARGE: exitCodes.wrongUsage,
  NOT_A_STORE: exitCodes.failed,
  WRONG_STORE: exitCodes.failed,
  NEWER_FORMAT: exitCodes.failed,
  CORRUPT: exitCodes.verificationFailed,
  UNSUPPORTED_DISK: exitCodes.verificationFailed,
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
  NO_SUCH_BUCKET: exitCodes.nothingToDo,
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
