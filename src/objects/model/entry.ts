// An entry of a key: what one slot of its chain says. A version, a delete marker, or a change of
// earlier entries.
import { countOf, flagOf, listOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";

export const checksumAlgorithms = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"] as const;
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number];

export interface Checksum {
  readonly algorithm: ChecksumAlgorithm;
  readonly value: string;
  readonly type?: "full" | "composite";
}

/** A retention as it is stored. */
export interface StoredRetention {
  readonly mode: "governance" | "compliance";
  readonly untilMs: number;
}

/** A file that has a piece of a body: its content from `at` on. */
export interface BodyPart {
  /** Below the directory of the bodies. */
  readonly file: string;
  readonly size: number;
  readonly sha256: string;
  /** By the algorithm of the upload that it came with, in Base64. */
  readonly sum?: string;
}

/** So many parts, one after the other, of the same size. */
export interface PartRun {
  readonly size: number;
  readonly count: number;
}

interface EntryFacts {
  /** Random: tells this entry from every other one. */
  readonly id: string;
  readonly key: string;
  /** The number of the bucket's configuration that it was made under; never falls along a chain. */
  readonly config: number;
  /** By the clock of its writer. */
  readonly atMs: number;
}

export interface PutEntry extends EntryFacts {
  readonly kind: "put";
  /** Made while the bucket kept no versions: it takes the place of the null version before it. */
  readonly isNull: boolean;
  readonly size: number;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  readonly checksum?: Checksum;
  readonly retention?: StoredRetention;
  readonly legalHold?: boolean;
  /** Of a front: kept and given back as it is. */
  readonly acl?: string;
  /** Of an upload in parts: their sizes in order, as runs. */
  readonly partRuns?: readonly PartRun[];
  /** Of a body that lies right behind the record. */
  readonly sha256?: string;
  /** Of a body in files of its own. */
  readonly parts?: readonly BodyPart[];
  /** Of a body in many files: the end of the upload that names them, below the incarnation. */
  readonly partsIn?: string;
}

export interface MarkerEntry extends EntryFacts {
  readonly kind: "marker";
  readonly isNull: boolean;
}

/** Versions and markers that are gone from here on. */
export interface RemoveEntry extends EntryFacts {
  readonly kind: "remove";
  readonly slots: readonly number[];
  /** The slot of what is current from here on; 0 when nothing is left. */
  readonly current: number;
}

/** What was changed about a version without a new one. */
export interface ChangeEntry extends EntryFacts {
  readonly kind: "change";
  readonly slot: number;
  readonly current: number;
  readonly tags?: Readonly<Record<string, string>>;
  /** Null: it was lifted. */
  readonly retention?: StoredRetention | null;
  readonly legalHold?: boolean;
  readonly acl?: string;
}

/** The last entry: the key has no version, and its directory goes. */
export interface ClosedEntry extends EntryFacts {
  readonly kind: "closed";
}

/** Lies over the slot of a version that was removed, so that its bytes are gone and its name is not. */
export interface StubEntry extends EntryFacts {
  readonly kind: "stub";
  /** As of the version: it had taken the place of the null version before it, which must not come back. */
  readonly isNull: boolean;
}

export type VersionEntry = PutEntry | MarkerEntry;
export type KeyEntry = VersionEntry | RemoveEntry | ChangeEntry | ClosedEntry | StubEntry;

/** Keys, headers, metadata, tags and parts have limits, so a record is never larger. */
export const entryBytesMax: number = 256 * 1024;

const entryKinds = ["put", "marker", "remove", "change", "closed", "stub"] as const;

export const entryKind: RecordKind<KeyEntry> = {
  kind: "version",
  decode: (value) => {
    const body = objectOf(value);
    const kind = wordOf(body.kind, entryKinds);
    const facts = {
      id: textOf(body.id),
      key: textOf(body.key),
      config: countOf(body.config),
      atMs: countOf(body.atMs),
    };
    if (kind === "put") return { kind, ...facts, isNull: flagOf(body.isNull), ...putFactsOf(body) };
    if (kind === "marker" || kind === "stub") return { kind, ...facts, isNull: flagOf(body.isNull) };
    if (kind === "remove")
      return { kind, ...facts, slots: listOf(body.slots, countOf), current: countOf(body.current) };
    if (kind === "change")
      return { kind, ...facts, slot: countOf(body.slot), current: countOf(body.current), ...changesOf(body) };
    return { kind, ...facts };
  },
};

/** The record of an entry, a line. TOO_LARGE. */
export function encodeEntry(entry: KeyEntry): Uint8Array {
  return encodeRecord(entryKind, entry, { bytesMax: entryBytesMax });
}

type PutFacts = Omit<PutEntry, keyof EntryFacts | "kind" | "isNull">;

function putFactsOf(body: Readonly<Record<string, unknown>>): PutFacts {
  return {
    size: countOf(body.size),
    etag: textOf(body.etag),
    headers: textsOf(body.headers),
    metadata: textsOf(body.metadata),
    tags: textsOf(body.tags),
    ...(body.checksum === undefined ? {} : { checksum: checksumOf(body.checksum) }),
    ...(body.retention === undefined ? {} : { retention: retentionOf(body.retention) }),
    ...(body.legalHold === undefined ? {} : { legalHold: flagOf(body.legalHold) }),
    ...(body.acl === undefined ? {} : { acl: textOf(body.acl) }),
    ...(body.partRuns === undefined ? {} : { partRuns: listOf(body.partRuns, runOf) }),
    ...(body.sha256 === undefined ? {} : { sha256: textOf(body.sha256) }),
    ...(body.parts === undefined ? {} : { parts: listOf(body.parts, partOf) }),
    ...(body.partsIn === undefined ? {} : { partsIn: textOf(body.partsIn) }),
  };
}

function changesOf(
  body: Readonly<Record<string, unknown>>,
): Pick<ChangeEntry, "tags" | "retention" | "legalHold" | "acl"> {
  const { tags, retention, legalHold, acl } = body;
  return {
    ...(tags === undefined ? {} : { tags: textsOf(tags) }),
    ...(retention === undefined ? {} : { retention: retention === null ? null : retentionOf(retention) }),
    ...(legalHold === undefined ? {} : { legalHold: flagOf(legalHold) }),
    ...(acl === undefined ? {} : { acl: textOf(acl) }),
  };
}

/** Texts by name. */
export function textsOf(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(objectOf(value)).map(([name, text]) => [name, textOf(text)]));
}

export function partOf(value: unknown): BodyPart {
  const { file, size, sha256, sum } = objectOf(value);
  return {
    file: textOf(file),
    size: countOf(size),
    sha256: textOf(sha256),
    ...(sum === undefined ? {} : { sum: textOf(sum) }),
  };
}

function runOf(value: unknown): PartRun {
  const { size, count } = objectOf(value);
  return { size: countOf(size), count: countOf(count) };
}

export function checksumOf(value: unknown): Checksum {
  const { algorithm, value: text, type } = objectOf(value);
  return {
    algorithm: wordOf(algorithm, checksumAlgorithms),
    value: textOf(text),
    ...(type === undefined ? {} : { type: wordOf(type, ["full", "composite"] as const) }),
  };
}

export function retentionOf(value: unknown): StoredRetention {
  const { mode, untilMs } = objectOf(value);
  return { mode: wordOf(mode, ["governance", "compliance"] as const), untilMs: countOf(untilMs) };
}
