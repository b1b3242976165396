// Index files on disk: opens them, publishes them whole under their names, and removes those that a
// merged one covers.
import { ensureDirectory, parentOf, syncNames, unlinkIfThere } from "../../../durable/publish/directory.ts";
import { moveOnce } from "../../../durable/publish/publish.ts";
import { discard, type Staging } from "../../../durable/publish/staging.ts";
import { isHoldfastError } from "../../../errors.ts";
import { randomName } from "../../../format/id.ts";
import { findSlotNumber } from "../../../format/name.ts";
import { diskError } from "../../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../../ports/disk.ts";
import { UnusableIndex, type IndexSource } from "./index-blocks.ts";
import type { Coverage, WriteAt } from "./index-layout.ts";
import { SealedIndex } from "./sealed-index.ts";

/** Throws UnusableIndex if there is no file, or it does not cover exactly `coverage`. */
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
 * Replaces `path` in one step by the file that `make` creates. Returns false if `make` does. A lost reply does no
 * harm: every process that opens the file checks it. A crash leaves the old file or the new one, and perhaps a temp
 * file.
 */
export async function publishIndexFile(
  staging: Staging,
  path: string,
  make: (temp: string) => Promise<boolean>,
): Promise<boolean> {
  const { disk } = staging;
  await ensureDirectory(disk, parentOf(path));
  const temp = `${await staging.directory()}/${randomName(staging.random.bytes(16))}`;
  try {
    if (!(await make(temp))) {
      await discard(staging, temp);
      return false;
    }
    if (!(await moveOnce(disk, temp, path))) throw diskError("ENOENT", "rename", temp);
  } catch (error) {
    await discard(staging, temp);
    throw error;
  }
  // Sync before the caller removes the indexes from which this one was merged.
  await syncNames(disk, parentOf(path));
  return true;
}

export async function createIndexFile(
  disk: Disk,
  path: string,
  fill: (write: WriteAt) => Promise<void>,
): Promise<void> {
  const file = await disk.open(path, "create");
  try {
    await fill((offset, bytes) => file.write(offset, bytes));
    // Checksums provide the safety. This sync only avoids a rebuild after a power cut.
    await file.sync();
  } finally {
    await file.close();
  }
}

const namePattern = /^(\d{10})-(\d{10})\.idx$/;

export function isIndexName(name: string): boolean {
  return namePattern.test(name);
}

/**
 * Removes every other index file that covers some of the same segments. A process that has such a file open continues
 * to read it, or reads the log if the file system does not allow that.
 */
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
    // The file was opened for reading: a failed close loses nothing.
    await this.#file.close().catch(() => undefined);
  }
}

/** Runs `action` and turns disk errors into UnusableIndex: the log gives the same answer, so no caller sees them. */
async function reading<T>(name: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw isHoldfastError(error) ? new UnusableIndex(name, "it cannot be read", error) : error;
  }
}
