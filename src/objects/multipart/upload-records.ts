// What is written down about an upload: how it began, its parts, and how it ended.
import { countOf, listOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import {
  checksumAlgorithms,
  checksumOf,
  partOf,
  retentionOf,
  textsOf,
  type BodyPart,
  type Checksum,
  type ChecksumAlgorithm,
} from "../model/entry.ts";
import type { VersionFacts } from "../version/put-version.ts";

/** How the checksum of an object is made from those of its parts. */
export interface JoinedKind {
  readonly algorithm: ChecksumAlgorithm;
  readonly type: "full" | "composite";
}

/** upload.json: while it is there, the upload is. */
export interface UploadRecord {
  readonly id: string;
  readonly key: string;
  readonly startedAtMs: number;
  readonly facts: VersionFacts;
  readonly checksum?: JoinedKind;
}

export const uploadKind: RecordKind<UploadRecord> = {
  kind: "upload",
  decode: (value) => {
    const { id, key, startedAtMs, facts, checksum } = objectOf(value);
    return {
      id: textOf(id),
      key: textOf(key),
      startedAtMs: countOf(startedAtMs),
      facts: factsOf(facts),
      ...(checksum === undefined ? {} : { checksum: joinedKindOf(checksum) }),
    };
  },
};

export interface PartRecord extends BodyPart {
  readonly partNumber: number;
  readonly etag: string;
  readonly atMs: number;
  readonly checksum?: Checksum;
}

export const partKind: RecordKind<PartRecord> = {
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

/** end: decided once. What an upload became, or that it became nothing. */
export type UploadEnd = Abort | Completion;

export interface Abort {
  readonly kind: "abort";
  readonly id: string;
  /** The process that decided it, and removes the files. A collection does so when that one is dead. */
  readonly holder?: string;
}

export interface Completion {
  readonly kind: "complete";
  /** Of the entry of the version: by it every completer finds the version that another one has put. */
  readonly id: string;
  /** The newest entry of the key when this was decided: the version comes behind it. */
  readonly behind: { readonly incarnation: string; readonly number: number };
  /** The parts as the caller named them. */
  readonly list: string;
  readonly size: number;
  readonly etag: string;
  readonly checksum?: Checksum;
  readonly parts: readonly BodyPart[];
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

function behindOf({ incarnation, number }: Readonly<Record<string, unknown>>): Completion["behind"] {
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
