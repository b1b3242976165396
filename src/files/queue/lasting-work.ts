// Work that goes on after a failure of the disk: it rests for a while, longer each time, and begins again.
import { isHoldfastError } from "../../errors.ts";
import type { Failure } from "../../part/loop.ts";
import type { Clock } from "../../ports/clock.ts";
import { Sleeper } from "../../ports/sleeper.ts";

const restMs = { min: 250, max: 10_000 };

export interface LastingWorkParts {
  readonly clock: Clock;
  /** Called when it is interrupted; `isFirst`: for the first time since it ran well. */
  readonly onFailure: (error: unknown, isFirst: boolean) => void;
}

export class LastingWork {
  readonly #parts: LastingWorkParts;
  readonly #resting = new Set<Sleeper>();
  #failure: Failure | undefined;

  constructor(parts: LastingWorkParts) {
    this.#parts = parts;
  }

  /** How it has failed, as long as it rests, or if it has ended with that. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Ends a rest: what was in the way may be gone by now. */
  goOn(): void {
    if (this.#resting.size > 0) this.#failure = undefined;
    for (const sleeper of this.#resting) sleeper.wake();
  }

  /** Until `run` ends by itself, or `stopping` aborts. Rejects with what does not go away by itself. */
  async run(run: () => Promise<void>, stopping: AbortSignal): Promise<void> {
    const { clock, onFailure } = this.#parts;
    for (let pauseMs = restMs.min; ; pauseMs = Math.min(restMs.max, 2 * pauseMs)) {
      const startMs = clock.monotonicMs();
      try {
        return await run();
      } catch (error) {
        this.#failure = { error };
        if (clock.monotonicMs() - startMs > restMs.max) pauseMs = restMs.min;
        onFailure(error, pauseMs === restMs.min);
        if (!mayEnd(error)) throw error;
      }
      await this.#rest(pauseMs, stopping);
      if (stopping.aborted) return;
      this.#failure = undefined;
    }
  }

  async #rest(ms: number, stopping: AbortSignal): Promise<void> {
    const sleeper = new Sleeper(this.#parts.clock);
    this.#resting.add(sleeper);
    await sleeper.sleep(ms, stopping).catch(() => undefined);
    this.#resting.delete(sleeper);
  }
}

/** Whether what is in the way may go away by itself: a full disk, a server that does not answer. */
function mayEnd(error: unknown): boolean {
  return isHoldfastError(error) && !isHoldfastError(error, "CLOSED", "CORRUPT", "NEWER_FORMAT", "WRONG_STORE");
}
