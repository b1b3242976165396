// Chain: a directory of numbered records. NumberRace decides who wins a number; the chain encodes
// the record and reads the newest.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { findSlotNumber, slotName } from "../../format/name.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { PublishOptions } from "../publish/publish.ts";
import { getRecord } from "../publish/record-file.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";
import { NumberRace } from "./number-race.ts";

/** A process that loses this many races in a row reports RESOURCE_BUSY. */
const attemptsMax = 1000;

/** An entry of a chain. */
export interface ChainEntry<T> {
  /** Number of the entry: 1 for the first one, without gaps. */
  readonly number: number;
  /** The id of the append that added it. */
  readonly id: string;
  /** The value of the entry. */
  readonly body: T;
}

/**
 * A directory of numbered records, appended without a lock: of many appends that compete for a
 * number, one wins it.
 */
export class Chain<T> {
  readonly #staging: Staging;
  readonly #directory: string;
  readonly #kind: RecordKind<ChainEntry<T>>;
  readonly #sync: boolean;
  readonly #race: NumberRace;
  /** The newest entry that this process knows; never moves back. */
  #known: ChainEntry<T> | undefined;

  /** `directory` must exist. */
  constructor(staging: Staging, directory: string, kind: RecordKind<T>, { sync = true }: PublishOptions = {}) {
    this.#staging = staging;
    this.#directory = directory;
    this.#kind = entryKind(kind);
    this.#sync = sync;
    this.#race = new NumberRace(staging.disk, (number) => this.#path(number), { sync });
  }

  /**
   * Appends the record that `make` derives from the newest one (compare-and-swap); nothing if it
   * returns undefined. `make` may be called several times. The returned entry is durable, and its
   * number is won permanently. A crash leaves the entry complete or absent.
   *
   * `id` must be new with each append. Throws OUTCOME_UNKNOWN (check whether `id` is in the chain),
   * RESOURCE_BUSY after 1,000 lost races, CORRUPT and NEWER_FORMAT.
   */
  async append(
    id: string,
    make: (newest: ChainEntry<T> | undefined) => T | undefined,
  ): Promise<ChainEntry<T> | undefined> {
    let newest = this.#known ?? (await this.last());
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const body = make(newest);
      if (body === undefined) {
        // The caller acts on a refusal, so the entry must be read now, not remembered.
        const seen = await this.last();
        if (seen?.number === newest?.number) return undefined;
        newest = seen;
        continue;
      }
      const entry = { number: (newest?.number ?? 0) + 1, id, body };
      // The race itself shows if the number is free. A check before it would only add an answer that may be stale.
      if (await this.#put(entry)) return this.#remember(entry);
      this.#remember(await this.get(entry.number));
      newest = await this.last();
    }
    const message = `${this.#directory}: lost the race for the next number ${attemptsMax} times. Nothing was written: try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: this.#directory, blockedBy: [], worthWaiting: true });
  }

  async #put(entry: ChainEntry<T>): Promise<boolean> {
    const proof = encodeRecord(this.#kind, entry);
    const temp = await stage(this.#staging, proof, { sync: this.#sync });
    try {
      return await this.#race.win(entry.number, { temp, proof });
    } catch (error) {
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      const path = this.#path(entry.number);
      const message = `The reply was lost, so the append ${entry.id} may or may not be number ${entry.number}. Read that number before you retry.`;
      throw holdfastError("OUTCOME_UNKNOWN", message, { path }, error);
    } finally {
      await discard(this.#staging, temp);
    }
  }

  /**
   * Makes this entry and all entries before it durable. Their authors may not have synced them yet, and work that
   * builds on an entry must not outlive it.
   */
  async makeDurable(number: number): Promise<void> {
    await this.#race.makeDurable(number);
  }

  /**
   * Returns the newest visible entry, or undefined if there is none. On a network mount it may be
   * outdated; an append finds out. Throws CORRUPT and NEWER_FORMAT.
   */
  async last(): Promise<ChainEntry<T> | undefined> {
    // One listing returns all names. Probing name by name would leave "absent" entries in the
    // caches of a network mount.
    if (this.#known !== undefined && this.#staging.disk.volume.kind === "local") return await this.#after(this.#known);
    const newest = await this.#highestNumber();
    if (newest <= (this.#known?.number ?? 0)) return this.#known;
    return await this.#after(await this.get(newest));
  }

  /**
   * Returns the highest number in a list of the directory, even if its entry cannot be read; 0 if
   * there is none.
   */
  async lastNumber(): Promise<number> {
    return Math.max(this.#known?.number ?? 0, await this.#highestNumber());
  }

  /** Returns the bytes of the file of an entry, to replace a damaged one. */
  encode(entry: ChainEntry<T>): Uint8Array {
    return encodeRecord(this.#kind, entry);
  }

  /** Returns the path of the entry with this number. */
  pathOf(number: number): string {
    return this.#path(number);
  }

  /**
   * Returns the entry with this number. Throws CORRUPT, NEWER_FORMAT, and IO_ERROR (ENOENT) if
   * there is none.
   */
  async get(number: number): Promise<ChainEntry<T>> {
    const path = this.#path(number);
    const entry = await getRecord(this.#staging.disk, this.#kind, path);
    if (entry.number === number) return entry;
    const message = `${path} contains number ${entry.number}: it was copied or renamed. Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  /** Returns the entry with this number, or undefined if there is none. Throws CORRUPT and NEWER_FORMAT. */
  async find(number: number): Promise<ChainEntry<T> | undefined> {
    try {
      return await this.get(number);
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return undefined;
      throw error;
    }
  }

  /** Follows the entries after `entry` until there is no next one. */
  async #after(entry: ChainEntry<T>): Promise<ChainEntry<T>> {
    let newest = entry;
    if (this.#staging.disk.volume.kind === "local")
      for (let next = await this.find(newest.number + 1); next !== undefined; next = await this.find(newest.number + 1))
        newest = next;
    return this.#remember(newest);
  }

  #remember(entry: ChainEntry<T>): ChainEntry<T> {
    if (entry.number >= (this.#known?.number ?? 0)) this.#known = entry;
    return entry;
  }

  async #highestNumber(): Promise<number> {
    let highest = 0;
    // A loop, not `Math.max(...names)`: a chain never deletes, and a call cannot take a hundred
    // thousand arguments. Foreign files are ignored.
    for (const name of await this.#staging.disk.list(this.#directory))
      highest = Math.max(highest, findSlotNumber(name) ?? 0);
    return highest;
  }

  #path(number: number): string {
    return `${this.#directory}/${slotName(number)}`;
  }
}

function entryKind<T>(kind: RecordKind<T>): RecordKind<ChainEntry<T>> {
  const { formatOf, newestFormat } = kind;
  return {
    kind: kind.kind,
    ...(formatOf === undefined ? {} : { formatOf: ({ body }: ChainEntry<T>) => formatOf(body) }),
    ...(newestFormat === undefined ? {} : { newestFormat }),
    decode: (value) => {
      const { number, id, body } = objectOf(value);
      return { number: countOf(number), id: textOf(id), body: kind.decode(body) };
    },
  };
}
