// Publishing on one machine: an OS lock cannot be lost by a living process and a dead one writes nothing, so the holder of the gate may write in place.
//
// What is beyond the head is in doubt: somebody died before he could publish it, or his sync failed. Nothing in doubt is believed as it stands (a failed
// sync can leave it in the page cache alone); whole lines are written again in their place and synced, or left behind. Nothing is truncated, and nothing is overwritten with anything else.
import type { Hold } from "../../common.ts";
import { syncNames } from "../../durable/directory.ts";
import { outcomeUnknown } from "../../durable/publish.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import { isKnownBoot } from "../../ports/host.ts";
import type { DiskFile } from "../../ports/disk.ts";
import { HeadFile, type Head } from "./head-file.ts";
import { tipAfter } from "./line.ts";
import type { Publisher, Tenure } from "./publisher.ts";
import { damaged, headOf, scanFile } from "./scan.ts";
import { isRoom, isRoomFrom, withRoom } from "./room.ts";
import { encodeHeader, listSegments, publishSegment, readHeader, segmentPath, syncSegment } from "./segment.ts";
import type { LogPlace } from "./place.ts";
import { emptyTip, type Tip } from "./tip.ts";

/** No line begins with it, and it is no room either. */
const voided = Buffer.from("-");

export class LocalPublisher implements Publisher {
  protected readonly place: LogPlace;
  readonly #head: HeadFile;
  /** The head as it was when this process first looked. */
  #first: { readonly head: Head | undefined } | undefined;
  /** As long as somebody has the gate, and the head is the one that was there before. */
  #tryGate: (() => Promise<Hold | undefined>) | undefined;
  #isReplaced = false;
  /** What the segments say beside a head that is not believed. */
  #parsed: { readonly head: Head | undefined; readonly tip: Tip } | undefined;
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
    this.#mustBeInPlace();
    if (this.#tryGate !== undefined) await this.settle(this.#tryGate);
    const head = await this.#findHead();
    if (head !== undefined && (this.#isBelieved(head) || this.#tryGate !== undefined)) return await this.shown(head);
    const tip = await this.#parsedOnce(head);
    // Looked at again after parsing: whoever writes has published a head before he began, and from then on it decides.
    const now = await this.#findHead();
    return now !== undefined && this.#isBelieved(now) ? await this.shown(now) : tip;
  }

  /**
   * To be called before the first `tip`: makes a head that may be of before a restart one of now. Perhaps there was no restart, and a writer under another boot id is at work (a container may show
   * its own): what stands beyond the head is then his, so it is not looked at without the gate. While he has it, the head alone counts: it is his, or he is about to write it anew.
   */
  async settle(tryGate: () => Promise<Hold | undefined>): Promise<void> {
    this.#tryGate = undefined;
    const head = await this.#findHead();
    if (head === undefined || this.#isBelieved(head)) return;
    let gate: Hold | undefined;
    try {
      gate = await tryGate();
      if (gate === undefined && (head.isSynced || head.boot === this.place.bootId)) this.#tryGate = tryGate;
      if (gate !== undefined) await this.#recoveredTip();
    } catch (error) {
      // Who can write nothing can still read: all that parses, as after a restart.
      if (!isUnwritable(error)) throw error;
    } finally {
      await gate?.release();
    }
  }

  async begin(): Promise<Tenure> {
    this.#mustBeInPlace();
    let tip = await this.#recoveredTip();
    // Its maker died between making it and saying so. It was made with the gate in hand, so nothing was written behind its back.
    if (await this.place.disk.canOpen(segmentPath(this.place.directory, tip.segment + 1)))
      tip = await this.#adopt(tip.segment + 1);
    if (tip.segment === 0 || this.isFull(tip)) tip = await this.startSegment(tip);
    else if (await this.#isInDoubt(tip)) tip = await this.rescue(tip);
    return new LocalTenure(this, tip);
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
    await this.#head.write({ boot, isSynced, tip, room: Math.max(this.#room, tip.length) });
  }

  async close(): Promise<void> {
    await this.#forgetSegment();
    await this.#head.close();
  }

  /** Begins the next segment; it is durable and counts when this returns. */
  protected async startSegment(after: Tip): Promise<Tip> {
    const { staging, directory } = this.place;
    await this.leaveBehind(after);
    await this.#forgetSegment();
    this.#room = 0;
    await this.#head.ensure();
    const segment = after.segment + 1;
    const header = encodeHeader(this.place.newHeader(segment, after));
    const tip: Tip = { ...after, segment, length: header.bytes.length, crc: header.crc };
    if (!(await publishSegment(staging, directory, segment, header.bytes))) {
      const path = segmentPath(directory, segment);
      const message = `${path} was made by somebody who does not hold the gate. Touch nothing; \`holdfast events verify\` tells whether it belongs to the log.`;
      throw holdfastError("CORRUPT", message, { path });
    }
    await this.publishHead(tip);
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

  /** Whether anything stands behind the tip but room: somebody died before he could publish it. */
  async #isInDoubt({ segment, length }: Tip): Promise<boolean> {
    const size = await this.#sizeOf(segment);
    if (size <= length || size > this.#room) return size > length;
    // Whoever wrote began here, and a write is never there without its first byte as long as the machine runs.
    return !isRoom(await (await this.segment(segment)).read(length, 1));
  }

  /** By its name: what is written to a file that was moved or removed under us is read by nobody. */
  async #sizeOf(segment: number): Promise<number> {
    const { size, identity } = await this.place.disk.stat(segmentPath(this.place.directory, segment));
    await this.segment(segment);
    if (this.#open?.identity !== identity) this.#isReplaced = true;
    this.#mustBeInPlace();
    return size;
  }

  /** For good: the view and the gate are those of the directory that was there before. */
  #mustBeInPlace(): void {
    if (!this.#isReplaced) return;
    throw holdfastError("CLOSED", `${this.place.directory} was replaced while it was open. Open it again.`, {});
  }

  async #recoveredTip(): Promise<Tip> {
    const head = await this.#findHead();
    if (head !== undefined && this.#isBelieved(head)) {
      this.#room = head.room;
      return await this.shown(head);
    }
    const tip = await this.#tipAfterRestart(head);
    if (tip.segment === 0) return tip;
    // A power cut may have left any part of what was being written there, the first byte or not.
    const file = await this.segment(tip.segment);
    this.#room = (await isRoomFrom(file, tip.length)) ? (await file.stat()).size : 0;
    // It came from the disk, or from somebody under another boot id who died before his sync.
    await file.sync();
    await this.#head.ensure();
    // Before anything else: a reader must not parse what is written from now on.
    await this.publishHead(tip);
    return tip;
  }

  async #adopt(segment: number): Promise<Tip> {
    await syncNames(this.place.disk, `${this.place.directory}/segments`);
    this.#room = 0;
    const tip = await this.#parsedTipOf(segment);
    await this.publishHead(tip);
    return tip;
  }

  /** Once for each head: whoever writes publishes another one before it begins. */
  async #parsedOnce(head: Head | undefined): Promise<Tip> {
    if (this.#parsed === undefined || this.#parsed.head !== head || head === undefined)
      this.#parsed = { head, tip: await this.#tipAfterRestart(head) };
    return this.#parsed.tip;
  }

  /** All that parses. CORRUPT when that is less than an earlier head tells of: it was durable when that was written, so something has damaged it since. */
  async #tipAfterRestart(head: Head | undefined): Promise<Tip> {
    const tip = await this.parsedTip();
    if (head?.isSynced && isBefore(tip, head.tip))
      throw damaged(segmentPath(this.place.directory, tip.segment), tip.length);
    return tip;
  }

  /** What the segments themselves say: all that parses. */
  protected async parsedTip(): Promise<Tip> {
    const segment = (await listSegments(this.place.disk, this.place.directory)).at(-1);
    return segment === undefined ? emptyTip : await this.#parsedTipOf(segment);
  }

  async #parsedTipOf(segment: number): Promise<Tip> {
    const { disk, directory } = this.place;
    const header = await readHeader(disk, directory, segment);
    const path = segmentPath(directory, segment);
    const file = await disk.open(path, "read");
    try {
      let tip: Tip = { ...header.after, segment, length: header.bytes, crc: header.crc };
      const stretch = { segment, from: tip.length, to: (await file.stat()).size, crc: tip.crc };
      for await (const lines of scanFile(file, stretch))
        for (const line of lines) tip = tipAfter(tip, headOf(path, line), { bytes: line.bytes.length, crc: line.crc });
      return tip;
    } finally {
      await file.close();
    }
  }

  /**
   * Whole lines beyond the tip: somebody died before he could publish them, or the file system went away and came back with an older head. They are written again where they stand, the
   * same bytes, and synced: a sync that failed may have left them in the page cache alone, and another would have nothing to do. They stay what they are, also for a
   * consumer that has seen them.
   */
  protected async rescue(tip: Tip): Promise<Tip> {
    const file = await this.segment(tip.segment);
    const path = segmentPath(this.place.directory, tip.segment);
    const found: Uint8Array[] = [];
    let end = tip;
    const stretch = { segment: tip.segment, from: tip.length, to: (await file.stat()).size, crc: tip.crc };
    for await (const lines of scanFile(file, stretch))
      for (const line of lines) {
        found.push(Uint8Array.from(line.bytes));
        end = tipAfter(end, headOf(path, line), { bytes: line.bytes.length, crc: line.crc });
      }
    if (found.length > 0) {
      await file.write(tip.length, Buffer.concat(found));
      await file.sync();
    }
    return await this.startSegment(end);
  }

  /** After a failed write or sync nobody may go on in that segment. The new one is durable before anybody is told that it failed for sure. */
  protected async abandon(tip: Tip, cause: unknown): Promise<void> {
    try {
      await this.startSegment(tip);
    } catch {
      if (isHoldfastError(cause, "DISK_FULL") && (await this.#tryToVoid(tip))) return;
      throw outcomeUnknown(segmentPath(this.place.directory, tip.segment), cause);
    }
  }

  /**
   * A disk that stays full has no room for another segment, but the first byte behind the tip can be made one with which no line begins. False when even that failed. The next
   * writer finds something that is neither line nor room, and goes on in another segment.
   */
  async #tryToVoid(tip: Tip): Promise<boolean> {
    try {
      const file = await this.segment(tip.segment);
      if ((await file.stat()).size > tip.length) {
        await file.write(tip.length, voided);
        await file.sync();
      }
      await this.publishHead(tip);
      return true;
    } catch {
      // What failed first is what the caller has to know.
      return false;
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

  /**
   * Of this boot by its id, or because it was written while this process lives: then there was no restart since, whatever the writer's boot id is. The id alone does not tell that the file system has
   * not gone away and come back in this boot: then lines that were not synced are gone, and a head that tells of them may have stayed.
   */
  #isBelieved(head: Head): boolean {
    const { bootId } = this.place;
    const isOfThisBoot = head.boot === bootId && isKnownBoot(bootId) && head.isSynced;
    return isOfThisBoot || (this.#first !== undefined && head !== this.#first.head);
  }
}

function isBefore(one: Tip, other: Tip): boolean {
  return one.segment < other.segment || (one.segment === other.segment && one.length < other.length);
}

class LocalTenure implements Tenure {
  readonly #publisher: LocalPublisher;
  published: Tip;

  constructor(publisher: LocalPublisher, tip: Tip) {
    this.#publisher = publisher;
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
      await this.#publisher.publishHead(next);
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
