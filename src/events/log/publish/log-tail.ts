// The end of a log on one machine, as the holder of the gate writes it: lines and room in the
// newest segment, a new segment, the head.
import { syncNames } from "../../../durable/publish/directory.ts";
import { outcomeUnknown } from "../../../durable/publish/publish.ts";
import { isHoldfastError } from "../../../errors.ts";
import { copyOf, encodeSegment, publishSegment, segmentPath } from "../format/segment.ts";
import type { Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import type { Head, HeadFile } from "./head-file.ts";
import { KeptSegment } from "./kept-segment.ts";
import { parsedEndOf } from "./parsed-end.ts";
import { isRoomFrom, withRoom } from "./preallocation.ts";
import type { WriterGate } from "./publisher.ts";

/** Neither a line nor room begins with it. */
const voided = Buffer.from("-");

export class LogTail {
  protected readonly files: LogFiles;
  readonly segment: KeptSegment;
  readonly #headFile: HeadFile;
  /** The gate that this process entered last. */
  #gate: WriterGate | undefined;
  /** The lock file by which writers come into the segment of the head. */
  #lock = "";
  /** Where the room in the newest segment ends. */
  #room = 0;

  constructor(files: LogFiles, headFile: HeadFile) {
    this.files = files;
    this.#headFile = headFile;
    this.segment = new KeptSegment(files);
  }

  enter(gate: WriterGate): void {
    this.#gate = gate;
  }

  /** The lock file of the gate. */
  get lockId(): string | undefined {
    return this.#gate?.lockId;
  }

  get lockOfHead(): string {
    return this.#lock;
  }

  get room(): number {
    return this.#room;
  }

  /**
   * Whether no other writer can be at work in the segment of the head. One with a deleted lock file
   * may still write.
   */
  get isAlone(): boolean {
    return this.#lock === this.#gate?.lockId;
  }

  /** LOCK_LOST when the lock file of the gate was deleted. */
  async assertHeld(): Promise<void> {
    await this.#gate?.assertHeld();
  }

  /**
   * Goes on where this head ends. Without a head, or with one that is not believed, no room is
   * known.
   */
  takeUp(head: Pick<Head, "lock" | "room"> | undefined): void {
    this.#lock = head?.lock ?? "";
    this.#room = head?.room ?? 0;
  }

  /**
   * Writes lines at `tip`, and syncs them. After a failure none of them will ever count, unless it
   * is OUTCOME_UNKNOWN.
   */
  async write(tip: Tip, lines: Uint8Array, isIdle?: () => boolean): Promise<void> {
    const file = await this.segment.open(tip.segment);
    const { isSynced, segmentBytesMax } = this.files;
    const needsRoom = isSynced && tip.length + lines.length > this.#room;
    const bytes = needsRoom ? withRoom(lines, tip.length, segmentBytesMax) : lines;
    try {
      await file.write(tip.length, bytes);
      if (isSynced) await file.sync({ isIdle });
      this.#room = Math.max(this.#room, tip.length + bytes.length);
    } catch (error) {
      await this.abandon(tip, error);
      throw error;
    }
  }

  async publishHead(tip: Tip): Promise<void> {
    const { bootId: boot, isSynced } = this.files;
    await this.#headFile.write({ boot, isSynced, lock: this.#lock, tip, room: Math.max(this.#room, tip.length) });
    this.files.continuity.reach(tip);
  }

  /**
   * Begins the next segment with copies of `lines`; all of it is durable and counts when this
   * returns.
   */
  async startSegment(after: Tip, lines: readonly Uint8Array[]): Promise<Tip> {
    const { staging, directory } = this.files;
    await this.leaveBehind(after);
    await this.segment.close();
    this.#room = 0;
    const isFirst = await this.#headFile.ensure();
    const segment = after.segment + 1;
    const { bytes, tip } = encodeSegment(this.files.newHeader(segment, after), lines.map(copyOf));
    await this.assertHeld();
    if (!(await publishSegment(staging, directory, segment, bytes)))
      throw new SegmentTaken(segmentPath(directory, segment));
    this.#lock = this.#gate?.lockId ?? this.#lock;
    await this.publishHead(tip);
    if (isFirst) await this.#headFile.sync();
    return tip;
  }

  /**
   * Syncs a segment before the next one continues it: lines acknowledged there must not stand
   * behind a hole.
   */
  protected async leaveBehind(after: Tip): Promise<void> {
    // A process that syncs has synced it already, in this session or when the session began.
    if (!this.files.isSynced && after.segment !== 0) await (await this.segment.open(after.segment)).sync();
  }

  /**
   * Publishes, as the first head of this boot, the end that the segments themselves have after a
   * restart.
   */
  async restart(tip: Tip): Promise<void> {
    const file = await this.segment.open(tip.segment);
    // What was found is of writers under this lock, not of one that came in since.
    await this.assertHeld();
    // A power cut may have kept any part of what was being written, with or without its first byte.
    this.#room = (await isRoomFrom(file, tip.length)) ? (await file.stat()).size : 0;
    // The lines came from the disk, or from a writer under another boot id that died before its
    // sync.
    await file.sync();
    await this.#publishAnew(tip, { isAlwaysSynced: false });
  }

  /** Publishes the end of a segment that continues the log and that the head does not name. */
  async adopt(segment: number): Promise<Tip> {
    await syncNames(this.files.disk, `${this.files.directory}/segments`);
    this.#room = 0;
    const tip = await parsedEndOf(this.files, segment);
    // Copies were durable with the segment; lines added later may not be.
    await (await this.segment.open(segment)).sync();
    await this.publishHead(tip);
    return tip;
  }

  /**
   * The same bytes at the same offset: after a failed sync the kernel takes them for written. They
   * count when this returns.
   */
  async writeAgain(tip: Tip, lines: readonly Uint8Array[], end: Tip): Promise<void> {
    const file = await this.segment.open(tip.segment);
    await file.write(tip.length, Buffer.concat(lines));
    await file.sync();
    // A torn line may stand behind them.
    this.#room = 0;
    await this.assertHeld();
    // Now, because the disk may have no space for another segment.
    await this.publishHead(end);
  }

  /** The end after a repair. Its head is durable. */
  async rewrite(tip: Tip): Promise<void> {
    await this.segment.close();
    this.#room = 0;
    await this.#publishAnew(tip, { isAlwaysSynced: true });
  }

  async #publishAnew(tip: Tip, { isAlwaysSynced }: { readonly isAlwaysSynced: boolean }): Promise<void> {
    const isFirst = await this.#headFile.ensure();
    await this.publishHead(tip);
    if (isFirst || isAlwaysSynced) await this.#headFile.sync();
  }

  /**
   * After a failed write or sync no line may follow in that segment: the next one is begun, or the
   * failed lines are made void. That is durable before the caller is told that its append failed.
   * OUTCOME_UNKNOWN when it cannot be done.
   */
  protected async abandon(tip: Tip, cause: unknown): Promise<void> {
    try {
      const isVoid = isHoldfastError(cause, "DISK_FULL") && (await this.makeVoid(tip));
      if (!isVoid) await this.startSegment(tip, []);
    } catch {
      throw outcomeUnknown(segmentPath(this.files.directory, tip.segment), cause);
    }
  }

  /**
   * A full disk has no space for another segment. The first byte behind the tip is overwritten
   * instead: the next writer then finds neither line nor room, and begins another segment. False
   * when that failed, too.
   */
  protected async makeVoid(tip: Tip): Promise<boolean> {
    try {
      const file = await this.segment.open(tip.segment);
      if ((await file.stat()).size > tip.length) {
        await file.write(tip.length, voided);
        await file.sync();
      }
    } catch {
      // The caller is told the first error.
      return false;
    }
    // If the lock file still exists, it existed when the byte was written: a later writer finds it,
    // and copies nothing.
    await this.assertHeld();
    return true;
  }
}

/** The segment that was to be begun exists already. */
export class SegmentTaken extends Error {
  override readonly name = "SegmentTaken";
  readonly path: string;

  constructor(path: string) {
    super(
      `${path} was made by a process that does not hold the gate. Touch nothing; \`holdfast events verify\` tells whether it belongs to the log.`,
    );
    this.path = path;
  }
}
