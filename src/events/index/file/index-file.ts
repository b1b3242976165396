// Index files on disk: opened, published whole under their names, and removed when another covers them.
import { ensureDirectory, parentOf, syncNames, unlinkIfThere } from "../../../durable/publish/directory.ts";
import { moveOnce } from "../../../durable/publish/publish.ts";
import { discard, type Staging } from "../../../durable/publish/staging.ts";
import { isHoldfastError } from "../../../errors.ts";
import { randomName } from "../../../format/id.ts";
import { findSlotNumber } from "../../../format/name.ts";
import { diskError } from "../../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../../ports/disk.ts";
import type { IndexTarget } from "../build/block-stream.ts";
import type { IndexSource } from "./index-blocks.ts";
import type { Coverage } from "./index-header.ts";
import { SealedIndex } from "./sealed-index.ts";
import { UnusableIndex } from "../unusable-index.ts";

/** UnusableIndex when there is none, or not one of just this. */
export async function openIndexFile(disk: Disk, path: string, name: string, coverage: Coverage): Promise<SealedIndex> {
  const file = new IndexFile(name, await reading(name, () => disk.open(path, "read")));
  try {
    return await SealedIndex.open(file, coverage);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Makes `path` what `fill` writes, in one step, whatever was there. Whether it worked need not be known: whoever opens it checks it. A crash leaves the old file or the new
 * one, and perhaps a temp file.
 */
export async function publishIndexFile(
  staging: Staging,
  path: string,
  fill: (write: IndexTarget["write"]) => Promise<void>,
): Promise<void> {
  const { disk } = staging;
  await ensureDirectory(disk, parentOf(path));
  const temp = `${await staging.directory()}/${randomName(staging.random.bytes(16))}`;
  try {
    const file = await disk.open(temp, "create");
    try {
      await fill((offset, bytes) => file.write(offset, bytes));
      // Not for safety, which the checksums give, but so that a power cut does not cost a rebuild.
      await file.sync();
    } finally {
      await file.close();
    }
    if (!(await moveOnce(disk, temp, path))) throw diskError("ENOENT", "rename", temp);
  } catch (error) {
    await discard(staging, temp);
    throw error;
  }
  // Before the indexes that it was merged from are removed.
  await syncNames(disk, parentOf(path));
}

const namePattern = /^(\d{10})-(\d{10})\.idx$/;

export function isIndexName(name: string): boolean {
  return namePattern.test(name);
}

/** Removes every index file of fewer segments inside one of these. Who has it open goes on reading it, or makes do without. */
export async function removeCovered(
  disk: Disk,
  directory: string,
  covers: readonly Pick<Coverage, "segments">[],
): Promise<void> {
  for (const file of await disk.list(directory)) {
    const [, from, to] = namePattern.exec(file) ?? [];
    if (from === undefined || to === undefined) continue;
    if (covers.some((cover) => isInside(cover, findSlotNumber(from) ?? 0, findSlotNumber(to) ?? 0)))
      await unlinkIfThere(disk, `${directory}/${file}`);
  }
}

function isInside({ segments }: Pick<Coverage, "segments">, from: number, to: number): boolean {
  const first = segments[0]?.number ?? 0;
  const last = segments.at(-1)?.number ?? 0;
  return first <= from && to <= last && !(first === from && last === to);
}

class IndexFile implements IndexSource {
  readonly #name: string;
  readonly #file: DiskFile;

  constructor(name: string, file: DiskFile) {
    this.#name = name;
    this.#file = file;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    return reading(this.#name, () => this.#file.read(offset, length));
  }

  async close(): Promise<void> {
    // Only read: nothing can be lost by it.
    await this.#file.close().catch(() => undefined);
  }
}

/** Whatever a disk says of an index: the log says the same, and is asked instead. */
async function reading<T>(name: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw isHoldfastError(error) ? new UnusableIndex(name, "it cannot be read", error) : error;
  }
}
