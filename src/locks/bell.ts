// Waiting for something to change: a hint wakes at once, a poll with jitter in any case. Hints are never the truth, so whoever is woken looks again.
import type { Ports } from "../ports/ports.ts";

/** A local disk sends hints, so its polls are only for what comes without: a holder that was killed. */
const localPollMs = { first: 60, max: 250 };
const networkPollMs = { first: 20, max: 250 };
const growth = 1.5;
/** Polls of many waiters must not fall together. */
const jitter = 0.3;
/** Nobody sees it; an abort without a reason would make an error with a stack. */
const woken = "woken";

export class Bell {
  readonly #ports: Pick<Ports, "clock" | "random" | "watch">;
  readonly #maxMs: number;
  #pollMs: number;

  constructor(ports: Pick<Ports, "clock" | "disk" | "random" | "watch">) {
    const { first, max } = ports.disk.volume.kind === "local" ? localPollMs : networkPollMs;
    this.#ports = ports;
    this.#pollMs = first;
    this.#maxMs = max;
  }

  /** Resolves when `isOver` says so, or when it is time to look closer. `isOver` is asked after the watch of `path` has begun, and after each hint: nothing slips through. */
  async ring(path: string, isOver: () => Promise<boolean>, signal: AbortSignal): Promise<"over" | "poll"> {
    const { clock, watch } = this.#ports;
    signal.throwIfAborted();
    let hint = new AbortController();
    const wake = (): void => hint.abort(woken);
    const stop = watch.start(path, wake);
    signal.addEventListener("abort", wake, { once: true });
    try {
      const untilMs = clock.monotonicMs() + this.#nextPauseMs();
      for (;;) {
        if (await isOver()) return "over";
        signal.throwIfAborted();
        const leftMs = untilMs - clock.monotonicMs();
        if (leftMs <= 0) return "poll";
        await clock.sleep(leftMs, { signal: hint.signal }).catch(() => undefined);
        signal.throwIfAborted();
        if (hint.signal.aborted) hint = new AbortController();
      }
    } finally {
      signal.removeEventListener("abort", wake);
      stop();
    }
  }

  #nextPauseMs(): number {
    const pauseMs = this.#pollMs * (1 - jitter / 2 + jitter * this.#ports.random.fraction());
    this.#pollMs = Math.min(this.#maxMs, this.#pollMs * growth);
    return pauseMs;
  }
}
