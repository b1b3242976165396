// Puts a part of an upload. It is acknowledged only if a completion can still name it, or has named
// it.
import type { Body } from "../../common.ts";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { stageFile, type DeclaredBody } from "../version/stage-body.ts";
import { noSuchUpload, type UploadFiles } from "./upload-files.ts";
import type { UploadPartRecord } from "./upload-records.ts";

export interface NewUploadPart {
  readonly partNumber: number;
  /** The key of the object. */
  readonly key: string;
  readonly body: Body;
}

/** Throws NO_SUCH_UPLOAD if the upload ended first without this part, and BAD_DIGEST. */
export async function putPart(
  files: UploadFiles,
  { partNumber, key, body }: NewUploadPart,
  declared: DeclaredBody,
): Promise<UploadPartRecord> {
  const { bucket } = files;
  const file = files.newBodyFile();
  try {
    const { checksum, ...staged } = await stageFile(bucket, key, body, declared, file);
    const atMs = bucket.storage.nowMs();
    const part = { partNumber, ...staged, file, atMs, ...(checksum === undefined ? {} : { checksum }) };
    // If this fails, the body is kept: a completion may already name it.
    await files.setPart(part);
    if (await isInTime(files, part)) return part;
  } catch (error) {
    // The upload was aborted or completed meanwhile.
    throw hasErrno(error, "ENOENT") ? noSuchUpload(files.id) : error;
  }
  await unlinkIfThere(bucket.storage.disk, bucket.bodyPath(file)).catch(() => undefined);
  throw noSuchUpload(files.id);
}

/**
 * True if a completion can still name the part, or has named it. Called after the part has its
 * name, so every later completion finds it. The record is removed before the end. So the end is
 * read first, then the record: if there was no end and the record exists, no end had been decided
 * by then. The end is then read again, because a completer that read an older part may have decided
 * since.
 */
async function isInTime(files: UploadFiles, { file }: UploadPartRecord): Promise<boolean> {
  let end = await files.findEnd();
  if (end === undefined) {
    if (!(await files.isThere())) return false;
    end = await files.findEnd();
  }
  return end === undefined || (end.kind === "complete" && end.parts.some((each) => each.file === file));
}
