// One timeout over several waits: how much of it is left.
import type { Waiting } from "../../index.ts";

export class TimeLeft {
  readonly #waiting: Waiting;
  readonly #startMs = performance.now();

  constructor(waiting: Waiting) {
    this.#waiting = waiting;
  }

  left(): Waiting & { readonly timeoutMs: number } {
    const { timeoutMs = Infinity } = this.#waiting;
    return { ...this.#waiting, timeoutMs: Math.max(0, timeoutMs - this.waitedMs()) };
  }

  waitedMs(): number {
    return Math.round(performance.now() - this.#startMs);
  }
}
