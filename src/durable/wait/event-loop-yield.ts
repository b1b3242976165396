// Yielding to the event loop during long work. On a local disk a call blocks, so a loop of reads
// would let neither a timer nor a heartbeat through.
import type { Clock } from "../../ports/clock.ts";

/** Rare enough that the yields cost nothing, and often enough for a timer. */
const intervalMs = 25;

export class EventLoopYield {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** Whether it is time. Not a promise, because mostly it is not time. */
  get isDue(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= intervalMs;
  }

  async take(): Promise<void> {
    await this.#clock.sleep(0);
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
