// Watches a store from a program or a terminal: iterates over its activity.
import { checkOptions } from "../../format/known-options.ts";
import type { Cancel, Store } from "../../index.ts";
import type { Activity } from "./activity.ts";
import { Sampler } from "./sampler.ts";
import { WatchedStore } from "./watched-store.ts";

/** A reader that falls behind by this many entries misses the oldest. */
const unreadMax = 10_000;

/** Options of `watchStore`. */
export interface WatchOptions extends Cancel {
  /**
   * Called when the store, or a part of it, cannot be read, with the reason; once for each reason.
   */
  onProblem?: ((problem: string) => void) | undefined;
}

/**
 * Iterates over what happens in a store: processes, locks, events, tickets and files. It begins
 * with the latest events, changes and dead letters, and waits for more until `signal` aborts, or
 * `break`. It polls every two seconds and only reads: it joins no ground and takes no lock. Of a
 * burst, it reports the latest and counts the others.
 */
export async function* watchStore(
  store: Pick<Store, "location" | "id">,
  options: WatchOptions = {},
): AsyncGenerator<Activity, void, undefined> {
  checkOptions("watchStore", options, { signal: true, onProblem: true });
  const { signal, onProblem } = options;
  const watched = new WatchedStore(store);
  const sampler = new Sampler(watched);
  const unread: Activity[] = [];
  const told = new Set<string>();
  let wake = (): void => undefined;
  const stop = sampler.listen(({ sample, activity }) => {
    for (const problem of sample.problems) if (!told.has(problem)) onProblem?.(problem);
    told.clear();
    for (const problem of sample.problems) told.add(problem);
    unread.push(...activity);
    unread.splice(0, Math.max(0, unread.length - unreadMax));
    wake();
  });
  const onAbort = (): void => wake();
  const isOver = (): boolean => signal?.aborted === true;
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      if (isOver()) return;
      yield* unread.splice(0);
      if (unread.length === 0 && !isOver()) await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    stop();
    await watched.close();
  }
}
