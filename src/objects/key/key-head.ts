// KeyHeadFinder: finds the newest entry of a key.
//
// On a local disk a process goes on by names from the entry that it knows, and lists the directory
// when it knows none. On a share names are listed, and what a listing does not show is looked for:
// it may be an old one.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { findSlot, isSlotThere, type SlotContent } from "./entry-file.ts";
import { numbersIn, type KeyNames } from "./key-names.ts";

/** Beyond so many entries since the one that is known a listing costs less. */
const stepsMax = 16;
/** A directory that changes at each of so many looks is not one of a key. */
const attemptsMax = 100;

export interface KeyHead extends SlotContent {
  readonly incarnation: string;
  readonly number: number;
}

/** "dying": its directory is there and its first slot is not, so nothing in it counts. */
export type FoundHead = KeyHead | "dying" | undefined;

export class KeyHeadFinder {
  readonly #disk: Disk;
  readonly #names: KeyNames;
  readonly #onRewound: () => void;
  #known: KeyHead | undefined;

  /** `onRewound` is called when an entry that this process remembers is gone. */
  constructor(disk: Disk, names: KeyNames, onRewound: () => void = () => undefined) {
    this.#disk = disk;
    this.#names = names;
    this.#onRewound = onRewound;
  }

  /** The newest entry at a moment during this call. */
  async find(): Promise<FoundHead> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const known = this.#known;
      const from = known !== undefined && (this.#isLocal || attempt === 0) ? known : await this.#list();
      if (from === "again") continue;
      if (from === undefined || from === "dying") {
        this.#known = undefined;
        return from;
      }
      const head = from === known || !this.#isLocal ? await this.#walk(from) : await this.#listed(from);
      this.#known = head;
      if (head !== undefined) return head;
    }
    const path = this.#names.directory;
    const message = `${path}: its newest entry could not be found in ${attemptsMax} looks. Try again later, or have it verified.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  /**
   * An entry that was the newest once, to link behind. On a share it is not looked for anew: a
   * wrong one costs a lost race.
   */
  async findToLink(): Promise<FoundHead> {
    if (this.#isLocal) return await this.find();
    if (this.#known !== undefined) return this.#known;
    const found = await this.#list();
    if (found === "again") return await this.find();
    this.#known = found === "dying" ? undefined : found;
    return found;
  }

  /** This process has just put it there. */
  remember(head: KeyHead): void {
    this.#known = head;
  }

  forget(): void {
    this.#known = undefined;
  }

  /** Another process has the number after `head`. */
  async lost(head: KeyHead): Promise<void> {
    this.#known = head;
    if (this.#isLocal) return;
    const number = head.number + 1;
    const taken = await findSlot(this.#disk, this.#names.slotPath(head.incarnation, number));
    this.#known = taken && { ...taken, incarnation: head.incarnation, number };
  }

  get #isLocal(): boolean {
    return this.#disk.volume.kind === "local";
  }

  /** What a local disk lists is what is there. A first slot was opened after the listing: its key is there, too. */
  async #listed(head: KeyHead): Promise<KeyHead | undefined> {
    return head.number === 1 ? head : await this.#stillOpen(head);
  }

  /** Undefined when a listing has to tell. */
  async #walk(from: KeyHead): Promise<KeyHead | undefined> {
    let head = from;
    for (let step = 0; ; step++) {
      const number = head.number + 1;
      if (this.#names.isFirst(number)) {
        // A block that was dropped keeps its directory: if there is none, there never was one.
        const block = this.#names.blockPath(head.incarnation, this.#names.blockOf(number));
        if (await this.#isThere(block)) return undefined;
        break;
      }
      const path = this.#names.slotPath(head.incarnation, number);
      // On a share the look is what makes an absence believed. On a local disk it costs less than an
      // open that fails, and in most cases nothing is there.
      if (!(await this.#isThere(path))) break;
      const next = await findSlot(this.#disk, path);
      if (next === undefined) break;
      if (step >= stepsMax) return undefined;
      head = { ...next, incarnation: head.incarnation, number };
    }
    if (head === from && !(await this.#isAsRemembered(head))) {
      this.#onRewound();
      return undefined;
    }
    return await this.#stillOpen(head);
  }

  /**
   * False when the entry that this process remembers is gone and its key is not: an older copy of the
   * folder was put in its place. What was linked behind it would lie behind a gap. Asked on a local disk
   * only, where it costs little.
   */
  async #isAsRemembered({ incarnation, number }: KeyHead): Promise<boolean> {
    return !this.#isLocal || number === 1 || (await this.#isThere(this.#names.slotPath(incarnation, number)));
  }

  /**
   * Asked after the absence of the next slot, not before it: slots are removed only when the first
   * one of their block is gone, so the number was free because it was never taken. Undefined when the
   * block is not there any more.
   */
  async #stillOpen(head: KeyHead): Promise<KeyHead | undefined> {
    const { incarnation, number } = head;
    const block = this.#names.blockOf(number);
    if (block > 0 && !(await this.#isThere(this.#names.slotPath(incarnation, this.#names.firstOf(block)))))
      return undefined;
    return (await this.#isThere(this.#names.slotPath(incarnation, 1))) ? head : undefined;
  }

  async #isThere(path: string): Promise<boolean> {
    return await isSlotThere(this.#disk, path);
  }

  async #list(): Promise<FoundHead | "again"> {
    const { directory } = this.#names;
    // Makes the client of a share ask for the directory anew.
    if (!this.#isLocal) await this.#disk.canOpen(directory);
    const names = await this.#namesIn(directory);
    if (names === undefined) return undefined;
    const { incarnation, number, block } = this.#names.readListing(names);
    if (incarnation === undefined) return "dying";
    const highest = block === 0 ? number : await this.#highestIn(this.#names.blockPath(incarnation, block));
    if (highest === undefined) return "again";
    const found = await findSlot(this.#disk, this.#names.slotPath(incarnation, highest));
    return found === undefined ? "again" : { ...found, incarnation, number: highest };
  }

  async #highestIn(block: string): Promise<number | undefined> {
    if (!this.#isLocal) await this.#disk.canOpen(block);
    const numbers = numbersIn((await this.#namesIn(block)) ?? []);
    return numbers.length === 0 ? undefined : Math.max(...numbers);
  }

  async #namesIn(directory: string): Promise<string[] | undefined> {
    try {
      return await this.#disk.list(directory);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE", "ENOTDIR")) return undefined;
      throw error;
    }
  }
}
