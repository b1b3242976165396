// Deadline: how long a caller waits, until the time is up, its signal aborts, or the thing it waits
// for is closed.
import type { Waiting } from "../../common.ts";
import type { Clock } from "../../ports/clock.ts";
import { onAbort } from "./on-abort.ts";

export interface DeadlineOptions extends Waiting {
  readonly closed?: AbortSignal | undefined;
  /** Returns the reason with which a wait rejects if it times out. */
  readonly timedOut: () => unknown;
}

export class Deadline {
  readonly #actions = new Set<() => void>();
  /** Removable listeners instead of `AbortSignal.any`, which leaks memory in each long-lived signal. */
  readonly #stops: (() => void)[] = [];
  #over: { readonly reason: unknown } | undefined;
  #signal: AbortController | undefined;

  constructor(clock: Clock, { timeoutMs = Infinity, signal, closed, timedOut }: DeadlineOptions) {
    for (const source of [closed, signal]) {
      if (source?.aborted) this.#end(source.reason);
      else if (source !== undefined) this.#stops.push(onAbort(source, () => this.#end(source.reason)));
    }
    if (timeoutMs < Infinity) this.#stops.push(clock.alarm(timeoutMs, () => this.#end(timedOut())));
  }

  /** Created on demand: most waits are between callers of one process, and a signal costs more than such a wait. */
  get signal(): AbortSignal {
    this.#signal ??= new AbortController();
    if (this.#over !== undefined && !this.#signal.signal.aborted) this.#signal.abort(this.#over.reason);
    return this.#signal.signal;
  }

  /** The reason with which the wait rejects, once it is over. */
  get reason(): unknown {
    return this.#over?.reason;
  }

  throwIfOver(): void {
    if (this.#over !== undefined) throw this.#over.reason;
  }

  /**
   * Calls `action` when the wait is over, unless the returned function is called first. Only for a
   * wait that is not over yet.
   */
  onOver(action: () => void): () => void {
    this.#actions.add(action);
    return () => this.#actions.delete(action);
  }

  /** Removes the listeners and the timer of a wait that ended early. */
  cancel(): void {
    for (const stop of this.#stops) stop();
  }

  #end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    this.#signal?.abort(reason);
    for (const action of this.#actions) action();
  }
}

/**
 * Returns how much is left of a wait of several steps that began at `startMs` of the monotonic
 * clock; at least 0. Without `timeoutMs` it is 0.
 */
export function leftMsOf(clock: Clock, { startMs, timeoutMs = 0 }: Waiting & { readonly startMs: number }): number {
  return Math.max(0, timeoutMs - (clock.monotonicMs() - startMs));
}

/** Throws RangeError unless it is a number of milliseconds or Infinity. */
export function checkTimeout(timeoutMs: number): number {
  if (typeof timeoutMs === "number" && !Number.isNaN(timeoutMs)) return timeoutMs;
  throw new RangeError("timeoutMs must be a number of milliseconds, or Infinity.");
}
