// Letting others in during a long read: on a local disk a call blocks, so a loop of reads would never let a timer or a heartbeat through.
import type { Clock } from "../../../ports/clock.ts";

/** So much in between that a turn does not show, and little enough for a timer. */
const turnMs = 25;

export class EventLoopYield {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** Whether it is time. Asked without a promise, because it mostly is not. */
  get isDue(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= turnMs;
  }

  async take(): Promise<void> {
    await this.#clock.sleep(0);
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
