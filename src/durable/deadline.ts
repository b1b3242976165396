// How long somebody waits: until his time is up, his signal aborts, or what he waits for is closed.
import { setMaxListeners } from "node:events";
import type { Waiting } from "../common.ts";
import type { Clock } from "../ports/clock.ts";

export interface DeadlineOptions extends Waiting {
  readonly closed?: AbortSignal | undefined;
  /** What the wait rejects with when the time is up. */
  readonly timedOut: () => unknown;
}

/** Nobody sees it: it only ends a sleep. Given because an abort without a reason makes an error with a stack. */
const over = "over";

export class Deadline {
  readonly #over = new AbortController();
  readonly #sleep = new AbortController();
  readonly #sources: readonly AbortSignal[];

  constructor(clock: Clock, { timeoutMs = Infinity, signal, closed, timedOut }: DeadlineOptions) {
    // By listeners that are taken back, and not by `AbortSignal.any`: that leaves something behind in each long-lived signal.
    this.#sources = [closed, signal].filter((each) => each !== undefined);
    for (const source of this.#sources) {
      if (source.aborted) this.#over.abort(source.reason);
      // Many may wait under one signal, and each takes its listener back: no leak to warn of.
      setMaxListeners(0, source);
      source.addEventListener("abort", this.#pass, { once: true });
    }
    if (timeoutMs < Infinity)
      clock.sleep(timeoutMs, { signal: this.#sleep.signal }).then(
        () => this.#over.abort(timedOut()),
        () => undefined, // Cancelled: the wait is over.
      );
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  cancel(): void {
    this.#sleep.abort(over);
    for (const source of this.#sources) source.removeEventListener("abort", this.#pass);
  }

  readonly #pass = (event: Event): void => this.#over.abort((event.target as AbortSignal).reason);
}

/** A number of milliseconds, or Infinity. RangeError. */
export function checkTimeout(timeoutMs: number): number {
  if (typeof timeoutMs === "number" && !Number.isNaN(timeoutMs)) return timeoutMs;
  throw new RangeError("timeoutMs must be a number of milliseconds, or Infinity.");
}
