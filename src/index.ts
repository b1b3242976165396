// What every program imports as "holdfast".
import type { DoctorOptions, DoctorReport } from "./doctor/index.ts";
import type { VerifyOptions, VerifyReport } from "./common.ts";
import type { Store, StoreOptions } from "./store.ts";

export type {
  BlockingLock,
  Body,
  Cancel,
  Content,
  Hold,
  HolderInfo,
  LockMode,
  OpenOptions,
  Problem,
  Running,
  VerifyOptions,
  VerifyReport,
  Waiting,
} from "./common.ts";
export { errorCodes, HoldfastError, isHoldfastError } from "./errors.ts";
export type { ErrorAction, ErrorCode, ErrorFacts, HoldfastErrorOf } from "./errors.ts";
export type {
  CheckVerdict,
  DoctorCheck,
  DoctorOptions,
  DoctorPeer,
  DoctorReport,
  DoctorVerdict,
} from "./doctor/index.ts";
export type { Capabilities } from "./doctor/capabilities.ts";
export type {
  Store,
  StoreEventsOptions,
  StoreFilesOptions,
  StoreHandoffOptions,
  StoreLocksOptions,
  StoreOptions,
} from "./store.ts";
export { packageVersion as version } from "./format/version.ts";

/**
 * Opens the store at `location`, making it if it is not there: a directory, a `file:` URL, or
 * "memory:" for a new one in memory. NOT_A_STORE and WRONG_STORE as the options ask; INVALID_PATH
 * for a directory that is an event log or a hand-off box, or has path locks of its own; NO_PERMISSION and
 * UNSUPPORTED_DISK before anything is written. Where nothing can be written, a store that is there
 * opens for reading.
 */
export async function openStore(location: string | URL, options: StoreOptions = {}): Promise<Store> {
  // Loaded when it is asked for, as the doctor is: many programs use one part alone.
  const { openStore: open } = await import("./store.ts");
  return await open(location, options);
}

/**
 * Checks what a store has beside its parts: its record, its ground and its lock table. Undefined
 * where no store is. `repair` makes a lost or damaged record anew.
 */
export async function verifyStore(
  location: string | URL,
  options: VerifyOptions = {},
): Promise<VerifyReport | undefined> {
  const { verifyStore: verify } = await import("./verify-store.ts");
  return await verify(location, options);
}

/**
 * What the file system of `directory` can be trusted with. Makes and removes a directory of its own
 * in there, and touches nothing else. Rejects with INVALID_PATH, NO_PERMISSION or DISK_FULL when
 * nothing could be examined; a file system that Holdfast must not be used on is an answer, not an
 * error.
 */
export async function doctor(directory: string, options: DoctorOptions = {}): Promise<DoctorReport> {
  const { doctor: examine } = await import("./doctor/index.ts");
  return await examine(directory, options);
}
