// Waiting for a change on the disk: a hint wakes at once, a poll with jitter in any case. A hint is
// never the truth, so the waiter looks again after each.
import type { Ports } from "../../ports/ports.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Deadline } from "./deadline.ts";

/**
 * A local disk sends hints, so its polls are only for what comes without one: a holder that was
 * killed.
 */
const localPollMs = { first: 60, max: 250 };
const networkPollMs = { first: 20, max: 250 };
const growth = 1.5;
/** Polls of many waiters must not fall together. */
const jitter = 0.3;

export class ChangeWaiter {
  readonly #ports: Pick<Ports, "clock" | "random" | "watch">;
  readonly #maxMs: number;
  #pollMs: number;

  constructor(ports: Pick<Ports, "clock" | "disk" | "random" | "watch">) {
    const { first, max } = ports.disk.volume.kind === "local" ? localPollMs : networkPollMs;
    this.#ports = ports;
    this.#pollMs = first;
    this.#maxMs = max;
  }

  /**
   * Resolves when `isOver` says so, or when it is time to look closer. `isOver` is asked after the
   * watch of `path` has begun and after each hint, so no change goes unnoticed.
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
        // One alarm for the whole wait: hints do not put off the poll.
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
