// Waiting for something to change: a hint wakes at once, a poll with jitter in any case. Hints are never the truth, so whoever is woken looks again.
import type { Ports } from "../ports/ports.ts";

/** A local disk sends hints, so its polls are only for what comes without: a holder that was killed. */
const localPollMs = { first: 100, max: 250 };
const networkPollMs = { first: 20, max: 250 };
const growth = 1.5;
/** Polls of many waiters must not fall together. */
const jitter = 0.3;

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

  /** Resolves when `path` may have changed after `isOver` said no, or when it is time to look again. `isOver` is asked after the watch has begun: nothing slips through. */
  async ring(path: string, isOver: () => Promise<boolean>, signal: AbortSignal): Promise<"over" | "hint" | "poll"> {
    const { clock, random, watch } = this.#ports;
    signal.throwIfAborted();
    const woken = new AbortController();
    const stop = watch.start(path, () => woken.abort());
    try {
      if (await isOver()) return "over";
      const pauseMs = this.#pollMs * (1 - jitter / 2 + jitter * random.fraction());
      this.#pollMs = Math.min(this.#maxMs, this.#pollMs * growth);
      const hinted = await clock.sleep(pauseMs, { signal: AbortSignal.any([woken.signal, signal]) }).then(
        () => false,
        () => true,
      );
      signal.throwIfAborted();
      return hinted ? "hint" : "poll";
    } finally {
      stop();
    }
  }
}
