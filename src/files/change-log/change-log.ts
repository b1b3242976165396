// ChangeLog: every change of a tree, numbered, announced before it is committed. So none is ever missing; an entry
// whose commit never came is met with nothing new.
import { NumberRace } from "../../durable/chain/number-race.ts";
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import { getRecord } from "../../durable/publish/record-file.ts";
import { assertNotSwept, discard, stage, type Staging } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { findSlotNumber } from "../../format/name.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Change } from "../model/file-tree.ts";
import type { FilesLayout } from "../tree/layout.ts";
import { changeKind, type NewChange } from "./change-record.ts";

/** A race that is lost so often is no race any more. */
const attemptsMax = 10_000;
/** After so many lost numbers in a row the end is looked for anew: many processes append at once. */
const lossesPerLook = 4;

/** A change that has no number yet. */
export interface StagedChange {
  readonly change: NewChange;
  readonly temp: string;
  /** The content of the file. */
  readonly proof: Uint8Array;
}

export class ChangeLog {
  readonly #staging: Staging;
  readonly #layout: FilesLayout;
  readonly #race: NumberRace;
  /** Blocks that this process has made sure of. */
  readonly #blocks = new Set<string>();
  /** The highest number that this process knows to be taken. */
  #known = 0;

  constructor(staging: Staging, layout: FilesLayout) {
    this.#staging = staging;
    this.#layout = layout;
    this.#race = new NumberRace(staging.disk, (number) => layout.change(number));
  }

  /** Announces a change, durably. */
  async append(change: NewChange): Promise<Change> {
    const staged = await this.stage(change);
    try {
      return await this.announce(staged);
    } finally {
      await this.discard(staged);
    }
  }

  /** Writes a change down, durably, where no process sees it. To be discarded, also when it has been announced. */
  async stage(change: NewChange): Promise<StagedChange> {
    const id = randomName(this.#staging.random.bytes(16));
    const proof = encodeRecord(changeKind, { id, ...change });
    return { change, proof, temp: await stage(this.#staging, proof, { sync: true }) };
  }

  async discard({ temp }: StagedChange): Promise<void> {
    await discard(this.#staging, temp);
  }

  /** Durable when it resolves. To be called under the lock of the change, before its commit. */
  async announce({ change, temp, proof }: StagedChange): Promise<Change> {
    // The race itself tells whether other processes have appended since.
    let number = (this.#known > 0 ? this.#known : await this.last()) + 1;
    try {
      for (let attempt = 1; attempt <= attemptsMax; attempt++) {
        await this.#ensureBlock(number);
        if (await this.#race.win(number, { temp, proof })) {
          this.#remember(number);
          return { number, ...change };
        }
        this.#remember(number);
        number = (attempt % lossesPerLook === 0 ? await this.last() : number) + 1;
      }
    } catch (error) {
      // LOCK_LOST, if this process slept past its lease: then its temp file was swept.
      if (hasErrno(error, "ENOENT")) await assertNotSwept(this.#staging, parentOf(temp));
      throw error;
    }
    const path = this.#layout.changes;
    const message = `${path}: lost the race for the next number ${attemptsMax} times. Nothing was changed: try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  /** The highest number that can be seen, 0 for none. On a network mount it may be as old as a listing is there. */
  async last(): Promise<number> {
    const { disk } = this.#staging;
    if (this.#known > 0 && disk.volume.kind === "local") {
      // Of its own: other callers of this process look at the same time.
      let newest = this.#known;
      while (await disk.canOpen(this.#layout.change(newest + 1))) newest++;
      this.#remember(newest);
      return this.#known;
    }
    for (const name of await this.#names(this.#layout.changes)) {
      const before = this.#layout.findNumberBefore(name);
      // A directory is made after the one before it is full.
      if (before !== undefined) this.#remember(before);
    }
    for (const name of await this.#names(this.#layout.changeBlock(this.#known + 1)))
      this.#remember(findSlotNumber(name) ?? 0);
    return this.#known;
  }

  /**
   * Changes after `number`, in order and without a gap; empty when there are none yet. Not all of them: call it again
   * with the last one. CORRUPT, NEWER_FORMAT.
   */
  async readAfter(number: number, { limit = 100 }: { readonly limit?: number } = {}): Promise<Change[]> {
    const listed = await this.#listedAfter(number);
    const found: Change[] = [];
    for (let next = number + 1; found.length < limit && (listed === undefined || listed.has(next)); next++) {
      const change = await this.find(next);
      if (change === undefined) break;
      found.push(change);
    }
    const newest = found.at(-1)?.number;
    // What is read is acted on, and must not be taken back by a power cut.
    if (newest !== undefined) await this.#race.makeDurable(newest);
    return found;
  }

  async find(number: number): Promise<Change | undefined> {
    try {
      const { id: _id, ...change } = await getRecord(this.#staging.disk, changeKind, this.#layout.change(number));
      this.#remember(number);
      return { number, ...change };
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return undefined;
      throw error;
    }
  }

  /**
   * On a share only numbers that a listing shows are asked for: an absence that was asked for is remembered by the
   * client. Undefined on a local disk.
   */
  async #listedAfter(number: number): Promise<Set<number> | undefined> {
    if (this.#staging.disk.volume.kind === "local") return undefined;
    const names = await this.#names(this.#layout.changeBlock(number + 1));
    return new Set(names.map((name) => findSlotNumber(name) ?? 0));
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
    await ensureDirectory(this.#staging.disk, block);
    this.#blocks.add(block);
  }

  #remember(number: number): void {
    this.#known = Math.max(this.#known, number);
  }
}
