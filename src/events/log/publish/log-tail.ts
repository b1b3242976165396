// The end of a log on one machine, as the holder of the gate changes it: writes lines and room, begins a segment,
// writes the head.
import { syncNames } from "../../../durable/publish/directory.ts";
import { outcomeUnknown } from "../../../durable/publish/publish.ts";
import { isHoldfastError } from "../../../errors.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import { copyOf, encodeSegment, openSegment, publishSegment, segmentPath } from "../format/segment.ts";
import type { Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { damaged, isPreallocatedFrom, readEnd, space } from "../read/scan.ts";
import type { Head, HeadFile } from "./head-file.ts";
import { mayBeStale, parsedEndOf } from "./published-end.ts";
import { WriteSessionLost, type WriterGate, type WriteSession } from "./publisher.ts";

/** Overwrites the first byte after the tip to void the lines there: neither a line nor room begins with this byte. */
const voided = Buffer.from("-");

/**
 * Room is reserved space after the lines: as much as the segment already has, within these limits, so a small log
 * stays small and a large one seldom grows. Lines written over room do not change the file's size, so a sync need not
 * commit the file system's journal.
 */
const roomBytesMin = 4 * 1024;
const roomBytesMax = 256 * 1024;

export class LogTail {
  protected readonly files: LogFiles;
  readonly #headFile: HeadFile;
  /** The gate that this process entered last. */
  #gate: WriterGate | undefined;
  /** The lock file that the head names: writers enter its segment under it. */
  #lock = "";
  /** The end of the room in the newest segment. */
  #room = 0;
  /** Kept open between sessions: on a local disk no other machine writes to it. */
  #open: { readonly segment: number; readonly file: DiskFile; readonly identity: string } | undefined;

  constructor(files: LogFiles, headFile: HeadFile) {
    this.files = files;
    this.#headFile = headFile;
  }

  enter(gate: WriterGate): void {
    this.#gate = gate;
  }

  /** The lock file of the gate that this process entered last. */
  get lockId(): string | undefined {
    return this.#gate?.lockId;
  }

  /** True if the writer of the head may have been late: it entered through another lock file than this process. */
  get mayBeStale(): boolean {
    return mayBeStale(this.#lock, this.lockId);
  }

  /** True if no other writer can be active in the segment of the head. It can be if its lock file was deleted. */
  get isAlone(): boolean {
    return this.#lock === this.#gate?.lockId;
  }

  /** Throws LOCK_LOST if the lock file of the gate was deleted. */
  async assertHeld(): Promise<void> {
    await this.#gate?.assertHeld();
  }

  /** Begins a session under `gate` at `start`, which must be published. */
  session(gate: WriterGate, start: Tip): WriteSession {
    return new TailSession(this.files, this, gate, start);
  }

  /** True if anything but room follows the tip. Throws CORRUPT if the segment is shorter than the tip. */
  async isInDoubt(tip: Tip): Promise<boolean> {
    const { segment, length } = tip;
    const size = await this.#sizeOf(segment);
    const { stands, next = space } = await readEnd(await this.#openSegment(segment), tip);
    if (!stands) throw damaged(segmentPath(this.files.directory, segment), Math.min(size, length));
    // A writer begins with this byte. While the machine runs, no write is visible without its first byte.
    return size > length && (size > this.#room || next !== space);
  }

  /** Continues from this head. If there is none, or it is not believed, no preallocated space is known. */
  takeUp(head: Pick<Head, "lock" | "room"> | undefined): void {
    this.#lock = head?.lock ?? "";
    this.#room = head?.room ?? 0;
  }

  /** Writes lines at `tip` and syncs them. After any failure except OUTCOME_UNKNOWN none of them will ever count. */
  async write(tip: Tip, lines: Uint8Array, isIdle?: () => boolean): Promise<void> {
    const file = await this.#openSegment(tip.segment);
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

  /** Begins the next segment with copies of `lines`. When this returns, all of it is durable and published. */
  async startSegment(after: Tip, lines: readonly Uint8Array[]): Promise<Tip> {
    const { staging, directory } = this.files;
    await this.leaveBehind(after);
    await this.#closeSegment();
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

  /** Syncs a segment before the next one continues it: acknowledged lines must not follow a hole. */
  protected async leaveBehind(after: Tip): Promise<void> {
    // A process that syncs has already synced it, in this session or when the session began.
    if (!this.files.isSynced && after.segment !== 0) await (await this.#openSegment(after.segment)).sync();
  }

  /** After a restart, writes the first head of this boot, with the end that the segments show. */
  async restart(tip: Tip): Promise<void> {
    const file = await this.#openSegment(tip.segment);
    // The end was found among lines written under this lock file. It must not be published once another writer
    // entered under a new one.
    await this.assertHeld();
    // A power cut may have kept any part of an unfinished write, even without its first byte.
    this.#room = (await isPreallocatedFrom(file, tip.length)) ? (await file.stat()).size : 0;
    // The lines came from the disk, or from a writer under another boot id that died before its
    // sync.
    await file.sync();
    await this.#publishAnew(tip, { isAlwaysSynced: false });
  }

  /** Publishes the end of a segment that continues the log but is not named in the head. */
  async adopt(segment: number): Promise<Tip> {
    await syncNames(this.files.disk, `${this.files.directory}/segments`);
    this.#room = 0;
    const tip = await parsedEndOf(this.files, segment);
    // Copied lines were durable with the segment; lines added later may not be.
    await (await this.#openSegment(segment)).sync();
    await this.publishHead(tip);
    return tip;
  }

  /**
   * Writes the same bytes again at the same offset: after a failed sync the kernel considers them written. When this
   * returns, they are published.
   */
  async writeAgain(tip: Tip, lines: readonly Uint8Array[], end: Tip): Promise<void> {
    const file = await this.#openSegment(tip.segment);
    await file.write(tip.length, Buffer.concat(lines));
    await file.sync();
    // A torn line may follow them.
    this.#room = 0;
    await this.assertHeld();
    // Publish now, because the disk may have no space for another segment.
    await this.publishHead(end);
  }

  /** Writes the end after a repair, in a durable head. */
  async rewrite(tip: Tip): Promise<void> {
    await this.#closeSegment();
    this.#room = 0;
    await this.#publishAnew(tip, { isAlwaysSynced: true });
  }

  async close(): Promise<void> {
    await this.#closeSegment();
  }

  async #openSegment(segment: number): Promise<DiskFile> {
    if (this.#open?.segment !== segment) {
      await this.#closeSegment();
      const file = await this.files.disk.open(segmentPath(this.files.directory, segment), "write");
      this.#open = { segment, file, identity: (await file.stat()).identity };
    }
    return this.#open.file;
  }

  /**
   * Stats the segment by name. Throws CLOSED if another file has the name: no reader would find
   * what is written to the open one.
   */
  async #sizeOf(segment: number): Promise<number> {
    const { disk, directory, continuity } = this.files;
    const { size, identity } = await disk.stat(segmentPath(directory, segment)).catch(async (error: unknown) => {
      // Throws CORRUPT if only the segment is missing, and not the whole log.
      if (hasErrno(error, "ENOENT")) await (await openSegment(disk, directory, segment)).close();
      throw error;
    });
    await this.#openSegment(segment);
    if (this.#open?.identity !== identity) throw continuity.broken();
    return size;
  }

  async #closeSegment(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    // Acknowledged lines were synced before, so a failed close loses nothing.
    await open?.file.close().catch(() => undefined);
  }

  async #publishAnew(tip: Tip, { isAlwaysSynced }: { readonly isAlwaysSynced: boolean }): Promise<void> {
    const isFirst = await this.#headFile.ensure();
    await this.publishHead(tip);
    if (isFirst || isAlwaysSynced) await this.#headFile.sync();
  }

  /**
   * After a failed write or sync no line may follow in that segment: the next segment is begun, or the failed lines
   * are voided. Either is durable before the caller learns that its append failed. Throws OUTCOME_UNKNOWN if neither
   * succeeds.
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
   * A full disk has no space for another segment, so this overwrites the first byte after the tip: the next writer
   * finds neither a line nor room there, and begins another segment. Returns false if that failed too.
   */
  protected async makeVoid(tip: Tip): Promise<boolean> {
    try {
      const file = await this.#openSegment(tip.segment);
      if ((await file.stat()).size > tip.length) {
        await file.write(tip.length, voided);
        await file.sync();
      }
    } catch {
      // The caller gets the first error.
      return false;
    }
    // If the lock file still exists, it existed when the byte was written: any later writer finds that byte and
    // copies none of the lines.
    await this.assertHeld();
    return true;
  }
}

/** Lines, a sync, the head. */
class TailSession implements WriteSession {
  readonly #files: LogFiles;
  readonly #tail: LogTail;
  /** The session's own gate: if the lock file was deleted, this process may meanwhile enter another one to read. */
  readonly #gate: WriterGate;
  #isOver = false;
  published: Tip;

  constructor(files: LogFiles, tail: LogTail, gate: WriterGate, start: Tip) {
    this.#files = files;
    this.#tail = tail;
    this.#gate = gate;
    this.published = start;
  }

  get end(): Tip {
    return this.published;
  }

  get isFull(): boolean {
    return this.#files.isFull(this.published);
  }

  async publish(lines: Uint8Array, next: Tip, isLast: boolean, isIdle?: () => boolean): Promise<void> {
    if (this.#isOver) throw new WriteSessionLost("the session is over");
    // Set until it succeeds: after a failure the log continues elsewhere.
    this.#isOver = true;
    await this.#tail.write(this.published, lines, isIdle);
    try {
      // This check usually, but not always, prevents overwriting the head of a second writer.
      await this.#gate.assertHeld();
      await this.#tail.publishHead(next);
      // If the lock file still exists, it existed when the head was written, so any later writer has read that head.
      await this.#gate.assertHeld();
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      // The lines are durable, and the next holder of the gate may take them over.
      throw outcomeUnknown(`${this.#files.directory}/head`, error);
    }
    this.published = next;
    this.#isOver = isLast;
  }

  async close(): Promise<void> {
    this.#isOver = true;
  }
}

/**
 * Returns `lines` followed by room, to be written at `offset`. No room beyond `fileBytesMax`, where
 * the next segment begins.
 */
function withRoom(lines: Uint8Array, offset: number, fileBytesMax: number): Uint8Array {
  const end = offset + lines.length;
  const room = Math.min(Math.max(end, roomBytesMin), roomBytesMax, Math.max(fileBytesMax - end, 0));
  const bytes = Buffer.alloc(lines.length + room, space);
  bytes.set(lines);
  return bytes;
}

/** Thrown if the segment that was to be begun already exists. */
export class SegmentTaken extends Error {
  override readonly name = "SegmentTaken";
  readonly path: string;

  constructor(path: string) {
    super(
      `${path} was created by a process that does not hold the gate. Change nothing; \`holdfast events verify\` reports whether it belongs to the log.`,
    );
    this.path = path;
  }
}
