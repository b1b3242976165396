// RESOURCE_BUSY: which hold is in the way of an operation, how long it has been there, and whether waiting helps.
import type { BlockingLock } from "../../common.ts";
import { holdfastError, isHoldfastError, type HoldfastErrorOf } from "../../errors.ts";
import { indexingTag, tagPrefix } from "../tree/layout.ts";

/** Whether only the indexing of this process is in the way, which looks for a moment whether a change is over. */
export function isOwnGlance(error: HoldfastErrorOf<"LOCK_TIMEOUT">, own: string): boolean {
  const { blockedBy } = error;
  return (
    blockedBy.length > 0 &&
    blockedBy.every(({ holder, tag, shared }) => shared && holder.id === own && tag === indexingTag)
  );
}

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
  // A hold that the program took by itself, and did not give as `within`, ends only when its owner goes on. The locks of
  // operations and of the indexing end by themselves, whichever process has them.
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
