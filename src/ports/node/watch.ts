// Hints from the operating system that a directory changed.
import { watch, type FSWatcher } from "node:fs";
import type { Volume } from "../disk.ts";
import type { Watch } from "../watch.ts";

export function createNodeWatch(volume: Volume): Watch {
  // To start a watch, Node looks the path up in the main thread, where an unresponsive share would
  // block everything. And a share would only report changes by this machine.
  return { start: volume.kind === "network" ? () => () => undefined : start };
}

function start(directory: string, onHint: () => void): () => void {
  let watcher: FSWatcher | undefined;
  try {
    watcher = watch(directory, { persistent: false }, () => onHint());
    // Hints may be missing, so an error is just one more missing hint (the directory is gone, or
    // the limit of watches is reached).
    watcher.on("error", () => watcher?.close());
  } catch {
    // The watch could not be started: one more missing hint.
  }
  return () => watcher?.close();
}
