// The files that hold the body of a version. The version's record names a few; many are named by
// the end of their upload, so that the record stays small.
import { findRecord } from "../../durable/publish/record-file.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { BodyFile, PutEntry, VersionEntry } from "../model/entry.ts";
import { endKind } from "../multipart/upload-records.ts";

/** The maximum number of files that the record of a version names. */
const filesInRecordMax = 32;

export type BodyFiles = Pick<PutEntry, "parts" | "partsIn">;

/**
 * Returns the fields of a version's record that name these parts. `list` is the path of the
 * upload's end, relative to the incarnation.
 */
export function bodyFilesOf(parts: readonly BodyFile[], list: string): BodyFiles {
  return parts.length > filesInRecordMax ? { partsIn: list } : { parts };
}

/** True if the body is in files of its own, not behind the record. */
export function hasBodyFiles({ parts, partsIn }: BodyFiles): boolean {
  return parts !== undefined || partsIn !== undefined;
}

/** Returns the id of the upload whose files hold the body; undefined for any other body. */
export function findUploadOf(entry: VersionEntry): string | undefined {
  if (entry.kind !== "put") return undefined;
  return uploadIdIn(entry.partsIn ?? entry.parts?.[0]?.file ?? "");
}

/** Returns the id of the upload that owns a file. `file` is relative to the incarnation. */
export function uploadIdIn(file: string): string | undefined {
  return /^uploads\/([^/]+)\//.exec(file)?.[1];
}

/** Returns the parts in order; undefined if they were removed with their version. */
export async function findBodyFiles(
  bucket: OpenBucket,
  { parts, partsIn }: BodyFiles,
): Promise<readonly BodyFile[] | undefined> {
  if (partsIn === undefined) return parts;
  const end = await findRecord(bucket.storage.disk, endKind, bucket.bodyPath(partsIn));
  return end?.kind === "complete" ? end.parts : undefined;
}
