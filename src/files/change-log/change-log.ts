// ChangeLog: numbers every change of a tree and announces it before it is committed, so that no
// committed change is missing from the log. An announced entry without a commit produces no change.
import { NumberRace } from "../../durable/chain/number-race.ts";
import { ensureDirectory, parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { outcomeUnknown } from "../../durable/publish/publish.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import { assertNotSwept, discard, stage, type Staging } from "../../durable/publish/staging.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { findSlotNumber } from "../../format/name.ts";
import { randomName } from "../../format/id.ts";
import { decodeRecord, encodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Change } from "../model/file-tree.ts";
import { isDamagedRecord } from "../tree/damaged-record.ts";
import type { FilesLayout } from "../tree/layout.ts";
import { changeKind, changeOf, damagedChange, type NewChange, type ChangeAuthor } from "./change-record.ts";
import { Segments } from "./segment.ts";

/** A process that loses this often reports RESOURCE_BUSY. */
const attemptsMax = 10_000;
/** After losing this many numbers in a row, it searches for the end again: many processes are appending. */
const lossesPerLook = 4;

/** This many callers share a sync. */
const groupMax = 64;

/** Changes kept in memory. When this is exceeded, all of them are forgotten and read again. */
const rememberedMax = 10_000;

/** A change that has no number yet. */
export interface StagedChange {
  readonly record: { readonly id: string } & NewChange & Partial<ChangeAuthor>;
  readonly temp: string;
  /** The bytes of the record's file. */
  readonly proof: Uint8Array;
}

export interface ChangeLogOptions {
  /** Returns who announces a change, and when. */
  readonly sign?: (() => Promise<ChangeAuthor>) | undefined;
  /** Called when this process has begun a block: older blocks may now be folded. */
  readonly onNewBlock?: (() => void) | undefined;
}

/** A caller waiting for a number. */
interface WaitingChange {
  readonly staged: StagedChange;
  readonly resolve: (change: Change) => void;
  readonly reject: (error: unknown) => void;
}

export class ChangeLog {
  readonly #staging: Staging;
  readonly #layout: FilesLayout;
  readonly #race: NumberRace;
  readonly #segments: Segments;
  readonly #sign: (() => Promise<ChangeAuthor>) | undefined;
  readonly #onNewBlock: (() => void) | undefined;
  /** Blocks that this process knows to exist. */
  readonly #blocks = new Set<string>();
  /** The highest number that this process knows to be taken. */
  #known = 0;
  /**
   * The number and record id of one change that this process has seen. The id never changes while
   * the log is the same one.
   */
  #tip: { readonly number: number; readonly id: string } | undefined;
  /**
   * Changes that were read or announced, with their ids. A record never changes, so they stay
   * valid.
   */
  readonly #remembered = new Map<number, { readonly id: string; readonly change: Change }>();

  /**
   * True until a listing has found the end. Probing names alone stops at a gap, and at a block that
   * was folded since.
   */
  #mustList: boolean;
  readonly #waiting: WaitingChange[] = [];
  #isAnnouncing = false;

  constructor(staging: Staging, layout: FilesLayout, { sign, onNewBlock }: ChangeLogOptions = {}) {
    this.#staging = staging;
    this.#layout = layout;
    // On a share, `last` always lists.
    this.#mustList = staging.disk.volume.kind === "local";
    this.#segments = new Segments(staging.disk, layout);
    this.#sign = sign;
    this.#onNewBlock = onNewBlock;
    this.#race = new NumberRace(staging.disk, (number) => layout.change(number));
  }

  /** Announces a change; durable when it resolves. */
  async append(change: NewChange): Promise<Change> {
    const staged = await this.stage(change);
    try {
      return await this.announce(staged);
    } finally {
      await this.discard(staged);
    }
  }

  /**
   * Writes the record of a change durably where no other process sees it. The caller must discard
   * it, also after announcing it.
   */
  async stage(change: NewChange): Promise<StagedChange> {
    const id = randomName(this.#staging.random.bytes(16));
    const record = { id, ...change, ...(await this.#sign?.()) };
    const proof = encodeRecord(changeKind, record);
    return { record, proof, temp: await stage(this.#staging, proof, { sync: true }) };
  }

  async discard({ temp }: StagedChange): Promise<void> {
    await discard(this.#staging, temp);
  }

  /**
   * Announces a staged change. When it resolves, this number and all before it are durable. Waiting
   * callers share a sync of the directory. Call it under the lock of the change, before its commit.
   * Throws CLOSED.
   */
  async announce(staged: StagedChange): Promise<Change> {
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ staged, resolve, reject });
      if (!this.#isAnnouncing) void this.#announceWaiting();
    });
  }

  async #announceWaiting(): Promise<void> {
    this.#isAnnouncing = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, groupMax);
      await this.#announceTogether(group).catch((error: unknown) => group.forEach(({ reject }) => reject(error)));
    }
    this.#isAnnouncing = false;
  }

  /** Takes consecutive numbers for the group, then makes all of them durable. */
  async #announceTogether(group: readonly WaitingChange[]): Promise<void> {
    await this.mustBeSame();
    // Losing the race shows that other processes have appended since.
    let last = this.#known > 0 && !this.#mustList ? this.#known : await this.last();
    await this.#makeDurable(last);
    const taken: (WaitingChange & { readonly number: number })[] = [];
    for (const call of group)
      try {
        last = await this.#take(call.staged, last);
        taken.push({ ...call, number: last });
      } catch (error) {
        call.reject(error);
      }
    const [first] = taken;
    if (first === undefined) return;
    if (await this.#mayBeFolded(first.number)) {
      // The names were free only because their block is folded: this process slept after it
      // searched for the end.
      for (const { number } of taken) await unlinkIfThere(this.#staging.disk, this.#layout.change(number));
      this.#mustList = true;
      this.#waiting.unshift(...taken);
      return;
    }
    const { id } = (taken.at(-1) ?? first).staged.record;
    if (last >= this.#known) this.#tip = { number: last, id };
    try {
      await this.#race.makeDurable(last);
    } catch (error) {
      const isKnown = isHoldfastError(error, "UNSUPPORTED_DISK");
      for (const { number, reject } of taken)
        reject(isKnown ? error : outcomeUnknown(this.#layout.change(number), error));
      return;
    }
    for (const { number, staged, resolve } of taken) resolve(this.#keep(number, staged.record));
    if (taken.some(({ number }) => number === this.#layout.numbersOf(this.#layout.blockOf(number)).first))
      this.#onNewBlock?.();
  }

  /**
   * True if the block of this number is folded: then a successful link proves nothing. Checked
   * after the link, because folding removes no name before the segment exists. Not checked on a
   * share: `foldedAfterMs` is longer than a process there may take from the search for the end to
   * the link.
   */
  async #mayBeFolded(number: number): Promise<boolean> {
    const { disk } = this.#staging;
    return disk.volume.kind === "local" && (await disk.canOpen(this.#layout.changeSegment(number)));
  }

  /** Makes a number and all before it durable. A number in a segment already is. */
  async #makeDurable(number: number): Promise<void> {
    try {
      await this.#race.makeDurable(number);
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ESTALE") || (await this.#segments.findSurely(number)) === undefined) throw error;
    }
  }

  /** Takes the first free number after `last`, and returns it. It is not durable yet. */
  async #take({ temp, proof }: StagedChange, last: number): Promise<number> {
    let number = last + 1;
    try {
      for (let attempt = 1; attempt <= attemptsMax; attempt++) {
        await this.#ensureBlock(number);
        const isTaken = await this.#race.take(number, { temp, proof }).catch(async (error: unknown) => {
          if (!hasErrno(error, "ENOENT") || (await this.#segments.findSurely(number)) === undefined) throw error;
          this.#mustList = true;
          return false;
        });
        this.#remember(number);
        if (isTaken) return number;
        number = (attempt % lossesPerLook === 0 || this.#mustList ? await this.last() : number) + 1;
      }
    } catch (error) {
      // Throws LOCK_LOST if this process slept past its lease: its temp file was swept.
      if (hasErrno(error, "ENOENT")) await assertNotSwept(this.#staging, parentOf(temp));
      throw error;
    }
    const path = this.#layout.changes;
    const message = `${path}: lost the race for the next number ${attemptsMax} times. Nothing was changed: try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  /**
   * Throws CLOSED if an older copy of the folder has replaced the log that this process has read.
   * This process then remembers another tree and index, and its next number would leave a gap. On a
   * share, it notices this only when its client does.
   */
  async mustBeSame(): Promise<void> {
    const number = this.#known;
    if (number === 0) return;
    const id = await this.#findId(number);
    if (id === undefined || (this.#tip?.number === number && this.#tip.id !== id)) throw this.replaced(number);
    this.#tip = { number, id };
  }

  /** Returns the highest visible number, 0 for none. On a share it may be as stale as a listing. */
  async last(): Promise<number> {
    const { disk } = this.#staging;
    if (this.#known > 0 && disk.volume.kind === "local" && !this.#mustList) {
      // A local variable: other callers of this process search at the same time.
      let newest = this.#known;
      while (await disk.canOpen(this.#layout.change(newest + 1))) newest++;
      this.#remember(newest);
      // After a folded block, a free name does not mean the end of the log.
      const isInside = this.#layout.blockOf(newest + 1) === this.#layout.blockOf(newest);
      if (isInside && (await disk.canOpen(this.#layout.change(newest)))) return this.#known;
    }
    for (const name of await this.#names(this.#layout.changes)) {
      const before = this.#layout.findNumberBefore(name);
      // A block's directory is created only when the block before it is full.
      if (before !== undefined) this.#remember(before);
    }
    for (const name of await this.#names(this.#layout.changeBlock(this.#known + 1)))
      this.#remember(findSlotNumber(name) ?? 0);
    this.#mustList = false;
    return this.#known;
  }

  /**
   * Returns changes after `number`, in order and without a gap; empty if there are none yet.
   * Returns at most `limit`: call it again with the last number. Throws NEWER_FORMAT and CLOSED.
   */
  async readAfter(number: number, { limit = 100 }: { readonly limit?: number } = {}): Promise<Change[]> {
    const listed = await this.#listedAfter(number);
    const found: Change[] = [];
    for (let next = number + 1; found.length < limit && (listed === undefined || next <= listed); next++) {
      const change = (await this.find(next)) ?? (await this.#findGap(next));
      if (change === undefined) break;
      found.push(change);
    }
    const newest = found.at(-1)?.number;
    // The caller acts on these changes: a power cut must not remove them.
    if (newest !== undefined) await this.#makeDurable(newest);
    // A follower past the end of a restored log would wait for numbers that are not the next ones.
    else if (number > 0) await this.mustBeSame();
    return found;
  }

  /**
   * Returns the change with this number. A damaged record counts as a change of the whole tree, and
   * affects no other. Throws NEWER_FORMAT.
   */
  async find(number: number): Promise<Change | undefined> {
    const remembered = this.#remembered.get(number);
    if (remembered !== undefined) return remembered.change;
    try {
      const record = await this.findRecord(number);
      if (record === undefined) return undefined;
      this.#remember(number);
      if (number > (this.#tip?.number ?? 0)) this.#tip = { number, id: record.id };
      return this.#keep(number, record);
    } catch (error) {
      if (!isDamagedRecord(error)) throw error;
      this.#remember(number);
      return { number, ...damagedChange((error as Error).message) };
    }
  }

  /**
   * Reads a record from its block, or from the segment of the block; undefined if it is in neither.
   * Throws CORRUPT and NEWER_FORMAT.
   */
  async findRecord(number: number): Promise<StagedChange["record"] | undefined> {
    const { disk } = this.#staging;
    const path = this.#layout.changeSegment(number);
    // Only blocks before the newest one may be folded.
    const isOld = this.#layout.blockOf(number) < this.#layout.blockOf(this.#known);
    const bytes = isOld ? (await this.#segments.findUnlessSeen(number))?.get(number) : undefined;
    if (bytes !== undefined) return decodeRecord(changeKind, bytes, path);
    const single = await findRecord(disk, changeKind, this.#layout.change(number)).catch(unlessStale);
    if (single !== undefined) return single;
    // Skipped at the end of the log, where every wait for the next change would read the segment.
    const mayBeFolded = isOld || (await this.#isBlockGone(number));
    const records = mayBeFolded ? await this.#segments.findSurely(number) : undefined;
    if (records === undefined) return undefined;
    // A folded block is followed by at least two others.
    if (number >= this.#known) this.#mustList = true;
    const found = records.get(number);
    if (found !== undefined) return decodeRecord(changeKind, found, path);
    const message = `Change ${number} in ${path} is damaged. Restore the file from a backup, or run \`verify\` with \`repair\`.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  async #isBlockGone(number: number): Promise<boolean> {
    return (
      this.#known >= number || this.#mustList || !(await this.#staging.disk.canOpen(this.#layout.changeBlock(number)))
    );
  }

  /**
   * Returns the id of the change: a different one if an older copy of the log continued from an
   * earlier number. "" for a damaged record; undefined if there is none. Throws NEWER_FORMAT.
   */
  async findId(number: number): Promise<string | undefined> {
    if ((await this.find(number)) === undefined) return undefined;
    return this.#remembered.get(number)?.id ?? "";
  }

  /**
   * True if the file system has this number, even if the client of a share remembers an absence.
   */
  async has(number: number): Promise<boolean> {
    if (number === 0) return true;
    try {
      await this.#staging.disk.look(this.#layout.change(number));
      return true;
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
      return (await this.#segments.findSurely(number)) !== undefined;
    }
  }

  /**
   * Returns the highest number that a listing of a share shows; undefined on a local disk. Higher
   * numbers must not be opened there, because the client would remember their absence.
   */
  async #listedAfter(number: number): Promise<number | undefined> {
    if (this.#staging.disk.volume.kind === "local") return undefined;
    const names = await this.#names(this.#layout.changeBlock(number + 1));
    const highest = names.reduce((newest, name) => Math.max(newest, findSlotNumber(name) ?? 0), 0);
    if (names.length > 0 || (await this.#segments.findSurely(number + 1)) === undefined) return highest;
    return this.#layout.numbersOf(this.#layout.blockOf(number + 1)).last;
  }

  /**
   * Reports a number before the end that has no record as damaged. It was deleted: each number is
   * durable before the next one is taken.
   */
  async #findGap(number: number): Promise<Change | undefined> {
    if ((await this.last()) <= number) return undefined;
    // A segment has it, or the client of a share remembered an absence.
    if (await this.has(number)) return await this.find(number);
    return { number, ...damagedChange(`Change ${number} is missing.`) };
  }

  async #names(directory: string): Promise<string[]> {
    try {
      return await this.#staging.disk.list(directory);
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return [];
      throw error;
    }
  }

  async #ensureBlock(number: number): Promise<void> {
    const block = this.#layout.changeBlock(number);
    if (this.#blocks.has(block)) return;
    // Syncing this block does not sync the one before it.
    await this.#makeDurable(number - 1);
    await ensureDirectory(this.#staging.disk, block);
    this.#blocks.add(block);
  }

  /**
   * Returns the id of the record with this number; undefined if there is none. For an unreadable or
   * repaired record it returns the id that this process remembers, or "".
   */
  async #findId(number: number): Promise<string | undefined> {
    // Only a reader of this change gets the error. The log continues for all others.
    const asKnown = this.#tip?.number === number ? this.#tip.id : "";
    try {
      const record = await this.findRecord(number);
      return record?.damaged === undefined ? record?.id : asKnown;
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return asKnown;
    }
  }

  /** Returns the CLOSED error for a log that was replaced. */
  replaced(number: number): Error {
    const message = `${this.#layout.changes} is not the change log that this process has read: change ${number} is gone, or another one. An older copy of the tree was put in its place. Close the tree, and open it again.`;
    return holdfastError("CLOSED", message, {});
  }

  #keep(number: number, record: StagedChange["record"]): Change {
    if (this.#remembered.size >= rememberedMax) this.#remembered.clear();
    const change = changeOf(number, record);
    this.#remembered.set(number, { id: record.id, change });
    return change;
  }

  #remember(number: number): void {
    this.#known = Math.max(this.#known, number);
  }
}

/** Ignores ESTALE: another machine has removed the file since this one opened it. */
function unlessStale(error: unknown): undefined {
  if (!hasErrno(error, "ESTALE")) throw error;
}
