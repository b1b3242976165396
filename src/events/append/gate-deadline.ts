// How long those in a queue wait for the gate: each as long as he said, also one who comes when the wait has begun.
import type { Clock } from "../../ports/clock.ts";

/** What a wait ends with when nobody is left who wants it. */
export const nobodyWaits = "nobody waits any more";

export class GateDeadline {
  readonly #clock: Clock;
  readonly #dismissLate: () => number;
  readonly #over = new AbortController();
  #deadlineMs = Infinity;
  #cancel: (() => void) | undefined;

  /** `dismissLate` sends away whose time is up, and gives the next deadline by the monotonic clock: Infinity when nobody has one. */
  constructor(clock: Clock, dismissLate: () => number) {
    this.#clock = clock;
    this.#dismissLate = dismissLate;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Somebody waits until then. */
  expect(deadlineMs: number): void {
    if (deadlineMs >= this.#deadlineMs) return;
    this.#deadlineMs = deadlineMs;
    this.#cancel?.();
    const leftMs = Math.max(0, deadlineMs - this.#clock.monotonicMs());
    this.#cancel = this.#clock.alarm(leftMs, () => {
      this.#cancel = undefined;
      this.#deadlineMs = Infinity;
      this.expect(this.#dismissLate());
    });
  }

  giveUp(): void {
    this.#over.abort(nobodyWaits);
  }

  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
