// The thread that builds and merges index files on request of the main thread. It reads segments and existing index
// files, and fills a temp file, which the main thread publishes.
import type { Disk } from "../../ports/disk.ts";
import type { HelperThread, Threads } from "../../ports/threads.ts";
import { scanSealed } from "../log/read/line-keys.ts";
import { mergeInto } from "./build/merged-content.ts";
import { imageOf } from "./build/segment-image.ts";
import { createIndexFile, openIndexFile } from "./file/index-file.ts";
import { indexNameOf, type Coverage } from "./file/index-layout.ts";
import type { SealedIndex } from "./file/sealed-index.ts";

export interface IndexRequest {
  /** The directory of the log, and that of its index files. */
  readonly log: string;
  readonly directory: string;
  /** The file to create. */
  readonly temp: string;
  readonly coverage: Coverage;
  /** The indexes to merge. If there are none, the thread builds the index of one segment. */
  readonly parts: readonly Coverage[];
}

export function joinIndexThread(threads: Threads): HelperThread | undefined {
  return threads.join("../index-thread.js", import.meta.url);
}

/** Throws if a file is not as expected or cannot be written. */
export async function doIndexRequest(disk: Disk, request: IndexRequest, pause: () => Promise<void>): Promise<void> {
  const { log, directory, temp, coverage, parts } = request;
  const [segment] = coverage.segments;
  if (segment === undefined) throw new RangeError("An index needs a segment.");
  if (parts.length === 0) {
    const image = await imageOf(coverage.logId, segment, { scan: (each) => scanSealed(disk, log, each), pause });
    return await createIndexFile(disk, temp, (write) => write(0, image));
  }
  const open: SealedIndex[] = [];
  try {
    for (const part of parts) {
      const name = indexNameOf(part);
      open.push(await openIndexFile(disk, `${directory}/${name}.idx`, name, part));
    }
    await createIndexFile(disk, temp, (write) => mergeInto(write, coverage, open, pause));
  } finally {
    for (const index of open) await index.close();
  }
}
