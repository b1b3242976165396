// What an object store has, in the form in which it is copied: its buckets with their settings, and
// its keys with all their versions. Both engines read and write this form.
import { createHash } from "node:crypto";
import { holdfastError } from "../../errors.ts";
import type { TransferEnd, TransferItem } from "../../part/transfer/transfer-end.ts";
import { settingsOf } from "../bucket/bucket-config.ts";
import type { KeyVersion } from "../key/key-versions.ts";
import type { BodyFile, VersionEntry } from "../model/entry.ts";
import type { BucketConfig } from "../model/object.ts";
import { versionIdOf } from "../version/find-version.ts";

export interface BucketItem extends TransferItem {
  readonly kind: "bucket";
  readonly name: string;
  readonly createdAtMs: number;
  readonly settings: BucketConfig;
}

/** A version or a delete marker. */
export interface CopiedVersion {
  readonly slot: number;
  /** With all later changes of its attributes, and without the names of files. */
  readonly entry: VersionEntry;
  /** True if the body follows the record of its version. */
  readonly isInline: boolean;
  /** The pieces of the body: one, or those of an upload. None for a delete marker. */
  readonly pieces: readonly CopiedPiece[];
}

export interface CopiedPiece extends Omit<BodyFile, "file"> {
  readonly open: () => AsyncIterable<Uint8Array>;
}

export interface ObjectKeyItem extends TransferItem {
  readonly kind: "key";
  readonly bucket: string;
  readonly key: string;
  /** Oldest first. */
  readonly versions: readonly CopiedVersion[];
}

export type ObjectItem = BucketItem | ObjectKeyItem;
export type ObjectsEnd = TransferEnd<ObjectItem>;

export function bucketItem(name: string, createdAtMs: number, settings: BucketConfig): BucketItem {
  const { tags, documents, ...others } = settingsOf(settings);
  const content = [createdAtMs, others, sorted(tags), sorted(documents)];
  return { kind: "bucket", id: `bucket ${name}`, content, count: 0, check: async () => undefined, name, createdAtMs, settings }; // prettier-ignore
}

export function objectKeyItem(bucket: string, key: string, versions: readonly CopiedVersion[]): ObjectKeyItem {
  return {
    kind: "key",
    id: `object ${JSON.stringify(key)} of the bucket ${bucket}`,
    content: versions.map((version) => contentOf(version)),
    count: 1,
    check: async (signal) => {
      for (const { pieces } of versions)
        for (const piece of pieces) for await (const _ of checkedPiece(bucket, key, piece)) signal.throwIfAborted();
    },
    ...{ bucket, key, versions },
  };
}

/** Returns a version as it is copied: with its current attributes, and without the names of files. */
export function copiedVersion(
  { slot, entry, tags, retention, legalHold, acl }: KeyVersion,
  pieces: readonly CopiedPiece[],
  isInline: boolean,
): CopiedVersion {
  if (entry.kind === "marker") return { slot, entry, isInline, pieces: [] };
  const { parts: _parts, partsIn: _in, sha256: _sha256, retention: _r, legalHold: _l, acl: _a, ...facts } = entry;
  const attributes = {
    tags,
    ...(retention === undefined ? {} : { retention }),
    ...(legalHold === undefined ? {} : { legalHold }),
    ...(acl === undefined ? {} : { acl }),
  };
  return { slot, entry: { ...facts, ...attributes }, isInline, pieces };
}

function contentOf({ slot, entry, pieces }: CopiedVersion): unknown {
  const common = [entry.kind, versionIdOf({ slot, entry }), entry.id, entry.atMs];
  if (entry.kind === "marker") return common;
  const { size, etag, headers, metadata, tags, checksum, retention, legalHold = false, acl, partRuns } = entry;
  return [
    ...[...common, size, etag, sorted(headers), sorted(metadata), sorted(tags), legalHold],
    checksum === undefined ? null : [checksum.algorithm, checksum.value, checksum.type ?? "full"],
    retention === undefined ? null : [retention.mode, retention.untilMs],
    ...[acl ?? null, partRuns?.map((run) => [run.size, run.count]) ?? null],
    pieces.map((piece) => [piece.size, piece.sha256, piece.sum ?? null]),
  ];
}

function sorted(texts: Readonly<Record<string, string>>): unknown {
  return Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Yields a piece of a body. Throws CORRUPT before its end if it is not what was put. */
export async function* checkedPiece(bucket: string, key: string, piece: CopiedPiece): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of piece.open()) {
    hash.update(chunk);
    size += chunk.length;
    yield chunk;
  }
  if (size === piece.size && hash.digest("hex") === piece.sha256) return;
  const path = `${bucket}/${key}`;
  const message = `The object ${JSON.stringify(key)} of the bucket ${bucket} does not contain what was put. Restore it from a backup, or delete that version; then repeat the copy.`;
  throw holdfastError("CORRUPT", message, { path });
}
