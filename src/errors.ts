// The error class of Holdfast, its closed set of codes, and the action that a caller should take
// for each.
import type { BlockingLock, HolderInfo, SequencedEvent } from "./common.ts";

/** What a caller can do about an error: see docs/errors.md. */
export type ErrorAction = "retry" | "reopen" | "fix-caller" | "fix-data" | "report";

/**
 * The closed set of codes, each with the facts that its errors carry as own properties. No fact has the name of a
 * property that every error has.
 */
export interface ErrorFacts {
  // any part
  /** The path is empty, leaves the root, or is reserved. */
  INVALID_PATH: { readonly path: string };
  /** The name of a log, box, bucket, key or file is not allowed. */
  INVALID_NAME: { readonly invalidName: string };
  /** A value is larger than the format allows. */
  TOO_LARGE: { readonly limit: number; readonly actual: number };
  /** The folder contains no store or part, and the caller did not want to create one. */
  NOT_A_STORE: { readonly path: string };
  /** The folder contains another store or part than expected. */
  WRONG_STORE: { readonly path: string; readonly expected: string; readonly found: string };
  /** A newer version of Holdfast wrote this file. */
  NEWER_FORMAT: { readonly path: string; readonly writtenBy: string };
  /** A file is damaged: its checksum or its structure is wrong. */
  CORRUPT: { readonly path: string };
  /** The file system lacks what Holdfast needs. */
  UNSUPPORTED_DISK: { readonly path: string; readonly missing: readonly string[] };
  /** The location does not support this. `what` names the call or the package. */
  UNSUPPORTED: { readonly what: string; readonly location: string };
  /** The target of a copy has something else under a name of the source. `what` is that thing. */
  COPY_CONFLICT: { readonly path: string; readonly what: string };
  /** A rename would cross file systems. */
  CROSS_DEVICE: { readonly path: string };
  /** The disk, quota or inode table is full. */
  DISK_FULL: { readonly path: string };
  /** This user may not do that. */
  NO_PERMISSION: { readonly path: string };
  /** The disk failed. `errno` is the POSIX name of the failure. */
  IO_ERROR: { readonly path: string; readonly errno?: string };
  /** The request was sent and no answer came: it may have happened. Repeating it with the same id or key is safe. */
  OUTCOME_UNKNOWN: { readonly path: string; readonly ids?: readonly string[] };
  /** The store or part was closed, or its folder was replaced. */
  CLOSED: {};
  // locks
  /** The lock was not granted in time. `blockedBy` lists the locks that block it. */
  LOCK_TIMEOUT: { readonly path: string; readonly waitedMs: number; readonly blockedBy: readonly BlockingLock[] };
  /** The lock was broken, or this process slept past its lease. */
  LOCK_LOST: { readonly path: string; readonly fence?: number };
  /** The call needs a lock that this hold does not cover. */
  NOT_HELD: { readonly path: string };
  /** Waiting would never end: the holders in `cycle` wait for each other. */
  DEADLOCK: { readonly path: string; readonly cycle: readonly HolderInfo[] };
  /** The token is unknown, was used, or has expired. */
  NO_SUCH_TRANSFER: { readonly token: string };
  // events
  /** Events that match the condition were appended since; `conflicts` has them. */
  APPEND_CONDITION_FAILED: { readonly conflicts: readonly SequencedEvent[] };
  /** The id belongs to a different event. */
  EVENT_ID_REUSED: { readonly id: string; readonly position: number };
  /**
   * A checkpoint names a line that this log no longer has: it was restored from a backup, or
   * another log.
   */
  LOG_REWOUND: { readonly position: number };
  /** An event does not match its schema. */
  EVENT_INVALID: { readonly type: string; readonly issues: readonly string[] };
  // hand-off
  /** Another worker has the ticket: this one slept past its lease. */
  CLAIM_LOST: { readonly id: string; readonly attempt: number };
  /** A file of the ticket does not match its manifest. */
  PAYLOAD_MISMATCH: { readonly id: string; readonly file: string };
  /** The box has no such ticket. */
  NO_SUCH_TICKET: { readonly id: string };
  // objects
  /** The bucket does not exist. */
  NO_SUCH_BUCKET: { readonly bucket: string };
  /** The bucket exists. */
  BUCKET_EXISTS: { readonly bucket: string };
  /** The bucket still contains versions or uploads. */
  BUCKET_NOT_EMPTY: { readonly bucket: string };
  /** The key has no current version. */
  NO_SUCH_KEY: { readonly key: string; readonly deleteMarker?: string };
  /** The key has no such version. */
  NO_SUCH_VERSION: { readonly key: string; readonly versionId: string };
  /** The upload does not exist, or has ended. */
  NO_SUCH_UPLOAD: { readonly uploadId: string };
  /** A part of the upload is missing, too small, or out of order. */
  INVALID_PART: { readonly partNumber: number };
  /** The range begins after the end of the object. */
  INVALID_RANGE: { readonly size: number };
  /** The body does not match the digest that the caller declared. */
  BAD_DIGEST: { readonly key: string };
  /** The condition of a put or write does not hold. For files, `key` is the path. */
  PRECONDITION_FAILED: { readonly key: string; readonly current?: string };
  /** The version is under retention or legal hold. */
  RETAINED: { readonly key: string; readonly until?: Date };
  // files
  /** Other processes use the path. With `committed`, the change counts and will be completed. */
  RESOURCE_BUSY: {
    readonly path: string;
    readonly blockedBy: readonly BlockingLock[];
    readonly worthWaiting: boolean;
    readonly committed?: true;
  };
  /** The file or directory does not exist. */
  NO_SUCH_FILE: { readonly path: string };
  /** Something exists at the target. */
  FILE_EXISTS: { readonly path: string };
  /** The index could not be changed, so nothing was changed. */
  INDEX_FAILED: { readonly path: string };
}
/** The code of a HoldfastError. */
export type ErrorCode = keyof ErrorFacts;

const actionOf: Record<ErrorCode, ErrorAction> = {
  INVALID_PATH: "fix-caller",
  INVALID_NAME: "fix-caller",
  TOO_LARGE: "fix-caller",
  NOT_A_STORE: "fix-caller",
  WRONG_STORE: "fix-caller",
  NEWER_FORMAT: "fix-caller",
  CORRUPT: "fix-data",
  UNSUPPORTED_DISK: "fix-caller",
  UNSUPPORTED: "fix-caller",
  COPY_CONFLICT: "fix-data",
  CROSS_DEVICE: "fix-caller",
  DISK_FULL: "fix-data",
  NO_PERMISSION: "fix-caller",
  IO_ERROR: "report",
  OUTCOME_UNKNOWN: "retry",
  CLOSED: "reopen",
  LOCK_TIMEOUT: "retry",
  LOCK_LOST: "reopen",
  NOT_HELD: "fix-caller",
  DEADLOCK: "retry",
  NO_SUCH_TRANSFER: "fix-caller",
  APPEND_CONDITION_FAILED: "retry",
  EVENT_ID_REUSED: "fix-caller",
  LOG_REWOUND: "fix-data",
  EVENT_INVALID: "fix-caller",
  CLAIM_LOST: "retry",
  PAYLOAD_MISMATCH: "fix-data",
  NO_SUCH_TICKET: "fix-caller",
  NO_SUCH_BUCKET: "fix-caller",
  BUCKET_EXISTS: "fix-caller",
  BUCKET_NOT_EMPTY: "fix-caller",
  NO_SUCH_KEY: "fix-caller",
  NO_SUCH_VERSION: "fix-caller",
  NO_SUCH_UPLOAD: "fix-caller",
  INVALID_PART: "fix-caller",
  INVALID_RANGE: "fix-caller",
  BAD_DIGEST: "retry",
  PRECONDITION_FAILED: "retry",
  RETAINED: "fix-caller",
  RESOURCE_BUSY: "retry",
  NO_SUCH_FILE: "fix-caller",
  FILE_EXISTS: "fix-caller",
  INDEX_FAILED: "retry",
};

/** Every code that a HoldfastError can carry; each is a heading in docs/errors.md. */
export const errorCodes: readonly ErrorCode[] = Object.keys(actionOf) as ErrorCode[];

// Registered globally, so that an error of another copy of this package in the same process is recognized.
const brand: symbol = Symbol.for("holdfast.error");

/**
 * Every error that Holdfast reports; `code` says which. Misuse that a compiler would have caught is a TypeError or
 * RangeError instead.
 */
export class HoldfastError extends Error {
  /** "HoldfastError". */
  override readonly name: string = "HoldfastError";
  /** What happened; one of a closed set. */
  readonly code: ErrorCode;
  /** What a caller can do about it. */
  readonly action: ErrorAction;

  constructor(code: ErrorCode, message: string, facts: object, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.action = actionOf[code];
    Object.assign(this, facts);
    Object.defineProperty(this, brand, { value: true });
  }

  /** Returns code, action, message and facts, for logs. */
  toJSON(): Record<string, unknown> {
    const { name, message, code, action, ...facts } = { ...this, message: this.message };
    return { name, code, action, message, ...facts };
  }
}

/** A HoldfastError with this code and its facts. */
export type HoldfastErrorOf<C extends ErrorCode> = {
  [K in C]: HoldfastError & { readonly code: K } & ErrorFacts[K];
}[C];

/** Creates an error; the compiler checks its facts against its code. */
export function holdfastError<C extends ErrorCode>(
  code: C,
  message: string,
  facts: ErrorFacts[C],
  cause?: unknown,
): HoldfastErrorOf<C> {
  return new HoldfastError(code, message, facts, cause) as HoldfastErrorOf<C>;
}

/**
 * Returns the message of any thrown value. Checks its shape, not its class: an error of Node is not an `instanceof
 * Error` in a separate context, as under jest.
 */
export function messageOf(thrown: unknown): string {
  return isErrorLike(thrown) ? thrown.message : String(thrown);
}

/** True for an error of any realm: an object with a message. */
export function isErrorLike(thrown: unknown): thrown is Error {
  return typeof thrown === "object" && thrown !== null && typeof (thrown as { message?: unknown }).message === "string";
}

/**
 * True for a HoldfastError of any copy of the package. If codes are given, true only for one of these, and the
 * compiler then knows their facts.
 */
export function isHoldfastError(error: unknown): error is HoldfastErrorOf<ErrorCode>;
export function isHoldfastError<C extends ErrorCode>(
  error: unknown,
  ...codes: readonly [C, ...C[]]
): error is HoldfastErrorOf<C>;
export function isHoldfastError(error: unknown, ...codes: readonly ErrorCode[]): boolean {
  if (typeof error !== "object" || error === null || !(brand in error)) return false;
  return codes.length === 0 || codes.includes((error as HoldfastError).code);
}
