// Waiting for tickets: hints of directories that change, and a look again after a while in any case. A hint is
// never the truth: a change that no hint tells of is found by the next look.
import { onAbort } from "../../durable/wait/on-abort.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Box } from "../box/box.ts";
import { minuteName } from "../box/layout.ts";
import { priorityDefault, priorityMax } from "../model/manifest.ts";

/** A network mount gives no hints. */
const pollMs = {
  local: { first: 20, max: 250 },
  network: { first: 100, max: 1_000 },
  unknown: { first: 100, max: 1_000 },
};
const growth = 1.5;

export class Arrivals {
  readonly #box: Box;
  readonly #sleepers = new Set<Sleeper>();

  constructor(box: Box) {
    this.#box = box;
  }

  /** This process has published or given something back: those that wait here look at once. */
  wakeAll(): void {
    for (const sleeper of this.#sleepers) sleeper.wake();
  }

  /**
   * Calls `look` until it gives something, or until `untilMs` by the monotonic clock: then undefined. Also
   * undefined when `signal` aborts.
   */
  async first<T>(look: () => Promise<T | undefined>, untilMs: number, signal: AbortSignal): Promise<T | undefined> {
    const { clock, random, disk } = this.#box.ground.ports;
    const sleeper = new Sleeper(clock);
    this.#sleepers.add(sleeper);
    const { first, max } = pollMs[disk.volume.kind];
    let watched: readonly (() => void)[] = [];
    // One listener for all that wait: many that listen to one signal look like a leak to Node.
    const stopListening = signal.aborted ? undefined : onAbort(signal, sleeper.wake);
    try {
      for (let pauseMs: number = first; !signal.aborted; pauseMs = Math.min(max, pauseMs * growth)) {
        // Before the look: a change during the look ends the sleep after it.
        sleeper.forgetWakeUps();
        const found = await look();
        if (found !== undefined) return found;
        const leftMs = untilMs - clock.monotonicMs();
        if (leftMs <= 0) return undefined;
        // Anew each time: a directory that was not there could not be watched.
        for (const stop of watched) stop();
        watched = await this.#watch(sleeper.wake);
        await sleeper.sleep(Math.min(leftMs, pauseMs * (0.8 + 0.4 * random.fraction())));
      }
      return undefined;
    } finally {
      stopListening?.();
      for (const stop of watched) stop();
      this.#sleepers.delete(sleeper);
    }
  }

  /** Where tickets arrive most likely next. */
  async #watch(wake: () => void): Promise<(() => void)[]> {
    const { watch, disk } = this.#box.ground.ports;
    if (disk.volume.kind !== "local") return [];
    const minute = minuteName(await this.#box.nowMs());
    const priorities = [0, priorityDefault, priorityMax].map((priority) => this.#box.layout.incoming(priority));
    return [...priorities, ...priorities.map((directory) => `${directory}/${minute}`)].map((path) =>
      watch.start(path, wake),
    );
  }
}
