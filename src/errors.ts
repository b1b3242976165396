// The one error class of Holdfast, its closed set of codes, and what a caller should do about each.
import type { BlockingLock, HolderInfo, SequencedEvent } from "./common.ts";

export type ErrorAction = "retry" | "reopen" | "fix-caller" | "fix-data" | "report";

/**
 * The closed set of codes, each with the facts that its errors carry as own properties, and so
 * never under a name that an error has already.
 */
export interface ErrorFacts {
  // any part
  INVALID_PATH: { readonly path: string };
  INVALID_NAME: { readonly invalidName: string };
  TOO_LARGE: { readonly limit: number; readonly actual: number };
  NOT_A_STORE: { readonly path: string };
  WRONG_STORE: { readonly path: string; readonly expected: string; readonly found: string };
  NEWER_FORMAT: { readonly path: string; readonly writtenBy: string };
  CORRUPT: { readonly path: string };
  UNSUPPORTED_DISK: { readonly path: string; readonly missing: readonly string[] };
  CROSS_DEVICE: { readonly path: string };
  DISK_FULL: { readonly path: string };
  NO_PERMISSION: { readonly path: string };
  IO_ERROR: { readonly path: string; readonly errno?: string };
  /**
   * The request left this process and no answer came: it may have happened. Repeating it with the
   * same id or key is safe.
   */
  OUTCOME_UNKNOWN: { readonly path: string; readonly ids?: readonly string[] };
  CLOSED: {};
  // locks
  LOCK_TIMEOUT: { readonly path: string; readonly waitedMs: number; readonly blockedBy: readonly BlockingLock[] };
  LOCK_LOST: { readonly path: string; readonly fence?: number };
  NOT_HELD: { readonly path: string };
  DEADLOCK: { readonly path: string; readonly cycle: readonly HolderInfo[] };
  NO_SUCH_TRANSFER: { readonly token: string };
  // events
  APPEND_CONDITION_FAILED: { readonly conflicts: readonly SequencedEvent[] };
  EVENT_ID_REUSED: { readonly id: string; readonly position: number };
  /**
   * A checkpoint names a line that this log no longer has: it was restored from a backup, or
   * another log.
   */
  LOG_REWOUND: { readonly position: number };
  EVENT_INVALID: { readonly type: string; readonly issues: readonly string[] };
  // hand-off
  CLAIM_LOST: { readonly id: string; readonly attempt: number };
  PAYLOAD_MISMATCH: { readonly id: string; readonly file: string };
  NO_SUCH_TICKET: { readonly id: string };
  // objects
  NO_SUCH_BUCKET: { readonly bucket: string };
  BUCKET_EXISTS: { readonly bucket: string };
  BUCKET_NOT_EMPTY: { readonly bucket: string };
  NO_SUCH_KEY: { readonly key: string; readonly deleteMarker?: string };
  NO_SUCH_VERSION: { readonly key: string; readonly versionId: string };
  NO_SUCH_UPLOAD: { readonly uploadId: string };
  INVALID_PART: { readonly partNumber: number };
  INVALID_RANGE: { readonly size: number };
  BAD_DIGEST: { readonly key: string };
  /** Also of files, where `key` is the path. */
  PRECONDITION_FAILED: { readonly key: string; readonly current?: string };
  RETAINED: { readonly key: string; readonly until?: Date };
  // files
  RESOURCE_BUSY: {
    readonly path: string;
    readonly blockedBy: readonly BlockingLock[];
    readonly worthWaiting: boolean;
    readonly committed?: true;
  };
  NO_SUCH_FILE: { readonly path: string };
  FILE_EXISTS: { readonly path: string };
  INDEX_FAILED: { readonly path: string };
}
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

// Registered, so that an error of another copy of this package in the same process is recognised.
const brand: symbol = Symbol.for("holdfast.error");

/**
 * Every failure of Holdfast itself. Misuse that a compiler would have caught is a TypeError or
 * RangeError instead.
 */
export class HoldfastError extends Error {
  override readonly name: string = "HoldfastError";
  readonly code: ErrorCode;
  readonly action: ErrorAction;

  constructor(code: ErrorCode, message: string, facts: object, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.action = actionOf[code];
    Object.assign(this, facts);
    Object.defineProperty(this, brand, { value: true });
  }

  toJSON(): Record<string, unknown> {
    const { name, message, code, action, ...facts } = { ...this, message: this.message };
    return { name, code, action, message, ...facts };
  }
}

export type HoldfastErrorOf<C extends ErrorCode> = {
  [K in C]: HoldfastError & { readonly code: K } & ErrorFacts[K];
}[C];

/** Makes an error whose facts the compiler has checked against its code. */
export function holdfastError<C extends ErrorCode>(
  code: C,
  message: string,
  facts: ErrorFacts[C],
  cause?: unknown,
): HoldfastErrorOf<C> {
  return new HoldfastError(code, message, facts, cause) as HoldfastErrorOf<C>;
}

/** Works across two copies of the package; with a code it also gives the facts of that code. */
export function isHoldfastError(error: unknown): error is HoldfastErrorOf<ErrorCode>;
export function isHoldfastError<C extends ErrorCode>(
  error: unknown,
  ...codes: readonly [C, ...C[]]
): error is HoldfastErrorOf<C>;
export function isHoldfastError(error: unknown, ...codes: readonly ErrorCode[]): boolean {
  if (typeof error !== "object" || error === null || !(brand in error)) return false;
  return codes.length === 0 || codes.includes((error as HoldfastError).code);
}
