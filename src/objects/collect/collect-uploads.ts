// Collects uploads: removes expired ones, the rest of aborted ones, and parts that a completed
// upload does not use.
import { listIfThere } from "../../durable/publish/directory.ts";
import { isHoldfastError } from "../../errors.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { idTimeMs, isId } from "../../format/id.ts";
import { isUploadDue } from "../model/lifecycle.ts";
import { uploadIdIn } from "../version/body-files.ts";
import { UploadFiles } from "../multipart/upload-files.ts";
import type { AbortRecord } from "../multipart/upload-records.ts";

/**
 * An upload without a record is kept this long: its process may be about to write the record.
 * Removing it earlier would be safe, but that process would get an error.
 */
const beginMs = 86_400_000;

export interface UploadUpkeep {
  /**
   * Files of bodies, and lists of such files, that living versions name. Undefined if not all of
   * them are known.
   */
  readonly named: ReadonlySet<string> | undefined;
  /**
   * Runs `work`. Returns undefined if it failed with an error that must not stop the collection of
   * other uploads.
   */
  readonly attempt: (work: () => Promise<number>) => Promise<number | undefined>;
}

/** Returns the number of uploads removed, plus the number of files removed from others. */
export async function collectUploads(bucket: OpenBucket, { named, attempt }: UploadUpkeep): Promise<number> {
  let objects = 0;
  const used = new Set([...(named ?? [])].flatMap((file) => uploadIdIn(file) ?? []));
  for (const id of await listIfThere(bucket.storage.disk, bucket.layout.uploads)) {
    if (!isId(id)) continue;
    const isFree = named !== undefined && !used.has(id);
    objects += (await attempt(() => collectUpload(bucket, new UploadFiles(bucket, id), isFree))) ?? 0;
  }
  return objects;
}

/**
 * Returns the number of uploads and files removed. Other processes may end the same upload
 * concurrently. `isFree`: no version uses its files, as far as known.
 */
export async function collectUpload(bucket: OpenBucket, files: UploadFiles, isFree: boolean): Promise<number> {
  const nowMs = bucket.storage.nowMs();
  const record = await files.find();
  if (record === undefined) {
    // An upload without a record cannot be completed: the record is removed before all other files.
    // If a version still names a part, the record was lost, and the parts stay.
    const isLeft = isFree && idTimeMs(files.id) + beginMs <= nowMs && !(await files.isThere());
    return isLeft && (await files.removeRest()) ? 1 : 0;
  }
  const end = await files.findEnd();
  if (end?.kind === "complete") return await files.removeUnnamed(end);
  if (end?.kind === "abort") return await removeAborted(bucket, files, end);
  if (!isUploadDue(bucket.settings.lifecycle, record.key, record.startedAtMs, nowMs)) return 0;
  try {
    return (await files.abort()) ? 1 : 0;
  } catch (error) {
    // Another process ended the upload and removed its files.
    if (isHoldfastError(error, "NO_SUCH_UPLOAD")) return 0;
    throw error;
  }
}

/**
 * The process that aborted the upload removes its files itself. If another process removed them,
 * that process could not tell its own abort from a completion whose version was deleted since.
 */
async function removeAborted(bucket: OpenBucket, files: UploadFiles, { holder }: AbortRecord): Promise<number> {
  if (holder !== undefined && !(await bucket.storage.ground.settle(holder))) return 0;
  await files.remove();
  return 1;
}
