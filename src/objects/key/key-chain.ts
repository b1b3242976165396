// KeyChain: the entries of one key, numbered without gaps, each number won once and without a lock.
//
// A file is staged once, and linked under the number after the newest one. That link is the
// compare-and-swap. The first slot of a key stands for all of them: it is removed before any other,
// and never made again. So a link counts if the first slot is still there after it.
import { isStillThere, linkOnce, outcomeUnknown } from "../../durable/publish/publish.ts";
import { assertNotSwept } from "../../durable/publish/staging.ts";
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { Fifo } from "../../durable/wait/fifo.ts";
import { holdfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { KeyEntry } from "../model/entry.ts";
import { endKey, removeDying } from "./dying-key.ts";
import { findDroppedIds } from "./dropped-block.ts";
import { KeyHeadFinder, type KeyHead } from "./key-head.ts";
import { findIncarnation, KeyNames } from "./key-names.ts";
import type { KeyPlace, Placed, StagedEntry } from "./key-place.ts";
import { placeDirectory } from "./prepared-directory.ts";

/** A race that is lost so often is no race any more. */
const attemptsMax = 1000;

/** An entry with the file that it was staged in. */
export interface Candidate extends StagedEntry {
  readonly entry: KeyEntry;
}

export interface AppendOptions {
  /**
   * Whether what `make` decides depends on the newest entry. Otherwise an older one will do on a
   * share: the link tells.
   */
  readonly isJudged?: boolean | undefined;
  /** Called before a life of the key begins: what is to know of it must know of it by then. */
  readonly announce?: ((incarnation: string) => Promise<void>) | undefined;
}

export class KeyChain {
  readonly names: KeyNames;
  protected readonly place: KeyPlace;
  readonly #finder: KeyHeadFinder;
  readonly #turns = new Fifo();
  /** Up to here this process has seen the names made durable, that of the key with them. */
  #durable: Placed | undefined;

  /** `onRewound` is called when entries that this process has seen are gone, and their key is not. */
  constructor(place: KeyPlace, directory: string, onRewound?: () => void) {
    this.names = new KeyNames(directory, place.slotsPerBlock);
    this.place = place;
    this.#finder = new KeyHeadFinder(place.staging.disk, this.names, () => {
      this.#durable = undefined;
      onRewound?.();
    });
  }

  /** The newest entry; undefined when there is no such key. */
  async findHead(): Promise<KeyHead | undefined> {
    const found = await this.#finder.find();
    return found === "dying" || found?.entry.kind === "closed" ? undefined : found;
  }

  /**
   * Adds the entry that `make` derives from the newest one, or nothing when it gives undefined;
   * "again" asks for the newest one anew.
   * `make` may be called several times; it may give the same file again, and one that it does not
   * give again it discards itself. When it throws, nothing is added. What is returned is durable,
   * and its number is won for good. OUTCOME_UNKNOWN when an answer was lost, or when the key was
   * removed at the same moment.
   */
  async append(
    make: (head: KeyHead | undefined) => Promise<Candidate | undefined | "again">,
    { isJudged = true, announce }: AppendOptions = {},
  ): Promise<KeyHead | undefined> {
    await this.#turns.take();
    try {
      for (let attempt = 0; attempt < attemptsMax; attempt++) {
        const head = await (isJudged ? this.#finder.find() : this.#finder.findToLink());
        if (head === "dying") {
          await this.removeDying();
          continue;
        }
        if (head !== undefined && this.isOver(head)) {
          await this.#end(head);
          continue;
        }
        const candidate = await make(head);
        if (candidate === undefined) return undefined;
        if (candidate === "again") continue;
        const placed =
          head === undefined ? await this.#create(candidate, announce) : await this.#follow(head, candidate);
        if (placed === undefined) continue;
        const { entry, proof } = candidate;
        const added = { ...placed, entry, bodyAt: proof.length };
        this.#finder.remember(added);
        return added;
      }
    } finally {
      this.#turns.give();
    }
    const path = this.names.directory;
    const message = `${path}: lost the race for the next entry ${attemptsMax} times. Nothing was written: try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  /**
   * Removes the key if `make` gives its last entry. False when the key has versions, or is gone.
   */
  async close(make: (head: KeyHead) => Promise<Candidate | undefined | "again">): Promise<boolean> {
    const closed = await this.append(async (head) => (head === undefined ? undefined : await make(head)));
    if (closed === undefined) return false;
    await this.#end(closed);
    return true;
  }

  /** Nothing comes behind the last entry. */
  protected isOver({ entry }: KeyHead): boolean {
    return entry.kind === "closed";
  }

  /** Random, so that no name of the key is ever made again after it was removed. */
  protected newIncarnation(): string {
    return randomName(this.place.staging.random.bytes(16));
  }

  protected async removeDying(): Promise<void> {
    this.#finder.forget();
    await removeDying(this.place.staging.disk, this.names);
  }

  protected async endKey(incarnation: string): Promise<void> {
    await endKey(this.place, this.names, incarnation);
  }

  async #end({ incarnation }: KeyHead): Promise<void> {
    this.#finder.forget();
    await this.endKey(incarnation);
  }

  /** A new key: its directory comes with its first slot. Undefined when another process has made it. */
  async #create(candidate: Candidate, announce: AppendOptions["announce"]): Promise<Placed | undefined> {
    const { sync } = this.place;
    const { directory } = this.names;
    const incarnation = this.newIncarnation();
    const name = this.names.nameOf(incarnation, 1);
    const isOurs = await placeDirectory(
      this.place,
      { target: directory, name, staged: candidate },
      {
        // Beside the preparation, and before the directory gets its place.
        before: async () => await announce?.(incarnation),
        onMissing: (error) => this.#makeShard(error),
      },
    );
    if (!isOurs) return undefined;
    await this.#settle(directory, () => sync(parentOf(directory), shardsOf(directory)));
    return (this.#durable = { incarnation, number: 1 });
  }

  /** The directory above the shard is never made here: without it there is no bucket. */
  async #makeShard(cause: unknown): Promise<void> {
    const { staging } = this.place;
    // On a local disk the rename has looked already: what was to be moved is there, so it was not swept.
    if (staging.disk.volume.kind !== "local") await assertNotSwept(staging, await staging.directory());
    try {
      await staging.disk.mkdir(parentOf(this.names.directory));
    } catch (error) {
      if (hasErrno(error, "ENOENT")) throw cause;
      if (!hasErrno(error, "EEXIST")) throw error;
    }
  }

  /** Undefined when another process has the number, or the key is another one by now. */
  async #follow(head: KeyHead, candidate: Candidate): Promise<Placed | undefined> {
    const { incarnation } = head;
    const number = head.number + 1;
    await this.makeDurable(head);
    const isWon = this.names.isFirst(number)
      ? await this.#beginBlock(incarnation, number, candidate)
      : await this.link(incarnation, number, candidate);
    if (isWon === undefined) {
      this.#finder.forget();
      return undefined;
    }
    if (!isWon) {
      await this.#finder.lost(head);
      return undefined;
    }
    const path = this.names.slotPath(incarnation, number);
    const isCounted = await this.#settle(path, async () => {
      await this.place.sync(this.#placeOf(incarnation, number));
      return await this.counts(incarnation, number);
    });
    if (!isCounted) return await this.#giveUp({ incarnation, number }, path, candidate);
    return (this.#durable = { incarnation, number });
  }

  /** Undefined when there is nothing any more to link into. */
  protected async link(incarnation: string, number: number, { temp, proof }: Candidate): Promise<boolean | undefined> {
    const { staging } = this.place;
    const path = this.names.slotPath(incarnation, number);
    try {
      return await linkOnce(staging.disk, temp, path, proof, { mayRepeat: true, isPrefix: true });
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
      // Also said when this process slept, and what it has staged was swept.
      await assertNotSwept(staging, parentOf(temp));
      return undefined;
    }
  }

  async #beginBlock(incarnation: string, number: number, candidate: Candidate): Promise<boolean | undefined> {
    const block = this.names.blockPath(incarnation, this.names.blockOf(number));
    try {
      const name = this.names.nameOf(incarnation, number);
      return await placeDirectory(this.place, { target: block, name, staged: candidate });
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
      await assertNotSwept(this.place.staging, parentOf(candidate.temp));
      return undefined;
    }
  }

  /**
   * Whether what was linked under this number counts: the key was not removed by then, nor the
   * block. Asked after the link.
   */
  protected async counts(incarnation: string, number: number): Promise<boolean> {
    const { staging } = this.place;
    const block = this.names.blockOf(number);
    if (block > 0 && !this.names.isFirst(number)) {
      const first = this.names.slotPath(incarnation, this.names.firstOf(block));
      if (!(await isStillThere(staging, first))) return false;
    }
    return await isStillThere(staging, this.names.slotPath(incarnation, 1));
  }

  /**
   * What does not count is taken away. A block that was dropped says whether the entry had counted
   * before. If it lies beside the first slot of another incarnation, it was linked when that one was
   * there already: it never counted. Otherwise it may have counted before the key was removed.
   */
  async #giveUp(placed: Placed, path: string, { entry }: Candidate): Promise<Placed | undefined> {
    const { disk } = this.place.staging;
    this.#finder.forget();
    const { directory } = this.names;
    const block = this.names.blockOf(placed.number);
    const ids = block > 0 ? await findDroppedIds(disk, { ...placed, names: this.names, block }) : undefined;
    if (ids?.includes(entry.id) === true) return placed;
    if (ids !== undefined) {
      await unlinkIfThere(disk, path);
      return undefined;
    }
    await disk.canOpen(directory);
    const names = await disk.list(directory).catch(emptyIfGone);
    const isVoid = parentOf(path) === directory && names.includes(path.slice(directory.length + 1));
    await unlinkIfThere(disk, path).catch((error: unknown) => {
      if (!hasErrno(error, "ESTALE")) throw error;
    });
    if (isVoid && findIncarnation(names) !== undefined) return undefined;
    throw outcomeUnknown(path, undefined);
  }

  /** What is built on must not be lost by a power cut when this is not (decision 2). */
  protected async makeDurable({ incarnation, number }: KeyHead): Promise<void> {
    const known = this.#durable?.incarnation === incarnation ? this.#durable : undefined;
    if (known !== undefined && number <= known.number) return;
    const { sync } = this.place;
    const { directory } = this.names;
    const block = this.names.blockPath(incarnation, this.names.blockOf(number));
    const isBlockKnown = known !== undefined && this.names.blockOf(known.number) === this.names.blockOf(number);
    const above = known === undefined ? [directory, parentOf(directory), shardsOf(directory)] : [directory];
    try {
      await sync(...new Set(isBlockKnown ? [block] : [block, ...above]));
      this.#durable = { incarnation, number };
    } catch (error) {
      // The key is gone: the link tells next.
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
  }

  /** The directory in which the name of a slot, or of the block that it begins, was made. */
  #placeOf(incarnation: string, number: number): string {
    const block = this.names.blockOf(number);
    return this.names.isFirst(number) ? this.names.directory : this.names.blockPath(incarnation, block);
  }

  /** A failure after the link says that it is not known whether the entry counts. */
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

/** The directory of all shards. */
function shardsOf(directory: string): string {
  return parentOf(parentOf(directory));
}

function emptyIfGone(error: unknown): string[] {
  if (hasErrno(error, "ENOENT", "ESTALE", "ENOTDIR")) return [];
  throw error;
}
