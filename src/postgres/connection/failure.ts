// Converts errors of the driver and the server into errors of Holdfast. Each keeps the original as
// its cause.
import { holdfastError, isHoldfastError, messageOf } from "../../errors.ts";

const busyPause = "Try again later.";

/** Returns the SQLSTATE or errno of an error, even after it was converted. */
export function sqlStateOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (isHoldfastError(error)) return cause === undefined ? "" : sqlStateOf(cause);
  return typeof code === "string" ? code : "";
}

const lostStates = /^(08|57P0[123]|EPIPE|ECONN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN)/;
const lostMessages = /^(Connection terminated|Client has encountered a connection error|Query read timeout)/;

/** True if the connection or the server was lost: the statement may have been executed. */
export function isLost(error: unknown): boolean {
  if (isHoldfastError(error)) return isHoldfastError(error, "IO_ERROR") && isLost(error.cause ?? "");
  return lostStates.test(sqlStateOf(error)) || lostMessages.test(messageOf(error));
}

/** True if the server rolled the transaction back because of a race: it may be repeated at once. */
export function isRace(error: unknown): boolean {
  return ["40001", "40P01"].includes(sqlStateOf(error));
}

/** True if every connection of the pool or of the server is in use. Nothing was sent. */
export function isOutOfConnections(error: unknown): boolean {
  if (isHoldfastError(error)) return isHoldfastError(error, "RESOURCE_BUSY") && isOutOfConnections(error.cause ?? "");
  return sqlStateOf(error) === "53300" || messageOf(error).startsWith("timeout exceeded when trying to connect");
}

/** Returns the error for callers. `path` is the location, without its password. */
export function failureOf(error: unknown, path: string): Error {
  if (isHoldfastError(error) || error instanceof TypeError || error instanceof RangeError) return error;
  const state = sqlStateOf(error);
  const why = `${path}: ${messageOf(error)}`;
  const busy = { path, blockedBy: [], worthWaiting: true };
  if (isOutOfConnections(error))
    return holdfastError("RESOURCE_BUSY", `${why} (every connection is in use). ${busyPause}`, busy, error);
  if (isLost(error)) return holdfastError("IO_ERROR", why, { path, errno: state || "ECONNRESET" }, error);
  if (isRace(error)) return holdfastError("RESOURCE_BUSY", `${why}. ${busyPause}`, busy, error);
  switch (state) {
    case "55P03": // lock_not_available
      return holdfastError("LOCK_TIMEOUT", why, { path, waitedMs: 0, blockedBy: [] }, error);
    case "57014": // query_canceled
      return holdfastError("RESOURCE_BUSY", `${why}: nothing was changed. ${busyPause}`, busy, error);
    case "25006": // read_only_sql_transaction
      return holdfastError("NO_PERMISSION", `${why}. This server is a standby, or read-only.`, { path }, error);
    case "28000":
    case "28P01":
    case "42501": // insufficient_privilege
      return holdfastError("NO_PERMISSION", why, { path }, error);
    case "53100":
      return holdfastError("DISK_FULL", why, { path }, error);
    case "3D000": // invalid_catalog_name
      return holdfastError("NOT_A_STORE", why, { path }, error);
    case "XX001":
    case "XX002": // data_corrupted, index_corrupted
      return holdfastError("CORRUPT", why, { path }, error);
    default:
      return holdfastError("IO_ERROR", why, state === "" ? { path } : { path, errno: state }, error);
  }
}
