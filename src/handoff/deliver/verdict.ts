// The verdict on a claimed ticket: does a handler get it, and if not, why?
import { isHoldfastError } from "../../errors.ts";
import type { AttemptNote } from "../model/handoff.ts";
import type { Manifest } from "../model/manifest.ts";

export interface TicketVerdict {
  /**
   * `retry`: the ticket is retried later, or fails after its last attempt. Every other outcome
   * makes it a dead letter.
   */
  readonly outcome: AttemptNote["outcome"];
  readonly reason: string;
}

/**
 * Returns undefined if a handler gets the ticket, otherwise the reason; "stopped" if `signal`
 * aborted before the check was done.
 */
export async function findVerdict(
  { expiresAt }: Manifest,
  attempt: number,
  {
    attempts,
    nowMs,
    check,
  }: {
    /** The largest number of attempts. */
    readonly attempts: number;
    /** Returns the time of the engine's clock. */
    readonly nowMs: () => Promise<number>;
    /** Throws PAYLOAD_MISMATCH if a file differs from the manifest. */
    readonly check: (signal: AbortSignal) => Promise<void>;
  },
  signal: AbortSignal,
): Promise<TicketVerdict | "stopped" | undefined> {
  if (attempt > attempts) {
    const reason = `${attempt - 1} attempts ended without an answer: the worker died, or lost its claim.`;
    return { outcome: "lost", reason };
  }
  if (expiresAt !== undefined && expiresAt.getTime() <= (await nowMs()))
    return { outcome: "expired", reason: `It was not delivered before ${expiresAt.toISOString()}.` };
  try {
    await check(signal);
  } catch (error) {
    if (isHoldfastError(error, "PAYLOAD_MISMATCH")) return { outcome: "mismatch", reason: error.message };
    // This worker has no permission to read a file. Another worker may have it, or it is granted
    // later.
    if (isHoldfastError(error, "NO_PERMISSION")) return { outcome: "retry", reason: error.message };
    if (!signal.aborted) throw error;
    return "stopped";
  }
  return undefined;
}

/** The pause before a ticket that could not be read or sent is retried: it doubles with each attempt. */
export function pauseAfterMs(attempt: number): number {
  return 500 * 2 ** Math.min(attempt, 10);
}
