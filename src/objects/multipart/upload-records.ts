// The records of an upload: its beginning, its parts, and its end.
import { countOf, listOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import {
  checksumAlgorithms,
  checksumOf,
  partOf,
  retentionOf,
  textsOf,
  type BodyFile,
  type Checksum,
  type ChecksumAlgorithm,
} from "../model/entry.ts";
import type { UploadOptions } from "../model/object.ts";
import { factsOf as putFactsOf, type VersionFacts } from "../version/put-version.ts";

/** How the checksum of an object is computed from those of its parts. */
export interface JoinedKind {
  readonly algorithm: ChecksumAlgorithm;
  readonly type: "full" | "composite";
}

/** upload.json. The upload exists as long as this record does. */
export interface UploadRecord {
  readonly id: string;
  readonly key: string;
  readonly startedAtMs: number;
  readonly facts: VersionFacts;
  readonly checksum?: JoinedKind;
  readonly initiator?: string;
}

export function uploadRecordOf(id: string, key: string, startedAtMs: number, options: UploadOptions): UploadRecord {
  const { checksum, initiator, ...put } = options;
  return {
    id,
    key,
    startedAtMs,
    facts: putFactsOf(put),
    ...(checksum === undefined
      ? {}
      : { checksum: { algorithm: checksum.algorithm, type: checksum.type ?? "composite" } }),
    ...(initiator === undefined ? {} : { initiator }),
  };
}

export const uploadKind: RecordKind<UploadRecord> = {
  kind: "upload",
  decode: (value) => {
    const { id, key, startedAtMs, facts, checksum, initiator } = objectOf(value);
    return {
      id: textOf(id),
      key: textOf(key),
      startedAtMs: countOf(startedAtMs),
      facts: factsOf(facts),
      ...(checksum === undefined ? {} : { checksum: joinedKindOf(checksum) }),
      ...(initiator === undefined ? {} : { initiator: textOf(initiator) }),
    };
  },
};

export interface UploadPartRecord extends BodyFile {
  readonly partNumber: number;
  readonly etag: string;
  readonly atMs: number;
  readonly checksum?: Checksum;
}

export const partKind: RecordKind<UploadPartRecord> = {
  kind: "part",
  decode: (value) => {
    const { partNumber, etag, atMs, checksum, ...body } = objectOf(value);
    return {
      partNumber: countOf(partNumber),
      etag: textOf(etag),
      atMs: countOf(atMs),
      ...partOf(body),
      ...(checksum === undefined ? {} : { checksum: checksumOf(checksum) }),
    };
  },
};

/** The file `end`: the completion or the abort of the upload, decided once. */
export type UploadEnd = AbortRecord | CompletionRecord;

export interface AbortRecord {
  readonly kind: "abort";
  readonly id: string;
  /**
   * The process that decided the abort and removes the files. A collection removes them if that
   * process is dead.
   */
  readonly holder?: string;
}

export interface CompletionRecord {
  readonly kind: "complete";
  /** Id of the version's entry. By this id, every completer finds the version that another one put. */
  readonly id: string;
  /** The newest entry of the key when the completion was decided. The version comes after it. */
  readonly behind: { readonly incarnation: string; readonly number: number };
  /** The parts as the caller listed them. */
  readonly list: string;
  readonly size: number;
  readonly etag: string;
  readonly checksum?: Checksum;
  readonly parts: readonly BodyFile[];
}

export const endKind: RecordKind<UploadEnd> = {
  kind: "upload-end",
  decode: (value) => {
    const { kind, id, holder, behind, list, size, etag, checksum, parts } = objectOf(value);
    if (wordOf(kind, ["abort", "complete"] as const) === "abort")
      return { kind: "abort", id: textOf(id), ...(holder === undefined ? {} : { holder: textOf(holder) }) };
    return {
      kind: "complete",
      id: textOf(id),
      behind: behindOf(objectOf(behind)),
      list: textOf(list),
      size: countOf(size),
      etag: textOf(etag),
      ...(checksum === undefined ? {} : { checksum: checksumOf(checksum) }),
      parts: listOf(parts, partOf),
    };
  },
};

function behindOf({ incarnation, number }: Readonly<Record<string, unknown>>): CompletionRecord["behind"] {
  return { incarnation: textOf(incarnation), number: countOf(number) };
}

function joinedKindOf(value: unknown): JoinedKind {
  const { algorithm, type } = objectOf(value);
  return { algorithm: wordOf(algorithm, checksumAlgorithms), type: wordOf(type, ["full", "composite"] as const) };
}

function factsOf(value: unknown): VersionFacts {
  const { headers, metadata, tags, retention, legalHold, acl } = objectOf(value);
  return {
    headers: textsOf(headers),
    metadata: textsOf(metadata),
    tags: textsOf(tags),
    ...(retention === undefined ? {} : { retention: retentionOf(retention) }),
    ...(legalHold === undefined ? {} : { legalHold: legalHold === true }),
    ...(acl === undefined ? {} : { acl: textOf(acl) }),
  };
}
