// KeyHeadFinder finds the newest entry of a key.
//
// On a local disk, it opens the names that follow the last known entry, or lists the directory if
// it knows none. On a share, a listing may be stale, so it then also opens the names that follow
// the listed ones.
import { holdfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import { findNames, findSlotOrDamage, isSlotThere, type FoundSlot } from "./entry-file.ts";
import { numbersIn, type KeyNames } from "./key-names.ts";

/** If more entries than this have followed the known one, listing is cheaper. */
const stepsMax = 16;
/** How often the search is repeated if the directory changes meanwhile. */
const attemptsMax = 100;

/** The newest entry of a key. It may be damaged. */
export interface KeyHead extends FoundSlot {
  readonly incarnation: string;
  readonly number: number;
}

/** "dying": the directory exists without a first slot, so nothing in it counts. */
export type FoundHead = KeyHead | "dying" | undefined;

export class KeyHeadFinder {
  readonly #disk: Disk;
  readonly #names: KeyNames;
  readonly #onRewound: () => void;
  #known: KeyHead | undefined;
  /** True if another process is known to have won the number after the remembered entry. */
  #hasLost = false;

  /** `onRewound` is called if an entry that this process remembers is gone. */
  constructor(disk: Disk, names: KeyNames, onRewound: () => void = () => undefined) {
    this.#disk = disk;
    this.#names = names;
    this.#onRewound = onRewound;
  }

  /** Returns the entry that was the newest at some moment during this call. */
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
      this.#remember(head);
      if (head !== undefined) return head;
    }
    const path = this.#names.directory;
    const message = `${path}: its newest entry could not be found in ${attemptsMax} attempts. Try again later, or verify the store.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  /**
   * Returns an entry to link after, which was the newest at some time. Does not search for a newer
   * one: if there is one, the link fails, at the cost of a lost race. On a local disk, checks that
   * the entry and its key exist: that is cheap, and a link into a key that is being removed would
   * have an unknown outcome.
   */
  async findToLink(): Promise<FoundHead> {
    const known = this.#known;
    if (this.#isLocal) {
      const isUsable = known !== undefined && !this.#hasLost && (await this.#isAsRemembered(known));
      if (!isUsable || !(await this.#isThere(this.#names.slotPath(known.incarnation, 1)))) return await this.find();
    }
    if (known !== undefined) return known;
    const found = await this.#list();
    if (found === "again") return await this.find();
    this.#remember(found === "dying" ? undefined : found);
    return found;
  }

  /** Called after this process added the entry. */
  remember(head: KeyHead): void {
    this.#remember(head);
  }

  forget(): void {
    this.#known = undefined;
  }

  /** Called if another process won the number after `head`. */
  async lost(head: KeyHead): Promise<void> {
    this.#known = head;
    this.#hasLost = true;
    if (this.#isLocal) return;
    const number = head.number + 1;
    const taken = await findSlotOrDamage(this.#disk, this.#names.slotPath(head.incarnation, number));
    this.#remember(taken && { ...taken, incarnation: head.incarnation, number });
  }

  /** Does not remember a damaged entry, which may be restored before the next call. */
  #remember(head: KeyHead | undefined): void {
    this.#hasLost = false;
    this.#known = head?.entry.kind === "damaged" ? undefined : head;
  }

  get #isLocal(): boolean {
    return this.#disk.volume.kind === "local";
  }

  /**
   * A listing of a local disk is current. The slot was opened after the listing; if it is the first
   * slot, that proves that the key exists.
   */
  async #listed(head: KeyHead): Promise<KeyHead | undefined> {
    return head.number === 1 ? head : await this.#stillOpen(head);
  }

  /** Opens the slots after a known entry, one by one. Returns undefined if a listing is needed. */
  async #walk(from: KeyHead): Promise<KeyHead | undefined> {
    let head = from;
    for (let step = 0; ; step++) {
      const number = head.number + 1;
      if (this.#names.isFirst(number)) {
        // A dropped block keeps its directory. If there is no directory, the block never existed.
        const block = this.#names.blockPath(head.incarnation, this.#names.blockOf(number));
        if (await this.#isThere(block)) return undefined;
        break;
      }
      const path = this.#names.slotPath(head.incarnation, number);
      // On a share, only this check proves that the entry does not exist. On a local disk it is
      // cheaper than a failing open, and usually there is no next entry.
      if (!(await this.#isThere(path))) break;
      const next = await findSlotOrDamage(this.#disk, path);
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
   * Returns false if the remembered entry is gone although its key exists: the folder was replaced
   * by an older copy. An entry linked after it would leave a gap. Checked only on a local disk,
   * where it is cheap.
   */
  async #isAsRemembered({ incarnation, number }: KeyHead): Promise<boolean> {
    return !this.#isLocal || number === 1 || (await this.#isThere(this.#names.slotPath(incarnation, number)));
  }

  /**
   * Returns `head` if its block and its key still exist, otherwise undefined. Call it after the
   * next slot was found missing: slots are removed only after the first slot of their block, so if
   * that still exists, the next number was never taken.
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
    // Forces the client of a share to revalidate its cached directory.
    if (!this.#isLocal) await this.#disk.canOpen(directory);
    const names = await findNames(this.#disk, directory);
    if (names === undefined) return undefined;
    const { incarnation, number, block } = this.#names.readListing(names);
    if (incarnation === undefined) return "dying";
    const highest = block === 0 ? number : await this.#highestIn(this.#names.blockPath(incarnation, block));
    if (highest === undefined) return "again";
    const found = await findSlotOrDamage(this.#disk, this.#names.slotPath(incarnation, highest));
    return found === undefined ? "again" : { ...found, incarnation, number: highest };
  }

  async #highestIn(block: string): Promise<number | undefined> {
    if (!this.#isLocal) await this.#disk.canOpen(block);
    const numbers = numbersIn((await findNames(this.#disk, block)) ?? []);
    return numbers.length === 0 ? undefined : Math.max(...numbers);
  }
}
