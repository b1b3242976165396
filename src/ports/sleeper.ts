// A sleep that a hint can end early: the one way to wait for "a hint, or this many milliseconds".
import type { Clock } from "./clock.ts";

/** Serves one waiter at a time. A wake-up while nothing sleeps ends the next sleep at once. */
export class Sleeper {
  readonly #clock: Pick<Clock, "alarm">;
  #isWoken = false;
  #end: (() => void) | undefined;

  constructor(clock: Pick<Clock, "alarm">) {
    this.#clock = clock;
  }

  readonly wake = (): void => {
    this.#isWoken = true;
    this.#end?.();
  };

  /** Call it before each check: an earlier wake-up no longer counts, one during the check does. */
  forgetWakeUps(): void {
    this.#isWoken = false;
  }

  /** Resolves at a wake-up or after `ms`, and returns which. Rejects with the signal's reason. */
  async sleep(ms: number = Infinity, signal?: AbortSignal): Promise<"woken" | "slept"> {
    signal?.throwIfAborted();
    if (!this.#isWoken) await this.#sleep(ms, signal);
    signal?.throwIfAborted();
    const isWoken = this.#isWoken;
    this.#isWoken = false;
    return isWoken ? "woken" : "slept";
  }

  async #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    let stopAlarm: (() => void) | undefined;
    let end: () => void = () => undefined;
    try {
      await new Promise<void>((resolve) => {
        end = resolve;
        this.#end = resolve;
        signal?.addEventListener("abort", end, { once: true });
        if (ms < Infinity) stopAlarm = this.#clock.alarm(ms, resolve);
      });
    } finally {
      this.#end = undefined;
      stopAlarm?.();
      signal?.removeEventListener("abort", end);
    }
  }
}
