// Snapshots: the state of a model at a position, kept beside the log so that a long history need
// not be read again. A snapshot never changes an answer: it can be deleted at any time, and one
// that does not fit the log, the query or the version exactly counts as absent.
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { fileNameOf } from "../../format/name.ts";
import { decodeRecord, encodeRecord, recordBytesMax, type RecordKind } from "../../format/record.ts";
import type { LogAccess } from "../log/log-access.ts";
import { itemsOf, type Items, type Query } from "../model/query.ts";
import { survivesJson } from "../model/state.ts";

const everyDefault = 500;

export interface SnapshotDefinition {
  /**
   * The name of the model, and of its directory in `snapshots/` of the log. Two models never share
   * one.
   */
  readonly name: string;
  /**
   * Raise it when `apply`, `initial` or an upcast changes: a state that other code has folded must
   * not be used. Default 1.
   */
  readonly version?: number | undefined;
  /** How many events of the model are folded before the state is kept again. Default 500. */
  readonly every?: number | undefined;
}

/** TypeError, also for a state that JSON would change; RangeError; INVALID_NAME. */
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

/**
 * The model that the state belongs to. Also in the record: a file that was renamed or copied is not
 * trusted for its name.
 */
interface Owner {
  readonly name: string;
  readonly version: number;
  /** Sorted, so that the same query in another order is equal. */
  readonly query: Items;
}

interface SnapshotBody extends KeptState {
  readonly of: unknown;
  /** Of the line at this position. A log that was restored from a backup has another one there. */
  readonly checksum: string;
  /**
   * Of all tags that were added to older events. With more tags the query may find more in the
   * past.
   */
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

  /** The snapshot, if it fits this log up to `head`. */
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

  /**
   * Keeps the state if possible. Two processes may overwrite each other: an older state is as true
   * as a newer one.
   */
  async keep({ state, position }: KeptState, tagChecksum: string): Promise<void> {
    if (this.#access.mayForget || !survivesJson(state)) return;
    const { disk } = this.#access.ports;
    try {
      const checksum = await this.#access.findChecksum(position);
      if (checksum === undefined) return;
      const bytes = encodeRecord(snapshotKind, { of: this.#of, checksum, tagChecksum, position, state });
      await ensureDirectory(disk, this.#directory);
      // Not synced: a power cut costs only a longer read, and a torn file fails its checksum.
      await replace(this.#access.ground.staging, this.#path, bytes, { sync: false });
    } catch {
      // Too large, disk full, no permission: the next decision reads more events, and decides the
      // same.
    }
  }

  async #read(): Promise<SnapshotBody | undefined> {
    try {
      const bytes = await this.#access.ports.disk.readFile(this.#path, recordBytesMax);
      return decodeRecord(snapshotKind, bytes, this.#path);
    } catch {
      // Absent, torn, foreign, of a newer release, or unreadable: the log has everything.
      return undefined;
    }
  }
}

function sorted(items: Items): Items {
  const texts = items.map(({ types, tags }) => JSON.stringify({ types: [...types].sort(), tags: [...tags].sort() }));
  return texts.sort().map((text) => JSON.parse(text) as Items[number]);
}
