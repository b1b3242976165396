// An entry is the content of one slot of a key's chain: a version, a delete marker, or a change of
// earlier entries.
import { countOf, flagOf, listOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";

export const checksumAlgorithms: readonly ChecksumAlgorithm[] = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"];
/** The checksum algorithms of S3. */
export type ChecksumAlgorithm = "CRC32" | "CRC32C" | "CRC64NVME" | "SHA1" | "SHA256";

/** A checksum of a body. */
export interface Checksum {
  /** The algorithm. */
  readonly algorithm: ChecksumAlgorithm;
  /** The checksum in Base64. */
  readonly value: string;
  /** `full`: of the whole body. `composite`: of the checksums of its parts. Default `full`. */
  readonly type?: "full" | "composite";
}

/** A retention as it is stored. */
export interface StoredRetention {
  readonly mode: "governance" | "compliance";
  readonly untilMs: number;
}

/** A file with a body, or with one part of it. */
export interface BodyFile {
  /** Path relative to the incarnation. */
  readonly file: string;
  readonly size: number;
  readonly sha256: string;
  /** Checksum of the part in Base64, by the algorithm of its upload. */
  readonly sum?: string;
}

/** Consecutive parts of the same size. */
export interface UploadPartRun {
  readonly size: number;
  readonly count: number;
}

interface EntryFacts {
  /** Random and unique. */
  readonly id: string;
  readonly key: string;
  /**
   * Number of the bucket's configuration under which the entry was written. It never decreases
   * along a chain.
   */
  readonly config: number;
  /** The time of the writer's clock. */
  readonly atMs: number;
}

export interface PutEntry extends EntryFacts {
  readonly kind: "put";
  /** True if versioning was not enabled: the entry replaces the previous null version. */
  readonly isNull: boolean;
  readonly size: number;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  readonly checksum?: Checksum;
  readonly retention?: StoredRetention;
  readonly legalHold?: boolean;
  /** The ACL of a front end such as the gateway, stored and returned unchanged. */
  readonly acl?: string;
  /** Sizes of the parts of an upload, in order, as runs. */
  readonly partRuns?: readonly UploadPartRun[];
  /** Digest of a body that follows the record. */
  readonly sha256?: string;
  /** Files of a body that is stored outside the record. */
  readonly parts?: readonly BodyFile[];
  /**
   * For a body in many files: the path of the upload's end, which names them. Relative to the
   * incarnation.
   */
  readonly partsIn?: string;
}

export interface MarkerEntry extends EntryFacts {
  readonly kind: "marker";
  readonly isNull: boolean;
}

/** Removes versions and delete markers. */
export interface RemoveEntry extends EntryFacts {
  readonly kind: "remove";
  readonly slots: readonly number[];
  /** The slot that is current after the removal; 0 if nothing is left. */
  readonly current: number;
}

/** Changes attributes of a version without adding a new one. */
export interface ChangeEntry extends EntryFacts {
  readonly kind: "change";
  readonly slot: number;
  readonly current: number;
  readonly tags?: Readonly<Record<string, string>>;
  /** Null lifts the retention. */
  readonly retention?: StoredRetention | null;
  readonly legalHold?: boolean;
  readonly acl?: string;
}

/** The last entry of a key. The key has no version, and its directory is about to be removed. */
export interface ClosedEntry extends EntryFacts {
  readonly kind: "closed";
}

/** Replaces the content of a removed version's slot, which erases its bytes and keeps its name. */
export interface StubEntry extends EntryFacts {
  readonly kind: "stub";
  /**
   * True if the removed version was a null version. It had replaced an earlier null version, which
   * must not reappear.
   */
  readonly isNull: boolean;
}

export type VersionEntry = PutEntry | MarkerEntry;
export type KeyEntry = VersionEntry | RemoveEntry | ChangeEntry | ClosedEntry | StubEntry;

/**
 * The largest size of a record. Keys, headers, metadata, tags and parts are limited so that every
 * record fits.
 */
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

/** Encodes an entry as one line. Throws TOO_LARGE. */
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

export function textsOf(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(objectOf(value)).map(([name, text]) => [name, textOf(text)]));
}

export function partOf(value: unknown): BodyFile {
  const { file, size, sha256, sum } = objectOf(value);
  return {
    file: textOf(file),
    size: countOf(size),
    sha256: textOf(sha256),
    ...(sum === undefined ? {} : { sum: textOf(sum) }),
  };
}

function runOf(value: unknown): UploadPartRun {
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
