// "holdfast": what every program imports.
export type { BlockingLock, Cancel, Hold, HolderInfo, LockMode, Waiting } from "./common.ts";
export { errorCodes, HoldfastError, isHoldfastError } from "./errors.ts";
export type { ErrorAction, ErrorCode, ErrorFacts, HoldfastErrorOf } from "./errors.ts";
