// Snapshots: the state of a model at a position, stored beside the log so that a long history need not be read again.
// A snapshot never changes an answer: it can be deleted at any time, and it is ignored unless it matches the log, the
// query and the version exactly.
import { isDeepStrictEqual } from "node:util";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { fileNameOf } from "../../format/name.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../format/record.ts";
import type { LogAccess } from "../log/log-access.ts";
import { itemsOf, type Items, type Query } from "../model/query.ts";
import { survivesJson } from "../model/state.ts";
import { sha256Of } from "../../format/checksum.ts";

const everyDefault = 500;

/**
 * How the state of a model is stored beside the log, so that a decision reads only newer events. A
 * snapshot never changes an answer, and can be deleted at any time.
 */
export interface SnapshotDefinition {
  /** The name of the model, and of its directory in `snapshots/` of the log. Each model needs its own. */
  readonly name: string;
  /**
   * Raise it when `apply`, `initial` or an upcast changes: a state that other code computed must
   * not be used. Default 1.
   */
  readonly version?: number | undefined;
  /** The snapshot is renewed after this many events of the model. Default 500. */
  readonly every?: number | undefined;
}

/** Throws a TypeError (also for a state that JSON would change), a RangeError, or INVALID_NAME. */
export function checkSnapshot({ name, version = 1, every = everyDefault }: SnapshotDefinition, initial: unknown): void {
  fileNameOf(name);
  if (!Number.isSafeInteger(version) || version < 0)
    throw new RangeError("The version of a snapshot must be a whole number from 0.");
  if (!(every >= 1)) throw new RangeError(`snapshot.every must be at least 1, not ${every}.`);
  if (!survivesJson(initial))
    throw new TypeError(`The model "${name}" has a snapshot, so its state must be JSON: no dates, maps or undefined.`);
}

export interface KeptState {
  readonly state: unknown;
  readonly position: number;
}

/**
 * The model that the state belongs to. It is stored in the record: the name of a file proves nothing, because files
 * can be renamed or copied.
 */
interface Owner {
  readonly name: string;
  readonly version: number;
  /** Sorted, so that the order in a query does not matter. */
  readonly query: Items;
}

interface SnapshotBody extends KeptState {
  readonly of: unknown;
  /** Checksum of the line at this position. A log restored from a backup has another one there. */
  readonly checksum: string;
  /**
   * Checksum of all tags that were added to older events. If tags were added since, the query may match more of the
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
  readonly #hash: string;
  readonly #of: Owner;
  readonly #every: number;

  constructor(access: LogAccess, query: Query, { name, version = 1, every = everyDefault }: SnapshotDefinition) {
    this.#access = access;
    this.#of = { name, version, query: sorted(itemsOf(query)) };
    this.#hash = sha256Of(JSON.stringify(this.#of)).slice(0, 32);
    this.#every = every;
  }

  /** Returns the snapshot if it matches this log up to `head`. */
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

  /** Tries to store the state. Two processes may overwrite each other: an older state is as valid as a newer one. */
  async keep({ state, position }: KeptState, tagChecksum: string): Promise<void> {
    if (this.#access.mayForget || !survivesJson(state)) return;
    try {
      const checksum = await this.#access.findChecksum(position);
      if (checksum === undefined) return;
      const bytes = encodeRecord(snapshotKind, { of: this.#of, checksum, tagChecksum, position, state });
      await this.#access.derived.keepSnapshot(this.#of.name, this.#hash, bytes);
    } catch {
      // The state is too large, the disk is full, or permission is missing. The next decision reads more events and
      // decides the same.
    }
  }

  async #read(): Promise<SnapshotBody | undefined> {
    try {
      const bytes = await this.#access.derived.readSnapshot(this.#of.name, this.#hash);
      return decodeRecord(snapshotKind, bytes, this.#hash);
    } catch {
      // The snapshot is missing, torn, foreign, from a newer release, or unreadable. The log has everything.
      return undefined;
    }
  }
}

function sorted(items: Items): Items {
  const texts = items.map(({ types, tags }) => JSON.stringify({ types: [...types].sort(), tags: [...tags].sort() }));
  return texts.sort().map((text) => JSON.parse(text) as Items[number]);
}
