// What every program imports as "holdfast".
export type {
  BlockingLock,
  Cancel,
  Hold,
  HolderInfo,
  LockMode,
  Problem,
  Running,
  VerifyOptions,
  VerifyReport,
  Waiting,
} from "./common.ts";
export { errorCodes, HoldfastError, isHoldfastError } from "./errors.ts";
export type { ErrorAction, ErrorCode, ErrorFacts, HoldfastErrorOf } from "./errors.ts";
export { doctor } from "./doctor/index.ts";
export type {
  CheckVerdict,
  DoctorCheck,
  DoctorOptions,
  DoctorPeer,
  DoctorReport,
  DoctorVerdict,
} from "./doctor/index.ts";
export { packageVersion as version } from "./format/version.ts";
