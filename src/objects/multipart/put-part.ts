// Putting a part of an upload: acknowledged only if a completion can name it, or has named it.
import type { Body } from "../../common.ts";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { stageFile, type Declared } from "../version/stage-body.ts";
import { noSuchUpload, type UploadFiles } from "./upload-files.ts";
import type { PartRecord } from "./upload-records.ts";

export interface NewPart {
  readonly partNumber: number;
  /** Of the object. */
  readonly key: string;
  readonly body: Body;
}

/** NO_SUCH_UPLOAD when the upload ended before the part did, and without it; BAD_DIGEST. */
export async function putPart(
  files: UploadFiles,
  { partNumber, key, body }: NewPart,
  declared: Declared,
): Promise<PartRecord> {
  const { bucket } = files;
  const file = files.newBodyFile();
  try {
    const { checksum, ...staged } = await stageFile(bucket, key, body, declared, file);
    const atMs = bucket.place.nowMs();
    const part = { partNumber, ...staged, file, atMs, ...(checksum === undefined ? {} : { checksum }) };
    // When this fails the body stays: it may be named by now.
    await files.setPart(part);
    if (await isInTime(files, part)) return part;
  } catch (error) {
    // The upload was aborted or completed meanwhile.
    throw hasErrno(error, "ENOENT") ? noSuchUpload(files.id) : error;
  }
  await unlinkIfThere(bucket.place.disk, bucket.bodyPath(file)).catch(() => undefined);
  throw noSuchUpload(files.id);
}

/**
 * Asked after the part has its name: a completion that comes later finds it. The end first, and then
 * the record, which goes before the end does: if it is there, no end had been decided by then. And
 * the end again, because it may have been decided since by a completer that had read an older part.
 */
async function isInTime(files: UploadFiles, { file }: PartRecord): Promise<boolean> {
  let end = await files.findEnd();
  if (end === undefined) {
    if (!(await files.isThere())) return false;
    end = await files.findEnd();
  }
  return end === undefined || (end.kind === "complete" && end.parts.some((each) => each.file === file));
}
