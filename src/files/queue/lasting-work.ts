// LastingWork: work that survives disk failures. It pauses, longer each time, and starts again.
import { isHoldfastError } from "../../errors.ts";
import type { Failure } from "../../part/loop.ts";
import type { Clock } from "../../ports/clock.ts";
import { Sleeper } from "../../ports/sleeper.ts";

const restMs = { min: 250, max: 10_000 };

export class LastingWork {
  readonly #clock: Clock;
  readonly #onFailure: (error: unknown, isFirst: boolean) => void;
  readonly #resting = new Set<Sleeper>();
  #failure: Failure | undefined;

  /**
   * `onFailure` is called when the work is interrupted. `isFirst` is true for the first
   * interruption since the work ran well.
   */
  constructor(clock: Clock, onFailure: (error: unknown, isFirst: boolean) => void) {
    this.#clock = clock;
    this.#onFailure = onFailure;
  }

  /** The failure during a pause, or the one that ended the work. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Ends a pause, because the obstacle may be gone. */
  goOn(): void {
    if (this.#resting.size > 0) this.#failure = undefined;
    for (const sleeper of this.#resting) sleeper.wake();
  }

  /** Runs until `run` ends, or `stopping` aborts. Rejects with errors that do not go away without help. */
  async run(run: () => Promise<void>, stopping: AbortSignal): Promise<void> {
    const clock = this.#clock;
    for (let pauseMs = restMs.min; ; pauseMs = Math.min(restMs.max, 2 * pauseMs)) {
      const startMs = clock.monotonicMs();
      try {
        return await run();
      } catch (error) {
        this.#failure = { error };
        if (clock.monotonicMs() - startMs > restMs.max) pauseMs = restMs.min;
        this.#onFailure(error, pauseMs === restMs.min);
        if (!mayEnd(error)) throw error;
      }
      await this.#rest(pauseMs, stopping);
      if (stopping.aborted) return;
      this.#failure = undefined;
    }
  }

  async #rest(ms: number, stopping: AbortSignal): Promise<void> {
    const sleeper = new Sleeper(this.#clock);
    this.#resting.add(sleeper);
    await sleeper.sleep(ms, stopping).catch(() => undefined);
    this.#resting.delete(sleeper);
  }
}

/** True if the error may go away without help: a full disk, an unresponsive server. */
function mayEnd(error: unknown): boolean {
  return isHoldfastError(error) && !isHoldfastError(error, "CLOSED", "CORRUPT", "NEWER_FORMAT", "WRONG_STORE");
}
