// ChangeWaiter waits for a change on the disk: a hint wakes it at once, a poll with jitter in any
// case. A hint proves nothing, so the waiter checks again after each.
import type { Ports } from "../../ports/ports.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Deadline } from "./deadline.ts";

/** A local disk sends hints. Polls only find changes without a hint, such as a killed holder. */
const localPollMs = { first: 60, max: 250 };
const networkPollMs = { first: 20, max: 250 };
const growth = 1.5;
/** Keeps the polls of many waiters apart. */
const jitter = 0.3;

/** The clock, the randomness and the hints that a waiter uses. */
export interface ChangeSource {
  /** The ports that waiting needs. */
  readonly ports: Pick<Ports, "clock" | "random" | "watch">;
  /** True if a change by another process gives a hint. */
  readonly hasHints: boolean;
}

export class ChangeWaiter {
  readonly #ports: ChangeSource["ports"];
  readonly #maxMs: number;
  #pollMs: number;

  constructor({ ports, hasHints }: ChangeSource) {
    const { first, max } = hasHints ? localPollMs : networkPollMs;
    this.#ports = ports;
    this.#pollMs = first;
    this.#maxMs = max;
  }

  /**
   * Resolves when `isOver` returns true, or when it is time for a closer check. `isOver` is called
   * after the watch of `path` has started and after each hint, so no change is missed.
   */
  async wait(path: string, isOver: () => Promise<boolean>, deadline: Deadline): Promise<"over" | "poll"> {
    const { clock, watch } = this.#ports;
    deadline.throwIfOver();
    const sleeper = new Sleeper(clock);
    const stopWatching = watch.start(path, sleeper.wake);
    const stopWaiting = deadline.onOver(sleeper.wake);
    let isTime = false;
    let stopAlarm: (() => void) | undefined;
    try {
      for (;;) {
        if (await isOver()) return "over";
        deadline.throwIfOver();
        if (isTime) return "poll";
        // One alarm for the whole wait: hints must not postpone the poll.
        stopAlarm ??= clock.alarm(this.#nextPauseMs(), () => {
          isTime = true;
          sleeper.wake();
        });
        await sleeper.sleep();
        deadline.throwIfOver();
      }
    } finally {
      stopAlarm?.();
      stopWaiting();
      stopWatching();
    }
  }

  #nextPauseMs(): number {
    const pauseMs = this.#pollMs * (1 - jitter / 2 + jitter * this.#ports.random.fraction());
    this.#pollMs = Math.min(this.#maxMs, this.#pollMs * growth);
    return pauseMs;
  }
}
