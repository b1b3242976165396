// Collection of uploads: what a rule gives up, what an abort has left, and parts that a completed
// upload did not name.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { idTimeMs, isId } from "../../format/id.ts";
import { namesIn } from "../listing/walk-keys.ts";
import { isUploadDue } from "../model/lifecycle.ts";
import { UploadFiles } from "../multipart/upload-files.ts";

/**
 * An upload without a record is left alone for so long: its process may be about to write it. Only
 * to spare that process an error.
 */
const beginMs = 86_400_000;

export interface UploadCounts {
  /** How many uploads went, and how many files of others. */
  readonly objects: number;
}

export async function collectUploads(bucket: OpenBucket): Promise<UploadCounts> {
  let objects = 0;
  for (const id of await namesIn(bucket.place.disk, bucket.layout.uploads))
    if (isId(id)) objects += await collectUpload(bucket, new UploadFiles(bucket, id));
  return { objects };
}

async function collectUpload(bucket: OpenBucket, files: UploadFiles): Promise<number> {
  const nowMs = bucket.place.nowMs();
  const record = await files.find();
  if (record === undefined) {
    // Nothing can be completed without it, and no version names a part: the record goes last of all
    // versions, and first of all files.
    const isLeft = idTimeMs(files.id) + beginMs <= nowMs && !(await files.isThere());
    return isLeft && (await files.removeRest()) ? 1 : 0;
  }
  const end = await files.findEnd();
  if (end?.kind === "complete") return await files.removeUnnamed(end);
  const isOver = end?.kind === "abort" || isUploadDue(bucket.settings.lifecycle, record.key, record.startedAtMs, nowMs);
  return isOver && (await files.abort()) ? 1 : 0;
}
