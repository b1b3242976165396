// RESOURCE_BUSY: which hold blocks an operation, how long it has been held, and whether waiting
// helps.
import type { BlockingLock } from "../../common.ts";
import { holdfastError, isHoldfastError, type HoldfastErrorOf } from "../../errors.ts";
import { indexingTag, tagPrefix } from "../tree/layout.ts";

/**
 * True if only the indexing of this process blocks, which locks the path for a moment to see that a
 * change is over.
 */
export function isOwnIndexing(error: HoldfastErrorOf<"LOCK_TIMEOUT">, own: string): boolean {
  const { blockedBy } = error;
  return (
    blockedBy.length > 0 &&
    blockedBy.every(({ holder, tag, shared }) => shared && holder.id === own && tag === indexingTag)
  );
}

/**
 * Converts a lock time-out or a deadlock to RESOURCE_BUSY, and returns other errors unchanged.
 * `own`: the holder id of this process, if known.
 */
export function busyError(call: string, path: string, error: unknown, own: string | undefined): unknown {
  if (isHoldfastError(error, "LOCK_TIMEOUT")) return fromTimeout(call, path, error, own);
  if (!isHoldfastError(error, "DEADLOCK")) return error;
  const message = `${call}: ${path} is locked, and its holder waits for a lock that this caller holds: waiting never ends. Release what you hold, and begin again.`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: false }, error);
}

function fromTimeout(
  call: string,
  path: string,
  error: HoldfastErrorOf<"LOCK_TIMEOUT">,
  own: string | undefined,
): unknown {
  const { blockedBy, waitedMs } = error;
  // A hold that the program acquired itself and did not pass as `within` ends only when the program
  // releases it. The locks of operations and of indexing end automatically, whichever process holds
  // them.
  const isOwn = blockedBy.some(({ holder, tag }) => holder.id === own && tag?.startsWith(tagPrefix) !== true);
  const advice = isOwn
    ? "Nothing was done. This process holds it itself: give that hold as `within`, or release it."
    : "Nothing was done. It is worth waiting: give a longer `timeoutMs`, or try again.";
  const held = blockedBy.map((lock) => describe(lock, own)).join("; ");
  const message = `${call}: ${path} is busy, after a wait of ${Math.round(waitedMs)} ms. ${held === "" ? "" : `${held}. `}${advice}`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy, worthWaiting: !isOwn }, error);
}

function describe({ path, mode, shared, holder, since, tag }: BlockingLock, own: string | undefined): string {
  const ageMs = Math.max(0, holder.lastSeenAt.getTime() - since.getTime());
  const who = holder.name === undefined ? "" : `${holder.name}, `;
  const what = tag === undefined ? "" : ` (${tag})`;
  const kind = `${shared ? "a shared" : "an exclusive"} ${mode} lock`;
  const process = holder.id === own ? "this process itself," : "process";
  return `${who}${process} ${holder.pid} on ${holder.host} (${holder.state}) has ${kind} on ${path}${what} since ${since.toISOString()}, for at least ${Math.round(ageMs / 1000)} s`;
}
