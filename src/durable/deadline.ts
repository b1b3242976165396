// How long somebody waits: until his time is up, his signal aborts, or what he waits for is closed.
import type { Waiting } from "../common.ts";
import type { Clock } from "../ports/clock.ts";

export interface DeadlineOptions extends Waiting {
  readonly closed?: AbortSignal | undefined;
  /** What the wait rejects with when the time is up. */
  readonly timedOut: () => unknown;
}

export class Deadline {
  readonly signal: AbortSignal;
  readonly #done = new AbortController();

  constructor(clock: Clock, { timeoutMs = Infinity, signal, closed, timedOut }: DeadlineOptions) {
    const timeout = new AbortController();
    if (timeoutMs < Infinity)
      clock.sleep(timeoutMs, { signal: this.#done.signal }).then(
        () => timeout.abort(timedOut()),
        () => undefined, // Cancelled: the wait is over.
      );
    this.signal = AbortSignal.any([timeout.signal, closed, signal].filter((each) => each !== undefined));
  }

  cancel(): void {
    this.#done.abort();
  }
}

/** A number of milliseconds, or Infinity. RangeError. */
export function checkTimeout(timeoutMs: number): number {
  if (typeof timeoutMs === "number" && !Number.isNaN(timeoutMs)) return timeoutMs;
  throw new RangeError("timeoutMs must be a number of milliseconds, or Infinity.");
}
