// What every program imports as "holdfast".
import type { DoctorOptions, DoctorReport } from "./doctor/index.ts";

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
export { packageVersion as version } from "./format/version.ts";

/**
 * What the file system of `directory` can be trusted with. Makes and removes a directory of its own in
 * there, and touches nothing else. Rejects with INVALID_PATH, NO_PERMISSION or DISK_FULL when nothing
 * could be examined; a file system that Holdfast must not be used on is an answer, not an error.
 */
export async function doctor(directory: string, options: DoctorOptions = {}): Promise<DoctorReport> {
  // Loaded when it is asked for: programs that import "holdfast" seldom do.
  const { doctor: examine } = await import("./doctor/index.ts");
  return await examine(directory, options);
}
