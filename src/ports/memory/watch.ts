// Hints that a directory of a memory disk changed, sent by the disk itself.
import type { Clock } from "../clock.ts";
import type { Watch } from "../watch.ts";

export interface MemoryWatch extends Watch {
  /** The disk calls this on every change. */
  readonly changed: (directory: string) => void;
}

export function createMemoryWatch(clock: Clock): MemoryWatch {
  const hintsOf = new Map<string, Set<() => void>>();
  return {
    changed(directory) {
      for (const hint of hintsOf.get(directory) ?? []) hint();
    },
    start(directory, onHint) {
      let isStopped = false;
      let isOnItsWay = false;
      const hint = (): void => {
        if (isOnItsWay) return;
        isOnItsWay = true;
        // Sent after a turn of the event loop, one hint for all changes until then: a watcher that
        // answers each hint with a change must not keep the loop from turning.
        void clock.sleep(1, { background: true }).then(() => {
          isOnItsWay = false;
          if (!isStopped) onHint();
        });
      };
      const hints = hintsOf.get(directory) ?? new Set();
      hintsOf.set(directory, hints.add(hint));
      return () => {
        isStopped = true;
        hints.delete(hint);
        if (hints.size === 0 && hintsOf.get(directory) === hints) hintsOf.delete(directory);
      };
    },
  };
}
