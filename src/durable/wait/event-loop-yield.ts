// EventLoopYield yields to the event loop during long work. On a local disk a call blocks, so a
// loop of reads would starve timers and the heartbeat.
import type { Clock } from "../../ports/clock.ts";

/** Rare enough that yields cost nothing, frequent enough for timers. */
const intervalMs = 25;

export class EventLoopYield {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** True if it is time to yield. Not a promise, because usually it is not. */
  get isDue(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= intervalMs;
  }

  async take(): Promise<void> {
    await this.#clock.sleep(0);
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
