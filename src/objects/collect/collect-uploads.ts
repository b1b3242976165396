// Collection of uploads: what a rule gives up, what an abort has left, and parts that a completed
// upload did not name.
import { isHoldfastError } from "../../errors.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { idTimeMs, isId } from "../../format/id.ts";
import { namesIn } from "../listing/walk-keys.ts";
import { isUploadDue } from "../model/lifecycle.ts";
import { UploadFiles } from "../multipart/upload-files.ts";
import type { Abort } from "../multipart/upload-records.ts";

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

/** How many uploads and files went. Other processes may end the same upload at the same time. */
export async function collectUpload(bucket: OpenBucket, files: UploadFiles): Promise<number> {
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
  if (end?.kind === "abort") return await removeAborted(bucket, files, end);
  if (!isUploadDue(bucket.settings.lifecycle, record.key, record.startedAtMs, nowMs)) return 0;
  try {
    return (await files.abort()) ? 1 : 0;
  } catch (error) {
    // It was ended by another process, and its files are gone.
    if (isHoldfastError(error, "NO_SUCH_UPLOAD")) return 0;
    throw error;
  }
}

/**
 * The process that decided it removes the files itself. If they went under its hands, it could not
 * tell its own abort from a completion whose version was deleted since.
 */
async function removeAborted(bucket: OpenBucket, files: UploadFiles, { holder }: Abort): Promise<number> {
  if (holder !== undefined && !(await bucket.place.ground.settle(holder))) return 0;
  await files.remove();
  return 1;
}
