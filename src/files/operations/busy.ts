// RESOURCE_BUSY: which hold is in the way of an operation, how long it has been there, and whether waiting helps.
import type { BlockingLock } from "../../common.ts";
import { holdfastError, isHoldfastError, type HoldfastErrorOf } from "../../errors.ts";

/** The tag of every lock that an operation takes begins so. */
export const tagPrefix = "files: ";

/** `own`: the holder id of this process, if it is known. Other errors than of a wait pass. */
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
  // A hold that this process took by itself, and did not give as `within`, ends only when its owner goes on.
  const isOwn = blockedBy.some(({ holder, tag }) => holder.id === own && tag?.startsWith(tagPrefix) !== true);
  const advice = isOwn
    ? "This process holds it itself: give that hold as `within`, or release it."
    : "It is worth waiting: give a longer `timeoutMs`, or try again.";
  const held = blockedBy.map(describe).join("; ");
  const message = `${call}: ${path} is busy, after a wait of ${waitedMs} ms. ${held === "" ? "" : `${held}. `}${advice}`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy, worthWaiting: !isOwn }, error);
}

function describe({ path, mode, shared, holder, since, tag }: BlockingLock): string {
  const ageMs = Math.max(0, holder.lastSeenAt.getTime() - since.getTime());
  const who = holder.name === undefined ? "" : `${holder.name}, `;
  const what = tag === undefined ? "" : ` (${tag})`;
  const kind = `${shared ? "a shared" : "an exclusive"} ${mode} lock`;
  return `${who}process ${holder.pid} on ${holder.host} (${holder.state}) has ${kind} on ${path}${what} since ${since.toISOString()}, for at least ${Math.round(ageMs / 1000)} s`;
}
