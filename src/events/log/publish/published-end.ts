// Determines how far a log on one machine is published, without a lock: from the head if it is believed, otherwise
// (after a restart) from the lines of the segments.
import { isKnownBoot } from "../../../ports/host.ts";
import { tipAfter } from "../format/line.ts";
import { listSegments, missingSegment, openSegment, readHeader, segmentPath, syncSegment } from "../format/segment.ts";
import { emptyTip, isBefore, isEqualTip, isSameTip, type Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { mustContinue } from "../read/continuation.ts";
import { damaged, hasLineEnd, headOf, scanFile } from "../read/scan.ts";
import type { Head, HeadFile } from "./head-file.ts";

export class PublishedEnd {
  readonly #files: LogFiles;
  readonly #headFile: HeadFile;
  /** The head as this process first found it. */
  #first: { readonly head: Head | undefined } | undefined;
  /** The end found by parsing the segments, because this head is not believed. */
  #parsed: { readonly head: Head; readonly tip: Tip } | undefined;
  /** Up to here, this process has synced lines that other writers did not sync. */
  #synced: Tip = emptyTip;

  constructor(files: LogFiles, headFile: HeadFile) {
    this.#files = files;
    this.#headFile = headFile;
  }

  /**
   * `isHeadAlone`: a writer is active, so only the head counts. `lockId`: the lock file of the gate that this process
   * held last.
   */
  async tip({ isHeadAlone, lockId }: { isHeadAlone: boolean; lockId: string | undefined }): Promise<Tip> {
    const head = await this.findHead();
    if (head !== undefined && (isHeadAlone || this.isBelieved(head))) return await this.shown(head);
    const tip = await this.shown({ isSynced: head?.isSynced ?? false, tip: await this.#parsedOnce(head, lockId) });
    // Read the head again: a writer publishes a head before it writes lines, and from then on the head decides.
    const now = await this.findHead();
    return now !== undefined && this.isBelieved(now) ? await this.shown(now) : tip;
  }

  async findHead(): Promise<Head | undefined> {
    const head = await this.#headFile.find();
    this.#first ??= { head };
    return head;
  }

  /**
   * A head is believed if it is of this boot and its lines were synced, or if it was written while this process had
   * the log open, because no restart came between. The boot id alone proves nothing about unsynced lines: a file
   * system that was remounted within one boot may have lost them and kept the head.
   */
  isBelieved(head: Head): boolean {
    const { bootId } = this.#files;
    const isOfThisBoot = head.boot === bootId && isKnownBoot(bootId) && head.isSynced;
    return isOfThisBoot || (this.#first !== undefined && head !== this.#first.head);
  }

  /**
   * Returns the tip of a believed head. If this process syncs, it first syncs lines of a writer that does not: its
   * own answers and checkpoints depend on them.
   */
  async shown({ isSynced, tip }: Pick<Head, "isSynced" | "tip">): Promise<Tip> {
    const isDurable = isSynced || tip.segment === 0 || !isBefore(this.#synced, tip);
    if (this.#files.isSynced && !isDurable) {
      await syncSegment(this.#files.disk, this.#files.directory, tip.segment);
      this.#synced = tip;
    }
    return tip;
  }

  /**
   * Returns the end of all valid lines.
   *
   * Throws CORRUPT if a synced head names more lines, or different ones: they were durable, so they were damaged
   * since. The name of the head is durable from the beginning, so a missing head was removed by hand. Then nothing
   * shows that an invalid line was never published, so it is damage too.
   */
  async tipAfterRestart(head: Head | undefined, lockId: string | undefined): Promise<Tip> {
    const { disk, directory } = this.#files;
    const floor = head?.isSynced ? head.tip : emptyTip;
    const newest = (await listSegments(disk, directory)).at(-1) ?? 0;
    await mustContinue(this.#files, floor, newest, { mayBranchOff: mayBeStale(head?.lock ?? "", lockId) });
    if (newest < floor.segment) throw missingSegment(segmentPath(directory, floor.segment));
    const isStrict = head === undefined && !(await disk.canOpen(this.#headFile.path));
    return newest === 0 ? emptyTip : await parsedEndOf(this.#files, newest, { floor, isStrict });
  }

  /** Parses once per head: a writer publishes another head before it writes. */
  async #parsedOnce(head: Head | undefined, lockId: string | undefined): Promise<Tip> {
    if (head === undefined) return await this.tipAfterRestart(head, lockId);
    if (this.#parsed?.head !== head) this.#parsed = { head, tip: await this.tipAfterRestart(head, lockId) };
    return this.#parsed.tip;
  }
}

/**
 * True if a head was written under another lock file than that of the gate. Its writer may have been late: another
 * writer may already have continued from an earlier point.
 */
export function mayBeStale(lockOfHead: string, lockId: string | undefined): boolean {
  return lockOfHead !== "" && lockOfHead !== lockId;
}

interface Parsing {
  /** A point that was published earlier. If it is in this segment, the valid lines must reach it. Default: none. */
  readonly floor?: Tip | undefined;
  /**
   * If true, an invalid line that ends in a newline is damage. By default it is an unfinished
   * write, and the log ends before it.
   */
  readonly isStrict?: boolean | undefined;
}

/** Returns the end of the valid lines of a segment. Throws CORRUPT. */
export async function parsedEndOf(
  { disk, directory }: LogFiles,
  segment: number,
  { floor = emptyTip, isStrict = false }: Parsing = {},
): Promise<Tip> {
  const path = segmentPath(directory, segment);
  const header = await readHeader(disk, directory, segment);
  const file = await openSegment(disk, directory, segment);
  try {
    let tip: Tip = { ...header.after, segment, length: header.bytes, crc: header.crc };
    let isPassed = floor.segment !== segment || isEqualTip(tip, floor);
    for await (const lines of scanFile(file, { segment, from: tip.length, to: header.size, crc: tip.crc }))
      for (const line of lines) {
        tip = tipAfter(tip, headOf(path, line), { bytes: line.bytes.length, crc: line.crc });
        isPassed ||= isSameTip(tip, floor) && isEqualTip(tip, floor);
      }
    if (!isPassed || (isStrict && (await hasLineEnd(file, tip.length))))
      throw damaged(path, isPassed ? tip.length : Math.min(tip.length, floor.length));
    return tip;
  } finally {
    await file.close();
  }
}

/** Returns the whole lines of a segment after a point, and their end. */
export async function linesAfter(
  { disk, directory }: LogFiles,
  tip: Tip,
): Promise<{ readonly lines: readonly Uint8Array[]; readonly end: Tip }> {
  const { segment, length: from, crc } = tip;
  const path = segmentPath(directory, segment);
  const file = await openSegment(disk, directory, segment);
  try {
    const found: Uint8Array[] = [];
    let end = tip;
    for await (const lines of scanFile(file, { segment, from, to: (await file.stat()).size, crc }))
      for (const line of lines) {
        found.push(Uint8Array.from(line.bytes));
        end = tipAfter(end, headOf(path, line), { bytes: line.bytes.length, crc: line.crc });
      }
    return { lines: found, end };
  } finally {
    await file.close();
  }
}
