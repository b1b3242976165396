// Hints from the operating system that a directory changed.
import { watch, type FSWatcher } from "node:fs";
import type { Volume } from "../disk.ts";
import type { Watch } from "../watch.ts";

export function createNodeWatch(volume: Volume): Watch {
  // To begin a watch Node looks the path up in the main thread, where a share that does not answer
  // would stop everything. And a share would only hint at what this machine did itself.
  return { start: volume.kind === "network" ? () => () => undefined : start };
}

function start(directory: string, onHint: () => void): () => void {
  let watcher: FSWatcher | undefined;
  try {
    watcher = watch(directory, { persistent: false }, () => onHint());
    // A hint that does not come is allowed, so an error is one more hint that does not come (the
    // directory is gone, the limit of watches is reached).
    watcher.on("error", () => watcher?.close());
  } catch {
    // As above.
  }
  return () => watcher?.close();
}
