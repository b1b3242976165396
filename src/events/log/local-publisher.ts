// Publishing on one machine: an OS lock cannot be lost by a living process and a dead one writes nothing, so the holder of the gate may write in place.
//
// What is beyond the head is in doubt: somebody died before he could publish it, or his sync failed. Nothing in doubt is believed where it stands (a failed
// sync can leave it in the page cache alone); it is copied into a new segment and synced, or left behind. Nothing is truncated or overwritten.
//
// A lock file that is deleted under its holder lets a second writer in. The second begins a new segment, because its lock file is not the one that the head
// names; so the two never write in one segment. The first looks whether its lock file is still there after each head, and acknowledges nothing if it is not;
// and before it begins a segment: what it knows of the end is then what the second finds as well, and only one of them can make that segment.
import type { Hold } from "../../common.ts";
import { syncNames } from "../../durable/directory.ts";
import { outcomeUnknown } from "../../durable/publish.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { isKnownBoot } from "../../ports/host.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { DiskFile } from "../../ports/disk.ts";
import { mustContinue } from "./continuation.ts";
import { copyOf, encodeSegment } from "./copied-lines.ts";
import { HeadFile, type Head } from "./head-file.ts";
import { linesBehind, parsedEndOf } from "./parsed-end.ts";
import type { Publisher, Rewriting, Tenure, WriterGate } from "./publisher.ts";
import { damaged, lookAtEnd } from "./scan.ts";
import { isRoomFrom, space, withRoom } from "./room.ts";
import { listSegments, missing, openSegment, publishSegment, segmentPath, syncSegment } from "./segment.ts";
import type { LogPlace } from "./place.ts";
import { emptyTip, isBefore, type Tip } from "./tip.ts";

type TryGate = () => Promise<(WriterGate & Hold) | undefined>;

/** How often in a row another writer may begin the segment that was to be begun here. */
const takeoversMax = 3;

export class LocalPublisher implements Publisher {
  protected readonly place: LogPlace;
  readonly #head: HeadFile;
  /** The head as it was when this process first looked. */
  #first: { readonly head: Head | undefined } | undefined;
  /** As long as somebody has the gate, and the head is the one that was there before. */
  #tryGate: TryGate | undefined;
  /** Under which lock file the head was written that is there, or is to be written. */
  #lock = "";
  #gate: WriterGate | undefined;
  /** Where the room in the newest segment ends, as far as it is known to be room and nothing else. */
  #room = 0;
  /** Up to here this process has synced what others did not. */
  #synced: Tip = emptyTip;
  /** Of the segment of the last tenure; kept, because no other machine writes to it. */
  #open: { readonly segment: number; readonly file: DiskFile; readonly identity: string } | undefined;

  constructor(place: LogPlace) {
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
    const tip = await this.#tipAfterRestart(head);
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
    const gate = await tryGate();
    if (gate === undefined && !isBelieved && head?.isSynced) this.#tryGate = tryGate;
    this.#gate = gate;
    try {
      if (gate !== undefined) await this.#recover();
    } catch (error) {
      // Another writer is inside: the lock file was deleted. What is to be recovered is its affair then.
      const isOthers = error instanceof SegmentTaken || (isHoldfastError(error, "LOCK_LOST") && head?.isSynced);
      if (isOthers) this.#tryGate = isBelieved || !head?.isSynced ? undefined : tryGate;
      // Who may only read can still read.
      else if (!isHoldfastError(error, "NO_PERMISSION")) throw error;
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
    const isAlone = this.#lock === gate.lockId;
    this.#lock = gate.lockId;
    const isInDoubt = tip.segment !== 0 && (await this.#isInDoubt(tip));
    if (tip.segment === 0 || this.isFull(tip)) return await this.startSegment(tip, []);
    if (isInDoubt) return await this.rescue(tip);
    // A writer whose lock file was deleted may still be writing in this segment.
    return isAlone ? tip : await this.startSegment(tip, []);
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
  protected async shown({ isSynced, tip }: Head): Promise<Tip> {
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
    return tip.segment !== 0 && (await linesBehind(this.place, tip)).length > 0;
  }

  /** With the gate in hand. */
  async #recover(): Promise<void> {
    const tip = await this.#recoveredTip();
    if (tip.segment !== 0 && (await linesBehind(this.place, tip)).length > 0) await this.rescue(tip);
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

  /** Whole lines beyond the tip: somebody died before he could publish them. */
  protected async rescue(tip: Tip): Promise<Tip> {
    return await this.startSegment(tip, await linesBehind(this.place, tip));
  }

  /** After a failed write or sync nobody may go on in that segment. The new one is durable before anybody is told that it failed for sure. */
  protected async abandon(tip: Tip, cause: unknown): Promise<void> {
    try {
      await this.startSegment(tip, []);
    } catch {
      throw outcomeUnknown(segmentPath(this.place.directory, tip.segment), cause);
    }
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

  /** Of this boot by its id, or because it was written while this process lives: then there was no restart since, whatever the writer's boot id is. */
  #isBelieved(head: Head): boolean {
    const { bootId } = this.place;
    return (head.boot === bootId && isKnownBoot(bootId)) || (this.#first !== undefined && head !== this.#first.head);
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

class LocalTenure implements Tenure {
  readonly #publisher: LocalPublisher;
  readonly #gate: WriterGate;
  published: Tip;

  constructor(publisher: LocalPublisher, tip: Tip, gate: WriterGate) {
    this.#publisher = publisher;
    this.#gate = gate;
    this.published = tip;
  }

  get end(): Tip {
    return this.published;
  }

  get isFull(): boolean {
    return this.#publisher.isFull(this.published);
  }

  async publish(lines: Uint8Array, next: Tip, _isLast: boolean, isIdle?: () => boolean): Promise<void> {
    await this.#publisher.write(this.published, lines, isIdle);
    try {
      // Not over the head of another writer, as far as that can be known before.
      await this.#gate.assertHeld();
      await this.#publisher.publishHead(next);
      // A lock file that is there now was there when the head was written: who comes in later has read it.
      await this.#gate.assertHeld();
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      // The lines are durable and may yet be copied by the next holder of the gate.
      throw outcomeUnknown(this.#publisher.headPath, error);
    }
    this.published = next;
  }

  async close(): Promise<void> {
    // The segment stays open for the next tenure of this process.
  }
}
