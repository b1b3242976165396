// Waits for tickets: checks when the engine hints at a change, and every now and then, because
// hints may be missed.
import { onAbort } from "../../durable/wait/on-abort.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Random } from "../../ports/random.ts";
import { Sleeper } from "../../ports/sleeper.ts";

const growth = 1.5;

/** How an engine learns of tickets that other processes publish or return. */
export interface ArrivalHints {
  /** The pause between two checks grows from `first` to `max`. */
  readonly pollMs: { readonly first: number; readonly max: number };
  /** Calls `wake` when a ticket may have arrived, until the returned function is called. */
  watch(wake: () => void): Promise<() => void>;
}

export class Arrivals {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #hints: ArrivalHints;
  readonly #sleepers = new Set<Sleeper>();

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }, hints: ArrivalHints) {
    this.#clock = clock;
    this.#random = random;
    this.#hints = hints;
  }

  /** Call it after this process published or returned a ticket: its waiters check at once. */
  wakeAll(): void {
    for (const sleeper of this.#sleepers) sleeper.wake();
  }

  /**
   * Calls `find` until it returns something. Returns undefined at `untilMs` by the monotonic clock,
   * or when `signal` aborts.
   */
  async first<T>(find: () => Promise<T | undefined>, untilMs: number, signal: AbortSignal): Promise<T | undefined> {
    const sleeper = new Sleeper(this.#clock);
    this.#sleepers.add(sleeper);
    const { first, max } = this.#hints.pollMs;
    let stopWatching: (() => void) | undefined;
    let stopListening: (() => void) | undefined;
    try {
      for (let pauseMs = first; !signal.aborted; pauseMs = Math.min(max, pauseMs * growth)) {
        // Called before the check: a change during the check then ends the following sleep.
        sleeper.forgetWakeUps();
        const found = await find();
        if (found !== undefined) return found;
        const leftMs = untilMs - this.#clock.monotonicMs();
        if (leftMs <= 0 || signal.aborted) return undefined;
        // One listener for all waiters: Node reports many listeners on one signal as a leak.
        stopListening ??= onAbort(signal, sleeper.wake);
        // Watches anew after each check: a directory that did not exist before could not be
        // watched.
        stopWatching?.();
        stopWatching = await this.#hints.watch(sleeper.wake);
        await sleeper.sleep(Math.min(leftMs, pauseMs * (0.8 + 0.4 * this.#random.fraction())));
      }
      return undefined;
    } finally {
      stopListening?.();
      stopWatching?.();
      this.#sleepers.delete(sleeper);
    }
  }
}
