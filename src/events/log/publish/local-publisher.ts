// Publishing on one machine: an OS lock cannot be lost by a living process and a dead one writes nothing, so the holder of the gate may write in place.
//
// What is beyond the head is in doubt: its writer died before it could publish it, its sync failed, or the file system went away and came back with an older
// head. Nothing in doubt is believed as it stands: a failed sync can leave it in the page cache alone. By the lock file that the head names, no other writer can
// be at work in that segment: whole lines are written again in their place and synced, so that they stay what they are for a consumer that has seen them. By
// another lock file they are copied into a new segment, because the writer of the old one may still be at work there. Nothing is truncated, and nothing that
// may count is overwritten with anything else.
//
// A lock file that is deleted under its holder lets a second writer in. The second begins a new segment, because its lock file is not the one that the head
// names; so the two never write in one segment. The first looks whether its lock file is still there after each head, and acknowledges nothing if it is not;
// and before it begins a segment: what it knows of the end is then what the second finds as well, and only one of them can make that segment.
import type { Hold } from "../../../common.ts";
import { syncNames } from "../../../durable/publish/directory.ts";
import { outcomeUnknown } from "../../../durable/publish/publish.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { isKnownBoot } from "../../../ports/host.ts";
import { hasErrno, isUnwritable } from "../../../ports/disk-error.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import { mustContinue } from "../read/continuation.ts";
import { copyOf, encodeSegment } from "../format/copied-lines.ts";
import { HeadFile, type Head } from "./head-file.ts";
import { LocalTenure } from "./local-tenure.ts";
import { linesBehind, parsedEndOf } from "../read/parsed-end.ts";
import type { Publisher, Rewriting, Tenure, WriterGate } from "./publisher.ts";
import { damaged, lookAtEnd } from "../read/scan.ts";
import { isRoomFrom, space, withRoom } from "./preallocation.ts";
import { listSegments, missing, openSegment, publishSegment, segmentPath, syncSegment } from "../format/segment.ts";
import type { LogFiles } from "../log-files.ts";
import { emptyTip, isBefore, type Tip } from "../format/tip.ts";

type TryGate = () => Promise<(WriterGate & Hold) | undefined>;

/** How often in a row another writer may begin the segment that was to be begun here. */
const takeoversMax = 3;

/** No line begins with it, and it is no room either. */
const voided = Buffer.from("-");

export class LocalPublisher implements Publisher {
  protected readonly place: LogFiles;
  readonly #head: HeadFile;
  /** The head as it was when this process first looked. */
  #first: { readonly head: Head | undefined } | undefined;
  /** As long as somebody has the gate, and the head is the one that was there before. */
  #tryGate: TryGate | undefined;
  /** What the segments say beside a head that is not believed. */
  #parsed: { readonly head: Head; readonly tip: Tip } | undefined;
  /** By which lock file writers come into the segment of the head that is there, or is to be written. */
  #lock = "";
  #gate: WriterGate | undefined;
  /** Where the room in the newest segment ends, as far as it is known to be room and nothing else. */
  #room = 0;
  /** Up to here this process has synced what others did not. */
  #synced: Tip = emptyTip;
  /** Of the segment of the last tenure; kept, because no other machine writes to it. */
  #open: { readonly segment: number; readonly file: DiskFile; readonly identity: string } | undefined;

  constructor(place: LogFiles) {
    this.place = place;
    this.#head = new HeadFile(place.disk, this.headPath);
  }

  get headPath(): string {
    return `${this.place.directory}/head`;
  }

  async tip(): Promise<Tip> {
    if (this.#tryGate !== undefined) await this.settle(this.#tryGate);
    return await this.place.continuity.following(() => this.#publishedTip());
  }

  async #publishedTip(): Promise<Tip> {
    const head = await this.#findHead();
    if (head !== undefined && (this.#isBelieved(head) || this.#tryGate !== undefined)) return await this.shown(head);
    const tip = await this.shown({ isSynced: head?.isSynced ?? false, tip: await this.#parsedOnce(head) });
    // Looked at again after parsing: whoever writes has published a head before he began, and from then on it decides.
    const now = await this.#findHead();
    return now !== undefined && this.#isBelieved(now) ? await this.shown(now) : tip;
  }

  /**
   * To be called before the first `tip`: makes a head that may be of before a restart one of now. Perhaps there was no restart, and a writer under another boot id is at work (a container may show
   * its own): what stands beyond the head is then his, so it is not looked at without the gate. While he has it, the head alone counts: it is his, or he is about to write it anew.
   * Also where there is more than the head tells, and nobody at work: its writer died, or somebody has put the head back.
   */
  async settle(tryGate: TryGate): Promise<void> {
    this.#tryGate = undefined;
    const head = await this.#findHead();
    const isBelieved = head !== undefined && this.#isBelieved(head);
    if (isBelieved ? !(await this.#hasMore(head.tip)) : head === undefined && !(await this.#hasMore(emptyTip))) return;
    // What it tells of can be shown for as long as another writer is inside.
    const isShowable = head !== undefined && (head.isSynced || head.boot === this.place.bootId);
    const again = isShowable && !isBelieved ? tryGate : undefined;
    let gate: (WriterGate & Hold) | undefined;
    try {
      this.#gate = gate = await tryGate();
      if (gate === undefined) this.#tryGate = again;
      else await this.#recover();
    } catch (error) {
      // Another writer is inside: the lock file was deleted. What is to be recovered is its affair then.
      if (error instanceof SegmentTaken || (isHoldfastError(error, "LOCK_LOST") && isShowable)) this.#tryGate = again;
      // Who can write nothing can still read: all that parses, as after a restart.
      else if (!isUnwritable(error)) throw error;
    } finally {
      await gate?.release();
    }
  }

  async begin(gate: WriterGate): Promise<Tenure> {
    for (let tries = 1; ; tries++)
      try {
        return new LocalTenure(this, await this.#beginAt(gate), gate);
      } catch (error) {
        // A writer whose lock file was deleted has begun it. It is taken over like that of a dead one.
        if (!(error instanceof SegmentTaken)) throw error;
        if (tries === takeoversMax) throw holdfastError("CORRUPT", error.message, { path: error.path });
      }
  }

  /** Where the next line goes. */
  async #beginAt(gate: WriterGate): Promise<Tip> {
    this.#gate = gate;
    const tip = await this.place.continuity.following(() => this.#recoveredTip());
    if (tip.segment !== 0 && (await this.#isInDoubt(tip))) return await this.rescue(tip);
    return tip.segment === 0 || this.isFull(tip) || !this.isAlone ? await this.startSegment(tip, []) : tip;
  }

  /** Whether no writer but the holder of this gate can be at work in the segment of the head. One whose lock file was deleted may still be writing there. */
  protected get isAlone(): boolean {
    return this.#lock === this.#gate?.lockId;
  }

  async write(tip: Tip, lines: Uint8Array, isIdle?: () => boolean): Promise<void> {
    const file = await this.segment(tip.segment);
    const { isSynced, segmentBytesMax } = this.place;
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

  isFull({ length }: Tip): boolean {
    return length >= this.place.segmentBytesMax;
  }

  async publishHead(tip: Tip): Promise<void> {
    const { bootId: boot, isSynced } = this.place;
    await this.#head.write({ boot, isSynced, lock: this.#lock, tip, room: Math.max(this.#room, tip.length) });
    this.place.continuity.reach(tip);
  }

  async close(): Promise<void> {
    await this.#forgetSegment();
    await this.#head.close();
  }

  rewriting(): Rewriting {
    let number = 0;
    return {
      next: async (least) => (number = Math.max(number + 1, least)),
      publish: async (tip) => {
        await this.#forgetSegment();
        this.#room = 0;
        await this.#head.ensure();
        await this.publishHead(tip);
        await this.#head.sync();
      },
    };
  }

  /** Begins the next segment with copies of `lines`; all of it is durable and counts when this returns. */
  protected async startSegment(after: Tip, lines: readonly Uint8Array[]): Promise<Tip> {
    const { staging, directory } = this.place;
    await this.leaveBehind(after);
    await this.#forgetSegment();
    this.#room = 0;
    const isFirst = await this.#head.ensure();
    const segment = after.segment + 1;
    const { bytes, tip } = encodeSegment(this.place.newHeader(segment, after), lines.map(copyOf));
    await this.#gate?.assertHeld();
    if (!(await publishSegment(staging, directory, segment, bytes)))
      throw new SegmentTaken(segmentPath(directory, segment));
    this.#lock = this.#gate?.lockId ?? this.#lock;
    await this.publishHead(tip);
    if (isFirst) await this.#head.sync();
    return tip;
  }

  /** Before a segment goes on after it: what others acknowledge there, with their syncs, must not stand behind a hole. */
  protected async leaveBehind(after: Tip): Promise<void> {
    // Whoever syncs has synced all of it, in this tenure or when it began.
    if (!this.place.isSynced && after.segment !== 0) await (await this.segment(after.segment)).sync();
  }

  /**
   * The tip of a head that is believed. What a process that syncs is shown is durable, also where the writer did not care: it answers for all that its own answers and checkpoints rest
   * on, such as "it is there already".
   */
  protected async shown({ isSynced, tip }: Pick<Head, "isSynced" | "tip">): Promise<Tip> {
    const isDurable = isSynced || tip.segment === 0 || !isBefore(this.#synced, tip);
    if (this.place.isSynced && !isDurable) {
      await syncSegment(this.place.disk, this.place.directory, tip.segment);
      this.#synced = tip;
    }
    return tip;
  }

  /** Whether anything stands behind the tip but room: somebody died before he could publish it. CORRUPT when the tip itself is not there: what is written behind a hole is lost. */
  async #isInDoubt(tip: Tip): Promise<boolean> {
    const { segment, length } = tip;
    const size = await this.#sizeOf(segment);
    const { stands, next = space } = await lookAtEnd(await this.segment(segment), tip);
    if (!stands) throw damaged(segmentPath(this.place.directory, segment), Math.min(size, length));
    // Whoever wrote began here, and a write is never there without its first byte as long as the machine runs.
    return size > length && (size > this.#room || next !== space);
  }

  /** By its name: what is written to a file that was moved or removed under us is read by nobody. */
  async #sizeOf(segment: number): Promise<number> {
    const { disk, directory } = this.place;
    const { size, identity } = await disk.stat(segmentPath(directory, segment)).catch(async (error: unknown) => {
      // Says whether it is lost, or the whole log moved away.
      if (hasErrno(error, "ENOENT")) await (await openSegment(disk, directory, segment)).close();
      throw error;
    });
    await this.segment(segment);
    if (this.#open?.identity !== identity) throw this.place.continuity.broken();
    return size;
  }

  /** Whether there is something behind the tip that can count: a line, or a segment. */
  async #hasMore(tip: Tip): Promise<boolean> {
    const { disk, directory } = this.place;
    if (((await listSegments(disk, directory)).at(-1) ?? 0) > tip.segment) return true;
    return tip.segment !== 0 && (await linesBehind(this.place, tip)).lines.length > 0;
  }

  /** With the gate in hand. */
  async #recover(): Promise<void> {
    const tip = await this.#recoveredTip();
    if (tip.segment !== 0 && (await linesBehind(this.place, tip)).lines.length > 0) await this.rescue(tip);
  }

  async #recoveredTip(): Promise<Tip> {
    return await this.#continued(await this.#restartedTip());
  }

  /**
   * The end of what continues the tip. The maker of the next segment died between making it and saying so: it was made with the gate in hand, so nothing was written behind its back. Or the head
   * is older than the segments: put back, or of a copy that was made while others wrote. CORRUPT when the next one is of something else.
   */
  async #continued(tip: Tip): Promise<Tip> {
    const { disk, directory } = this.place;
    if (!(await disk.canOpen(segmentPath(directory, tip.segment + 1)))) return tip;
    const newest = (await listSegments(disk, directory)).at(-1) ?? 0;
    await mustContinue(this.place, tip, newest, { mayBranchOff: this.#mayBeLate(this.#lock) });
    // What was found is of writers who had this lock, and not of one who has come in since.
    await this.#gate?.assertHeld();
    return await this.#adopt(newest);
  }

  /** Whether a head was written under another lock file than that of now. Its writer may have been late: another had gone on already, before the end of it. */
  #mayBeLate(lock: string): boolean {
    return lock !== "" && lock !== this.#gate?.lockId;
  }

  async #restartedTip(): Promise<Tip> {
    const head = await this.#findHead();
    this.#lock = head?.lock ?? "";
    if (head !== undefined && this.#isBelieved(head)) {
      this.#room = head.room;
      return await this.shown(head);
    }
    const tip = await this.#tipAfterRestart(head);
    if (tip.segment === 0) return tip;
    // A power cut may have left any part of what was being written there, the first byte or not.
    const file = await this.segment(tip.segment);
    // What was found is of writers who had this lock, and not of one who has come in since.
    await this.#gate?.assertHeld();
    this.#room = (await isRoomFrom(file, tip.length)) ? (await file.stat()).size : 0;
    // It came from the disk, or from somebody under another boot id who died before his sync.
    await file.sync();
    const isFirst = await this.#head.ensure();
    // Before anything else: a reader must not parse what is written from now on.
    await this.publishHead(tip);
    if (isFirst) await this.#head.sync();
    return tip;
  }

  async #adopt(segment: number): Promise<Tip> {
    await syncNames(this.place.disk, `${this.place.directory}/segments`);
    this.#room = 0;
    const tip = await parsedEndOf(this.place, segment);
    // Copies are there with the segment; what was added to it later may not have come to its sync.
    await (await this.segment(segment)).sync();
    await this.publishHead(tip);
    return tip;
  }

  /** Once for each head: whoever writes publishes another one before it begins. */
  async #parsedOnce(head: Head | undefined): Promise<Tip> {
    if (head === undefined) return await this.#tipAfterRestart(head);
    if (this.#parsed?.head !== head) this.#parsed = { head, tip: await this.#tipAfterRestart(head) };
    return this.#parsed.tip;
  }

  /**
   * All that parses. CORRUPT when that is less than an earlier head tells of, or something else: it was durable when that was written, so something has damaged it since. The name of
   * the head is durable from the first one on, so one that is missing was removed, and no power cut has left a line that does not fit: then it is damage, because nothing tells that it never counted.
   */
  async #tipAfterRestart(head: Head | undefined): Promise<Tip> {
    const { disk, directory } = this.place;
    const floor = head?.isSynced ? head.tip : emptyTip;
    const newest = (await listSegments(disk, directory)).at(-1) ?? 0;
    await mustContinue(this.place, floor, newest, { mayBranchOff: this.#mayBeLate(head?.lock ?? "") });
    if (newest < floor.segment) throw missing(segmentPath(directory, floor.segment));
    const isStrict = head === undefined && !(await disk.canOpen(this.headPath));
    return newest === 0 ? emptyTip : await parsedEndOf(this.place, newest, { floor, isStrict });
  }

  /** What the segments themselves say: all that parses. */
  protected async parsedTip(): Promise<Tip> {
    const segment = (await listSegments(this.place.disk, this.place.directory)).at(-1);
    return segment === undefined ? emptyTip : await parsedEndOf(this.place, segment);
  }

  /** Whole lines beyond the tip, which may be older than they are. What comes next goes into a new segment. */
  protected async rescue(tip: Tip): Promise<Tip> {
    const { lines, end } = await linesBehind(this.place, tip);
    if (!this.isAlone) return await this.startSegment(tip, lines);
    if (lines.length > 0) await this.writeAgain(tip, lines, end);
    return await this.startSegment(end, []);
  }

  /** The same bytes, in their place: where a sync has failed, the kernel holds them for written, and only so writes them. They count when this returns. */
  protected async writeAgain(tip: Tip, lines: readonly Uint8Array[], end: Tip): Promise<void> {
    const file = await this.segment(tip.segment);
    await file.write(tip.length, Buffer.concat(lines));
    await file.sync();
    // A torn line may stand behind them.
    this.#room = 0;
    await this.#gate?.assertHeld();
    // Now, because there may be no room for another segment.
    await this.publishHead(end);
  }

  /** After a failed write or sync no line may follow in that segment. That is durable before a caller is told that it failed for sure. */
  protected async abandon(tip: Tip, cause: unknown): Promise<void> {
    try {
      const isVoid = isHoldfastError(cause, "DISK_FULL") && (await this.makeVoid(tip));
      if (!isVoid) await this.startSegment(tip, []);
    } catch {
      throw outcomeUnknown(segmentPath(this.place.directory, tip.segment), cause);
    }
  }

  /**
   * A full disk has no room for another segment. But the first byte behind the tip can be made one with which no line begins; then the next writer finds neither
   * line nor room, and goes on in another segment. False when even that failed.
   */
  protected async makeVoid(tip: Tip): Promise<boolean> {
    try {
      const file = await this.segment(tip.segment);
      if ((await file.stat()).size > tip.length) {
        await file.write(tip.length, voided);
        await file.sync();
      }
    } catch {
      // What failed first is what the caller has to know.
      return false;
    }
    // A lock file that is there now was there when the byte was written: a writer that comes in by another one finds it, and copies nothing.
    await this.#gate?.assertHeld();
    return true;
  }

  protected async segment(segment: number): Promise<DiskFile> {
    if (this.#open?.segment !== segment) {
      await this.#forgetSegment();
      const file = await this.place.disk.open(segmentPath(this.place.directory, segment), "write");
      this.#open = { segment, file, identity: (await file.stat()).identity };
    }
    return this.#open.file;
  }

  async #forgetSegment(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    // What was acknowledged was synced before; a close that fails takes nothing back.
    await open?.file.close().catch(() => undefined);
  }

  async #findHead(): Promise<Head | undefined> {
    const head = await this.#head.find();
    this.#first ??= { head };
    return head;
  }

  /**
   * Of this boot by its id, or because it was written while this process lives: then there was no restart since, whatever the writer's boot id is. The id alone
   * does not tell that the file system has not gone away and come back in this boot: then lines that were not synced are gone, and a head that tells of them may have stayed.
   */
  #isBelieved(head: Head): boolean {
    const { bootId } = this.place;
    const isOfThisBoot = head.boot === bootId && isKnownBoot(bootId) && head.isSynced;
    return isOfThisBoot || (this.#first !== undefined && head !== this.#first.head);
  }
}

/** The segment that was to be begun is there already. */
class SegmentTaken extends Error {
  override readonly name = "SegmentTaken";
  readonly path: string;

  constructor(path: string) {
    super(
      `${path} was made by a process that does not hold the gate. Touch nothing; \`holdfast events verify\` tells whether it belongs to the log.`,
    );
    this.path = path;
  }
}
