// KeyChain holds the entries of one key. They are numbered without gaps, and each number is won
// once, without a lock. `append` repeats these steps until its entry has won a number:
//
//   newest    find the newest entry; remove the rest of a key that ended        key-head.ts
//   decide    the caller judges that entry: add, retry or nothing
//   stage     the record and a small body in one file, synced; again only
//             if the caller decides for another entry                           key-storage.ts
//   announce  a new key only: listings find it                                  listing/announcements.ts
//   sync      the newest entry, if another process linked it: a power cut
//             must not keep an entry and lose one before it (decision 2)
//   link      the file under the next number: the compare-and-swap.
//             A new key appears with its first slot in it                       key-slots.ts
//   sync      the directory of the link
//   check     that the first slot still exists: if not, the key was removed
//             before the link, which does not count
//
// A caller that lost the number repeats the decision, not the staging.
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { outcomeUnknown } from "../../durable/publish/publish.ts";
import { Fifo } from "../../durable/wait/fifo.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { KeyEntry } from "../model/entry.ts";
import { findDroppedIds } from "./dropped-block.ts";
import { removeDying } from "./dying-key.ts";
import { findNames } from "./entry-file.ts";
import { KeyHeadFinder, type KeyHead } from "./key-head.ts";
import { findIncarnation, type KeyNames } from "./key-names.ts";
import type { KeyStorage, NewEntry, KeySlot, StagedEntry } from "./key-storage.ts";
import { KeySlots } from "./key-slots.ts";

/** After this many lost races, something other than contention is wrong. */
const attemptsMax = 1000;

/** The entry that this call added, which was the newest. */
export type AddedHead = KeyHead & { readonly entry: KeyEntry };

/** A caller's decision on the newest entry of a key. */
export type EntryDecision =
  /** Append this entry after it. The same entry object is not staged again. */
  | { readonly add: NewEntry }
  /** Find the newest entry and decide again: the key was replaced while the caller read it. */
  | { readonly retry: true }
  /** Append nothing. */
  | { readonly nothing: true };

export const retry: EntryDecision = { retry: true };
export const nothing: EntryDecision = { nothing: true };

/** Judges the newest entry; undefined if there is no such key. Throws if nothing must be appended. */
export type DecideEntry = (newest: KeyHead | undefined) => Promise<EntryDecision>;

export interface AppendOptions {
  /**
   * True if the decision depends on the newest entry. If false, an outdated entry is sufficient on
   * a share: the link detects that it is outdated.
   */
  readonly isJudged?: boolean | undefined;
  /** Called before a new life of the key begins, so that the index knows the key before it exists. */
  readonly announce?: ((incarnation: string) => Promise<void>) | undefined;
}

export class KeyChain {
  readonly names: KeyNames;
  readonly #storage: KeyStorage;
  readonly #slots: KeySlots;
  readonly #finder: KeyHeadFinder;
  readonly #turns = new Fifo();

  /**
   * `onRewound` is called if entries that this process has read are gone although their key exists:
   * the folder was restored from an older copy.
   */
  constructor(
    storage: KeyStorage,
    directory: string,
    onRewound?: () => void,
    slots: KeySlots = new KeySlots(storage, directory),
  ) {
    this.names = slots.names;
    this.#storage = storage;
    this.#slots = slots;
    this.#finder = new KeyHeadFinder(storage.staging.disk, this.names, () => {
      slots.setDurable(undefined);
      onRewound?.();
    });
  }

  /** Returns the newest entry. Undefined if there is no such key. */
  async findHead(): Promise<KeyHead | undefined> {
    const found = await this.#finder.find();
    return found === "dying" || found?.entry.kind === "closed" ? undefined : found;
  }

  /**
   * Appends the entry that `decide` derives from the newest one. Returns undefined if `decide`
   * returned "nothing". The returned entry is durable, and its number is won permanently. Throws
   * OUTCOME_UNKNOWN if a reply was lost, or if the key was removed at the same moment.
   */
  async append(decide: DecideEntry, { isJudged = true, announce }: AppendOptions = {}): Promise<AddedHead | undefined> {
    let staged: StagedEntry | undefined;
    const unstage = async (): Promise<void> => {
      const { temp } = staged ?? {};
      staged = undefined;
      if (temp !== undefined) await this.#storage.unstage(temp);
    };
    await this.#turns.take();
    try {
      for (let attempt = 0; attempt < attemptsMax; attempt++) {
        const newest = await this.#findNewest(isJudged);
        if (newest === "ended") continue;
        const decision = await decide(newest);
        if ("nothing" in decision) return undefined;
        if ("retry" in decision) continue;
        const before = newest ?? this.#newLife(announce, isJudged);
        if (staged?.entry !== decision.add.entry) {
          await unstage();
          staged = await this.#storage.stage(decision.add);
        }
        const slot = await ("announced" in before ? this.#create(before, staged) : this.#follow(before, staged));
        if (slot === undefined) continue;
        const added = { ...slot, entry: staged.entry, bodyAt: staged.proof.length };
        // The first slot is the staged file itself, moved and not linked, so there is nothing to
        // discard.
        if (this.names.isFirst(slot.number)) staged = undefined;
        this.#finder.remember(added);
        return added;
      }
    } finally {
      this.#turns.give();
      await unstage();
    }
    const path = this.names.directory;
    const message = `${path}: lost the race for the next entry ${attemptsMax} times. Nothing was written: try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  /** Removes the key if `decide` adds its last entry. Returns false if the key has versions or is gone. */
  async close(decide: (newest: KeyHead) => Promise<EntryDecision>): Promise<boolean> {
    const closed = await this.append(async (newest) => (newest === undefined ? nothing : await decide(newest)));
    if (closed === undefined) return false;
    await this.#end(closed);
    return true;
  }

  /** "ended": the key had ended, and its rest is now removed. */
  async #findNewest(isJudged: boolean): Promise<KeyHead | "ended" | undefined> {
    const newest = await (isJudged ? this.#finder.find() : this.#finder.findToLink());
    if (newest === "dying") {
      this.#finder.forget();
      await removeDying(this.#storage.staging.disk, this.names);
      return "ended";
    }
    if (newest === undefined || !this.#slots.isLast(newest.entry)) return newest;
    await this.#end(newest);
    return "ended";
  }

  async #end({ incarnation }: KeyHead): Promise<void> {
    this.#finder.forget();
    await this.#slots.end(incarnation);
  }

  /**
   * If the entry will be appended in any case, its key is announced while it is staged. If it may
   * still be refused, it is announced later: a refused entry must leave no name in the index.
   */
  #newLife(announce: AppendOptions["announce"], isJudged: boolean): NewLife {
    const incarnation = this.#slots.newIncarnation();
    const start = async (): Promise<void> => await announce?.(incarnation);
    if (isJudged) return { incarnation, announced: start };
    const started = start();
    // Marks a rejection as handled: `#create` awaits the promise before the directory moves into
    // place, and reports the failure.
    started.catch(() => undefined);
    return { incarnation, announced: () => started };
  }

  /** Creates the key with this first entry. Returns undefined if another process created the key. */
  async #create({ incarnation, announced }: NewLife, staged: StagedEntry): Promise<KeySlot | undefined> {
    const slot = { incarnation, number: 1 };
    if (!(await this.#slots.create(incarnation, staged, announced))) return undefined;
    await this.#settle(this.names.directory, () => this.#slots.sync(slot));
    this.#slots.setDurable(slot);
    return slot;
  }

  /**
   * Links the entry after the newest one. Returns undefined if another process won the number, or
   * if the key was replaced.
   */
  async #follow(newest: KeyHead, staged: StagedEntry): Promise<KeySlot | undefined> {
    const slot = { incarnation: newest.incarnation, number: newest.number + 1 };
    await this.#slots.makeDurable(newest);
    const isWon = await this.#slots.win(slot, staged);
    if (isWon === undefined) {
      this.#finder.forget();
      return undefined;
    }
    if (!isWon) {
      await this.#finder.lost(newest);
      return undefined;
    }
    const path = this.names.slotPath(slot.incarnation, slot.number);
    const isCounted = await this.#settle(path, async () => {
      await this.#slots.sync(slot);
      return await this.#slots.counts(slot);
    });
    if (!isCounted) return await this.#giveUp(slot, path, staged);
    this.#slots.setDurable(slot);
    return slot;
  }

  /**
   * Handles an entry that does not count now, and finds out whether it counted before. The record
   * of a dropped block tells. If a first slot of another incarnation is beside the entry, the entry
   * was linked after that incarnation began, and never counted. Otherwise it may have counted
   * before the key was removed.
   */
  async #giveUp(slot: KeySlot, path: string, { entry }: StagedEntry): Promise<KeySlot | undefined> {
    const { disk } = this.#storage.staging;
    this.#finder.forget();
    const { directory } = this.names;
    const block = this.names.blockOf(slot.number);
    const ids = block > 0 ? await findDroppedIds(disk, { ...slot, names: this.names, block }) : undefined;
    if (ids?.includes(entry.id) === true) return slot;
    if (ids !== undefined) {
      await unlinkIfThere(disk, path);
      return undefined;
    }
    await disk.canOpen(directory);
    const names = (await findNames(disk, directory)) ?? [];
    const isVoid = parentOf(path) === directory && names.includes(path.slice(directory.length + 1));
    await unlinkIfThere(disk, path).catch((error: unknown) => {
      if (!hasErrno(error, "ESTALE")) throw error;
    });
    if (isVoid && findIncarnation(names) !== undefined) return undefined;
    throw outcomeUnknown(path, undefined);
  }

  /** Runs a step after the link. Reports a failure as OUTCOME_UNKNOWN, because the entry may count. */
  async #settle<T>(path: string, action: () => Promise<T>): Promise<T | false> {
    try {
      return await action();
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return false;
      this.#finder.forget();
      throw outcomeUnknown(path, error);
    }
  }
}

/** A new life of a key, which is about to begin. */
interface NewLife {
  readonly incarnation: string;
  /** Resolves when the life is announced. */
  readonly announced: () => Promise<void>;
}
