// Rebuilds the indexes of a log from its segments.
import type { Cancel } from "../../common.ts";
import type { IndexedLine, SealedSegment } from "../index/keys/indexed-line.ts";
import { SealedIndexes } from "../index/sealed-indexes.ts";
import { scanSealed } from "../log/read/line-keys.ts";
import type { OpenedLog } from "../open/opened-log.ts";
import { moveAside } from "../../part/aside.ts";

/** Options of `rebuildEventIndexes`. */
export interface RebuildOptions extends Cancel {
  /** Called now and then with the number of segments done and the total. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** The result of `rebuildEventIndexes`. */
export interface RebuildResult {
  /** How many segments have an index. The last segment, which still grows, has none. */
  readonly segments: number;
  /** How many events are indexed. */
  readonly events: number;
}

/** @deprecated Use `RebuildResult`. */
export type Rebuilt = RebuildResult;

/**
 * Moves the old index files to `aside/`. Other processes may read and append meanwhile: they use index files that
 * they have open, or the log itself.
 */
export async function rebuildIndexes(log: OpenedLog, { signal, onProgress }: RebuildOptions): Promise<RebuildResult> {
  signal?.throwIfAborted();
  await log.advance();
  const { files: place } = log;
  const { staging, directory, logId } = place;
  const segments = [...log.view.segments];
  await moveAside(place, `${directory}/index`);
  let done = 0;
  async function* scan(segment: SealedSegment): AsyncGenerator<IndexedLine, void> {
    signal?.throwIfAborted();
    yield* scanSealed(place.disk, directory, segment);
    onProgress?.(Math.min(++done, segments.length), segments.length);
  }
  const indexes = new SealedIndexes({ staging, directory: `${directory}/index`, logId, scan });
  try {
    for (const segment of segments) indexes.add(segment);
    await indexes.build();
  } finally {
    await indexes.close();
  }
  return { segments: segments.length, events: segments.at(-1)?.last ?? 0 };
}
