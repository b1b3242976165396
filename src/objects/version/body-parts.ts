// The files that have the body of a version. A few are named by its record, many by the end of the
// upload that they came with: a record stays small.
import { findRecord } from "../../durable/publish/record-file.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { BodyPart, PutEntry } from "../model/entry.ts";
import { endKind } from "../multipart/upload-records.ts";

/** The record of a version names so many at most. */
const partsInRecordMax = 32;

export type BodyFiles = Pick<PutEntry, "parts" | "partsIn">;

/** What the record of a version says of the parts that `list` has. `list` is a path below the incarnation. */
export function bodyFilesOf(parts: readonly BodyPart[], list: string): BodyFiles {
  return parts.length > partsInRecordMax ? { partsIn: list } : { parts };
}

/** Whether the body lies in files of its own, not behind the record. */
export function hasBodyFiles({ parts, partsIn }: BodyFiles): boolean {
  return parts !== undefined || partsIn !== undefined;
}

/** In their order. Undefined when they were removed with their version. */
export async function findParts(
  bucket: OpenBucket,
  { parts, partsIn }: BodyFiles,
): Promise<readonly BodyPart[] | undefined> {
  if (partsIn === undefined) return parts;
  const end = await findRecord(bucket.place.disk, endKind, bucket.bodyPath(partsIn));
  return end?.kind === "complete" ? end.parts : undefined;
}
