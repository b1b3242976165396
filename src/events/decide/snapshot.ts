// Snapshots: the state of a model at a position, kept beside the log so that a long history need not be read from its beginning. Never the truth: each can be deleted
// at any time, and one that does not fit the log, the query or the version to the letter counts as absent.
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { fileNameOf } from "../../format/name.ts";
import { decodeRecord, encodeRecord, recordBytesMax, type RecordKind } from "../../format/record.ts";
import type { LogAccess } from "../log/log-access.ts";
import { itemsOf, type Items, type Query } from "../model/query.ts";
import { survivesJson } from "./state-copy.ts";

const everyDefault = 500;

export interface SnapshotDefinition {
  /** Of the model; a directory below `snapshots/` of the log. Two models never share one. */
  readonly name: string;
  /** Raise it whenever `apply`, `initial` or an upcast changes: a state that other code has folded is not this model's. Default 1. */
  readonly version?: number | undefined;
  /** How many events of the model are folded before the state is kept again. Default 500. */
  readonly every?: number | undefined;
}

/** TypeError, RangeError, INVALID_NAME; and TypeError for a state that would not come back from JSON as it was. */
export function checkSnapshot({ name, version = 1, every = everyDefault }: SnapshotDefinition, initial: unknown): void {
  fileNameOf(name);
  if (!Number.isSafeInteger(version) || version < 0)
    throw new RangeError("The version of a snapshot is a whole number.");
  if (!(every >= 1)) throw new RangeError(`A snapshot is made every 1 event or more, not every ${every}.`);
  if (!survivesJson(initial))
    throw new TypeError(`The model "${name}" has a snapshot, so its state must be JSON: no dates, maps or undefined.`);
}

export interface KeptState {
  readonly state: unknown;
  readonly position: number;
}

/** Whose state it is. In full in the record too: a file that was renamed or copied is not believed because of its name. */
interface Owner {
  readonly name: string;
  readonly version: number;
  /** In one order of words, so that the same query written in another is the same. */
  readonly query: Items;
}

interface SnapshotBody extends KeptState {
  readonly of: unknown;
  /** Of the line with this position. A log that was restored from a backup, or another log, has another one there. */
  readonly checksum: string;
  /** Of the tags that were added later. More of them may let the query find more in the past. */
  readonly tagChecksum: string;
}

const snapshotKind: RecordKind<SnapshotBody> = {
  kind: "snapshot",
  decode: (value) => {
    const { of, position, checksum, tagChecksum, state } = objectOf(value);
    if (state === undefined) throw new TypeError("no state");
    return {
      of,
      position: countOf(position),
      checksum: textOf(checksum),
      tagChecksum: textOf(tagChecksum),
      state,
    };
  },
};

/** The snapshots of one model with one query. */
export class Snapshot {
  readonly #access: LogAccess;
  readonly #directory: string;
  readonly #path: string;
  readonly #of: Owner;
  readonly #every: number;

  constructor(access: LogAccess, query: Query, { name, version = 1, every = everyDefault }: SnapshotDefinition) {
    this.#access = access;
    this.#of = { name, version, query: sorted(itemsOf(query)) };
    this.#directory = `${access.directory}/snapshots/${fileNameOf(name)}`;
    const hash = createHash("sha256").update(JSON.stringify(this.#of)).digest("hex");
    this.#path = `${this.#directory}/${hash.slice(0, 32)}.json`;
    this.#every = every;
  }

  /** The newest one that is true of this log up to `head`. */
  async find({
    head,
    tagChecksum,
  }: {
    readonly head: number;
    readonly tagChecksum: string;
  }): Promise<KeptState | undefined> {
    if (this.#access.mayForget) return undefined;
    const kept = await this.#read();
    if (
      kept === undefined ||
      !isDeepStrictEqual(kept.of, this.#of) ||
      kept.position > head ||
      kept.tagChecksum !== tagChecksum
    )
      return undefined;
    return (await this.#access.findChecksum(kept.position)) === kept.checksum ? kept : undefined;
  }

  isDue(foldedEvents: number): boolean {
    return foldedEvents >= this.#every;
  }

  /** Keeps it if that is possible. Two who do so at once overwrite each other: an older state is as true as a newer one. */
  async keep({ state, position }: KeptState, tagChecksum: string): Promise<void> {
    if (this.#access.mayForget || !survivesJson(state)) return;
    const { disk } = this.#access.ports;
    try {
      const checksum = await this.#access.findChecksum(position);
      if (checksum === undefined) return;
      const bytes = encodeRecord(snapshotKind, { of: this.#of, checksum, tagChecksum, position, state });
      await ensureDirectory(disk, this.#directory);
      // Not synced: what a power cut takes is built again, and what it tears is found out by its checksum.
      await replace(this.#access.ground.staging, this.#path, bytes, { sync: false });
    } catch {
      // Too large, disk full, no permission: the next decision reads more, and decides the same.
    }
  }

  async #read(): Promise<SnapshotBody | undefined> {
    try {
      const bytes = await this.#access.ports.disk.readFile(this.#path, recordBytesMax);
      return decodeRecord(snapshotKind, bytes, this.#path);
    } catch {
      // Absent, torn, foreign, of a newer release, or not readable now: the log itself has everything, and its failures are told.
      return undefined;
    }
  }
}

function sorted(items: Items): Items {
  const texts = items.map(({ types, tags }) => JSON.stringify({ types: [...types].sort(), tags: [...tags].sort() }));
  return texts.sort().map((text) => JSON.parse(text) as Items[number]);
}
