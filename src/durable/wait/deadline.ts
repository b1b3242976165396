// How long somebody waits: until his time is up, his signal aborts, or what he waits for is closed.
import { setMaxListeners } from "node:events";
import type { Waiting } from "../../common.ts";
import type { Clock } from "../../ports/clock.ts";

export interface DeadlineOptions extends Waiting {
  readonly closed?: AbortSignal | undefined;
  /** What the wait rejects with when the time is up. */
  readonly timedOut: () => unknown;
}

export class Deadline {
  readonly #sources: readonly AbortSignal[];
  readonly #actions = new Set<() => void>();
  readonly #stopAlarm: (() => void) | undefined;
  #over: { readonly reason: unknown } | undefined;
  #signal: AbortController | undefined;

  constructor(clock: Clock, { timeoutMs = Infinity, signal, closed, timedOut }: DeadlineOptions) {
    // By listeners that are taken back, and not by `AbortSignal.any`: that leaves something behind in each long-lived signal.
    this.#sources = [closed, signal].filter((each) => each !== undefined);
    for (const source of this.#sources) {
      if (source.aborted) this.#end(source.reason);
      // Many may wait under one signal, and each takes its listener back: no leak to warn of.
      setMaxListeners(0, source);
      source.addEventListener("abort", this.#pass, { once: true });
    }
    if (timeoutMs < Infinity) this.#stopAlarm = clock.alarm(timeoutMs, () => this.#end(timedOut()));
  }

  /** Made when somebody asks for it: most waits are between callers of one process, and it costs more than they do. */
  get signal(): AbortSignal {
    this.#signal ??= new AbortController();
    if (this.#over !== undefined && !this.#signal.signal.aborted) this.#signal.abort(this.#over.reason);
    return this.#signal.signal;
  }

  /** What the wait rejects with, once it is over. */
  get reason(): unknown {
    return this.#over?.reason;
  }

  throwIfOver(): void {
    if (this.#over !== undefined) throw this.#over.reason;
  }

  /** Calls `action` when it is over, unless the returned function is called before. To be asked for while it is not over. */
  onOver(action: () => void): () => void {
    this.#actions.add(action);
    return () => this.#actions.delete(action);
  }

  /** The wait ended before. */
  cancel(): void {
    this.#stopAlarm?.();
    for (const source of this.#sources) source.removeEventListener("abort", this.#pass);
  }

  readonly #pass = (event: Event): void => this.#end((event.target as AbortSignal).reason);

  #end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    this.#signal?.abort(reason);
    for (const action of this.#actions) action();
  }
}

/** A number of milliseconds, or Infinity. RangeError. */
export function checkTimeout(timeoutMs: number): number {
  if (typeof timeoutMs === "number" && !Number.isNaN(timeoutMs)) return timeoutMs;
  throw new RangeError("timeoutMs must be a number of milliseconds, or Infinity.");
}
