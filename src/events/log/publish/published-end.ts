// How far a log on one machine is published, for a process that takes no lock: what the head says
// where it is believed, and what the segments say after a restart.
import { isKnownBoot } from "../../../ports/host.ts";
import { listSegments, missing, segmentPath, syncSegment } from "../format/segment.ts";
import { emptyTip, isBefore, type Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { mustContinue } from "../read/continuation.ts";
import type { Head, HeadFile } from "./head-file.ts";
import { parsedEndOf } from "./parsed-end.ts";

export class PublishedEnd {
  readonly #files: LogFiles;
  readonly #headFile: HeadFile;
  /** The head as this process found it first. */
  #first: { readonly head: Head | undefined } | undefined;
  /** The end that the segments have beside a head that is not believed. */
  #parsed: { readonly head: Head; readonly tip: Tip } | undefined;
  /** Up to here this process has synced what other writers did not. */
  #synced: Tip = emptyTip;

  constructor(files: LogFiles, headFile: HeadFile) {
    this.#files = files;
    this.#headFile = headFile;
  }

  /**
   * `isHeadAlone`: a writer is at work, so the head alone counts. `lockId`: of the gate that this
   * process had last.
   */
  async tip({ isHeadAlone, lockId }: { isHeadAlone: boolean; lockId: string | undefined }): Promise<Tip> {
    const head = await this.findHead();
    if (head !== undefined && (isHeadAlone || this.isBelieved(head))) return await this.shown(head);
    const tip = await this.shown({ isSynced: head?.isSynced ?? false, tip: await this.#parsedOnce(head, lockId) });
    // Another look: a writer publishes a head before it writes, and from then on the head decides.
    const now = await this.findHead();
    return now !== undefined && this.isBelieved(now) ? await this.shown(now) : tip;
  }

  async findHead(): Promise<Head | undefined> {
    const head = await this.#headFile.find();
    this.#first ??= { head };
    return head;
  }

  /**
   * A head is believed if it is of this boot and its lines were synced; or if it was written while
   * this process has the log open, because then there was no restart since. The boot id alone
   * proves nothing about lines that were not synced: a file system that went away and came back in
   * one boot may have lost them, and kept the head.
   */
  isBelieved(head: Head): boolean {
    const { bootId } = this.#files;
    const isOfThisBoot = head.boot === bootId && isKnownBoot(bootId) && head.isSynced;
    return isOfThisBoot || (this.#first !== undefined && head !== this.#first.head);
  }

  /**
   * The tip of a believed head. If this process syncs, all it shows is durable, also lines of a
   * writer that does not sync: its own answers and checkpoints rest on them.
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
   * The end of all valid lines. CORRUPT when a synced head tells of more, or of something else: it
   * was durable then, so it was damaged since. The name of the head is durable from the first one
   * on, so a missing head was removed by hand. Then nothing tells that an invalid line never
   * counted, and it is damage, too.
   */
  async tipAfterRestart(head: Head | undefined, lockId: string | undefined): Promise<Tip> {
    const { disk, directory } = this.#files;
    const floor = head?.isSynced ? head.tip : emptyTip;
    const newest = (await listSegments(disk, directory)).at(-1) ?? 0;
    await mustContinue(this.#files, floor, newest, { mayBranchOff: mayBeLate(head?.lock ?? "", lockId) });
    if (newest < floor.segment) throw missing(segmentPath(directory, floor.segment));
    const isStrict = head === undefined && !(await disk.canOpen(this.#headFile.path));
    return newest === 0 ? emptyTip : await parsedEndOf(this.#files, newest, { floor, isStrict });
  }

  /** Once for each head: a writer publishes another one before it writes. */
  async #parsedOnce(head: Head | undefined, lockId: string | undefined): Promise<Tip> {
    if (head === undefined) return await this.tipAfterRestart(head, lockId);
    if (this.#parsed?.head !== head) this.#parsed = { head, tip: await this.tipAfterRestart(head, lockId) };
    return this.#parsed.tip;
  }
}

/**
 * Whether a head was written under another lock file than that of the gate. Its writer may have
 * been late: another writer had gone on already, before the end that this head names.
 */
export function mayBeLate(lockOfHead: string, lockId: string | undefined): boolean {
  return lockOfHead !== "" && lockOfHead !== lockId;
}
