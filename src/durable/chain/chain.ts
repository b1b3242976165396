// Chain: a directory of numbered records. NumberRace says who wins a number; the chain makes its record and reads the newest.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { findSlotNumber, slotName } from "../../format/name.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { PublishOptions } from "../publish/publish.ts";
import { getRecord } from "../publish/record-file.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";
import { NumberRace } from "./number-race.ts";

/** A race that is lost so often is no race any more. */
const attemptsMax = 1000;

export interface ChainEntry<T> {
  /** From 1, without gaps. */
  readonly number: number;
  /** Of the append that made it. */
  readonly id: string;
  readonly body: T;
}

export class Chain<T> {
  readonly #staging: Staging;
  readonly #directory: string;
  readonly #kind: RecordKind<ChainEntry<T>>;
  readonly #sync: boolean;
  readonly #race: NumberRace;
  /** The newest entry that this process knows; never goes back. */
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
   * Adds the record that `make` derives from the newest one, or nothing when it returns undefined:
   * compare-and-swap without a lock. `make` may be called several times. What is returned is
   * durable, and its number is won for good. A crash leaves the entry whole or absent. `id` must be
   * new with each append; after OUTCOME_UNKNOWN, whether it is in the chain tells what happened.
   */
  async append(
    id: string,
    make: (newest: ChainEntry<T> | undefined) => T | undefined,
  ): Promise<ChainEntry<T> | undefined> {
    let newest = this.#known ?? (await this.last());
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const body = make(newest);
      if (body === undefined) {
        // A refusal is acted on: it must not rest on what this process happened to know.
        const seen = await this.last();
        if (seen?.number === newest?.number) return undefined;
        newest = seen;
        continue;
      }
      const entry = { number: (newest?.number ?? 0) + 1, id, body };
      // The race itself asks whether the number is free: looking first would only add an answer that
      // may be old.
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
      const message = `It is not known whether the append ${entry.id} is number ${entry.number}: the answer was lost. Look at that number before you repeat it.`;
      throw holdfastError("OUTCOME_UNKNOWN", message, { path }, error);
    } finally {
      await discard(this.#staging, temp);
    }
  }

  /**
   * Makes this entry and all before it durable: its author may not have synced it yet, and what is
   * built on it must not outlive it.
   */
  async makeDurable(number: number): Promise<void> {
    await this.#race.makeDurable(number);
  }

  /**
   * The newest entry that can be seen. On a network mount it may be old by as much as a listing is
   * there; an append finds out.
   */
  async last(): Promise<ChainEntry<T> | undefined> {
    // A listing tells all names at once. Going forward name by name would leave "absent" in the
    // caches of a network mount.
    if (this.#known !== undefined && this.#staging.disk.volume.kind === "local") return await this.#after(this.#known);
    const newest = await this.#highestNumber();
    if (newest <= (this.#known?.number ?? 0)) return this.#known;
    return await this.#after(await this.get(newest));
  }

  /** The entry with this number. CORRUPT, NEWER_FORMAT; IO_ERROR (ENOENT) when there is none. */
  async get(number: number): Promise<ChainEntry<T>> {
    const path = this.#path(number);
    const entry = await getRecord(this.#staging.disk, this.#kind, path);
    if (entry.number === number) return entry;
    const message = `${path} says that it is number ${entry.number}: it was copied or renamed. Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  async find(number: number): Promise<ChainEntry<T> | undefined> {
    try {
      return await this.get(number);
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return undefined;
      throw error;
    }
  }

  /** Goes forward from an entry for as long as there is a next one. */
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
    // One by one: a chain never deletes, and a call cannot have a hundred thousand arguments.
    // Foreign files are left alone.
    for (const name of await this.#staging.disk.list(this.#directory))
      highest = Math.max(highest, findSlotNumber(name) ?? 0);
    return highest;
  }

  #path(number: number): string {
    return `${this.#directory}/${slotName(number)}`;
  }
}

function entryKind<T>(kind: RecordKind<T>): RecordKind<ChainEntry<T>> {
  return {
    kind: kind.kind,
    decode: (value) => {
      const { number, id, body } = objectOf(value);
      return { number: countOf(number), id: textOf(id), body: kind.decode(body) };
    },
  };
}
