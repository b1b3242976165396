// Folding: a full block of the change log becomes one file, its segment. The segment is durable
// before any file of the block is removed.
import { removeDirectory, syncNames } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { findSlotNumber } from "../../format/name.ts";
import { readEnvelope, recordBytesMax } from "../../format/record.ts";
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FilesLayout } from "../tree/layout.ts";
import { changeKind } from "./change-record.ts";
import { recordsIn, segmentBytesMax, segmentLine } from "./segment.ts";

/**
 * A block that changed within this time is not folded: a process on a share may still be searching
 * for its end there.
 */
export const foldedAfterMs: number = 10 * 60_000;
/**
 * This many blocks at the end are never folded. A process that remembers an older end detects that
 * by the segment.
 */
const blocksKept = 2;

export interface FoldOptions {
  /** The time by the clock that stamps files. */
  readonly nowMs: number;
  readonly afterMs?: number | undefined;
}

export class ChangeFolder {
  readonly #staging: Staging;
  readonly #layout: FilesLayout;

  constructor(staging: Staging, layout: FilesLayout) {
    this.#staging = staging;
    this.#layout = layout;
  }

  /**
   * Folds all blocks that can be folded, and returns how many. Any number of processes may call it
   * at once.
   */
  async fold({ nowMs, afterMs = foldedAfterMs }: FoldOptions): Promise<number> {
    const { disk } = this.#staging;
    const blocks = (await disk.list(this.#layout.changes)).map(findSlotNumber).filter((block) => block !== undefined);
    const newest = Math.max(...blocks);
    let folded = 0;
    for (const block of blocks.sort((a, b) => a - b)) {
      if (block + blocksKept > newest) break;
      const stat = await disk.findStat(this.#layout.changeBlock(this.#layout.numbersOf(block).first));
      // Later blocks are younger.
      if (stat !== undefined && nowMs - stat.mtimeMs < afterMs) break;
      if (await this.#foldBlock(block)) folded++;
    }
    return folded;
  }

  /**
   * Folds one block. Returns false if a record is missing or damaged: the block stays until it is
   * repaired.
   */
  async #foldBlock(block: number): Promise<boolean> {
    const { first } = this.#layout.numbersOf(block);
    if (!(await this.#isFolded(block))) {
      const bytes = await this.#readBlock(block);
      if (bytes === undefined) return false;
      await putIfAbsent(this.#staging, this.#layout.changeSegment(first), bytes, { isPermanent: true });
      // Another process may have published a different file under this name: remove only what the
      // segment contains.
      if (!(await this.#isFolded(block))) return false;
    }
    // Another process may have published the segment and not synced it yet.
    await syncNames(this.#staging.disk, this.#layout.changes);
    return await removeDirectory(this.#staging.disk, this.#layout.changeBlock(first));
  }

  /** True if the segment exists and has every change of the block. */
  async #isFolded(block: number): Promise<boolean> {
    const { first, last } = this.#layout.numbersOf(block);
    try {
      const records = recordsIn(await this.#staging.disk.readFile(this.#layout.changeSegment(first), segmentBytesMax));
      for (let number = first; number <= last; number++) if (!records.has(number)) return false;
      return true;
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE", "EISDIR", "EFBIG", "ENXIO", "ELOOP")) return false;
      throw error;
    }
  }

  async #readBlock(block: number): Promise<Uint8Array | undefined> {
    const { first, last } = this.#layout.numbersOf(block);
    const lines: string[] = [];
    try {
      for (let number = first; number <= last; number++) {
        const path = this.#layout.change(number);
        const record = await this.#staging.disk.readFile(path, recordBytesMax);
        readEnvelope(changeKind, record, path);
        if (record.indexOf(0x0a) !== record.length - 1) return undefined;
        lines.push(segmentLine(number, record));
      }
    } catch (error) {
      if (isHoldfastError(error, "CORRUPT") || hasErrno(error, "ENOENT", "EISDIR", "EFBIG", "ENXIO", "ELOOP", "ESTALE"))
        return undefined;
      throw error;
    }
    const bytes = Buffer.from(lines.join(""));
    return bytes.length > segmentBytesMax ? undefined : bytes;
  }
}
