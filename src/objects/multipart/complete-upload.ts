// Completing an upload: its parts become the body of a version where they are, and of many
// completers one decides.
import { createHash } from "node:crypto";
import { outcomeUnknown } from "../../durable/publish/publish.ts";
import { holdfastError } from "../../errors.ts";
import { findSlot } from "../key/entry-file.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import { attributesOf, type KeyVersion } from "../key/key-history.ts";
import { readVersions } from "../listing/list-page.ts";
import type { BodyPart, Checksum, PartRun } from "../model/entry.ts";
import type { ObjectVersion, Preconditions } from "../model/object-store.ts";
import { nullVersionId } from "../model/version-id.ts";
import { deleteObject } from "../version/delete-version.ts";
import { bodyFilesOf } from "../version/body-parts.ts";
import { findVersion } from "../version/find-version.ts";
import { mustMeet } from "../version/preconditions.ts";
import { putStaged, type Announce } from "../version/put-version.ts";
import { isSameChecksum, joinChecksums } from "./joined-checksum.ts";
import { noSuchUpload, type UploadFiles } from "./upload-files.ts";
import type { Completion, PartRecord, UploadEnd, UploadRecord } from "./upload-records.ts";

const partsMax = 10_000;

export interface NamedPart {
  partNumber: number;
  etag: string;
  checksum?: Checksum | undefined;
}

/** What a completer says: its parts, and perhaps the checksum of the whole. */
export interface NamedParts {
  readonly parts: readonly NamedPart[];
  readonly checksum?: Checksum | undefined;
}

/** NO_SUCH_UPLOAD, INVALID_PART, BAD_DIGEST, PRECONDITION_FAILED. */
export async function completeUpload(
  files: UploadFiles,
  named: NamedParts,
  preconditions: Preconditions,
  announce: Announce,
): Promise<ObjectVersion> {
  const { bucket } = files;
  const upload = await files.find();
  if (upload === undefined) throw noSuchUpload(files.id);
  const { key, facts } = upload;
  const end = (await files.findEnd()) ?? (await decideEnd(files, upload, named, preconditions));
  if (end.kind === "abort") throw noSuchUpload(files.id);
  mustBeOf(key, end, named);
  let isPlaced = false;
  const findPlaced = async (head: KeyHead | undefined, open: OpenKey): Promise<KeyVersion | undefined> => {
    const found = head && (await findCompleted(head, open, end, files));
    isPlaced = found !== undefined;
    // Its files go with its version: it was completed, and the version is deleted.
    if (!isPlaced && !(await files.isThere())) throw noSuchUpload(files.id);
    return found;
  };
  const { id, size, etag, checksum, parts } = end;
  const body = {
    size,
    etag,
    ...bodyFilesOf(parts, files.endFile),
    ...runsOf(parts),
    ...(checksum === undefined ? {} : { checksum }),
  };
  const version = await putStaged(bucket, { key, facts, preconditions, findPlaced }, body, announce, id);
  if (await isCompleted(files, version, isPlaced ? undefined : id, announce)) return version;
  throw noSuchUpload(files.id);
}

/** What holds from now on: this completion, or what another process has decided. */
async function decideEnd(
  files: UploadFiles,
  upload: UploadRecord,
  named: NamedParts,
  preconditions: Preconditions,
): Promise<UploadEnd> {
  const { bucket } = files;
  try {
    const proposal = await completionOf(files, upload, named);
    const current = await bucket.useKey(upload.key, (open) => findVersion(open, upload.key, undefined));
    // Before the end is decided: an upload that may not be completed now may be later.
    mustMeet(upload.key, current?.version, preconditions);
    const { incarnation = "", number = 0 } = current?.head ?? {};
    return await files.decide({ ...proposal, behind: { incarnation, number } });
  } catch (error) {
    // Decided meanwhile: what counts is what that one has named, not the parts as they are now.
    const end = await files.findEnd();
    if (end !== undefined) return end;
    throw (await files.find()) === undefined ? noSuchUpload(files.id) : error;
  }
}

/** INVALID_PART, BAD_DIGEST when a completion has named other parts. */
function mustBeOf(key: string, { list, checksum }: Completion, { parts, checksum: expected }: NamedParts): void {
  if (list !== listOf(parts)) throw invalidPart(parts[0]?.partNumber ?? 0, "the upload was completed with other parts");
  mustHave(key, checksum, expected);
}

/**
 * Whether the version that was found or put counts. The files of an upload go with its version, and
 * after it. If they are gone, and another completer had put the version, it is deleted. If this one
 * has put it (`ownId`) and it is gone as well, it was there, and another version has taken its place.
 * If it is still there, it never had a body: the upload was completed and deleted before. It goes.
 * OUTCOME_UNKNOWN when that cannot be found out: the version may be there.
 */
async function isCompleted(
  files: UploadFiles,
  { key, versionId }: ObjectVersion,
  ownId: string | undefined,
  announce: Announce,
): Promise<boolean> {
  try {
    if (await files.isThere()) return true;
    if (ownId === undefined) return false;
    const versions = await readVersions(files.bucket, key);
    if (!versions.some(({ entry }) => entry.id === ownId)) return true;
    if (versionId !== nullVersionId) await deleteObject(files.bucket, key, { versionId }, announce);
    return false;
  } catch (error) {
    throw outcomeUnknown(files.directory, error);
  }
}

/** The version that another completer has put, or this one before its answer was lost. */
async function findCompleted(
  head: KeyHead,
  { chain }: OpenKey,
  { id, behind }: Completion,
  { bucket, id: uploadId }: UploadFiles,
): Promise<KeyVersion | undefined> {
  const first = behind.incarnation === head.incarnation ? behind.number + 1 : 1;
  // From the newest on: it was put a moment ago, if at all.
  for (let slot = head.number; slot >= first; slot--) {
    const found = await findSlot(bucket.place.disk, chain.names.slotPath(head.incarnation, slot));
    if (found?.entry.id !== id) continue;
    // It was completed, and the version is deleted.
    if (found.entry.kind !== "put") throw noSuchUpload(uploadId);
    return { slot, entry: found.entry, bodyAt: found.bodyAt, ...attributesOf(found.entry) };
  }
  return undefined;
}

/** INVALID_PART, BAD_DIGEST. */
async function completionOf(
  files: UploadFiles,
  { key, checksum: kind }: UploadRecord,
  { parts: named, checksum: expected }: NamedParts,
): Promise<Omit<Completion, "behind">> {
  if (named.length === 0) throw invalidPart(0, "no parts are named");
  if (named.length > partsMax) throw invalidPart(partsMax + 1, `there are more than ${partsMax}`);
  const parts: PartRecord[] = [];
  const md5 = createHash("md5");
  const found = await files.findParts(named.map(({ partNumber }) => partNumber));
  for (const [index, { partNumber, etag, checksum }] of named.entries()) {
    if (partNumber <= (parts.at(-1)?.partNumber ?? 0))
      throw invalidPart(partNumber, "parts are named in ascending order");
    const part = found[index];
    if (part === undefined) throw invalidPart(partNumber, "it was not uploaded");
    if (part.etag !== etag.replaceAll('"', "")) throw invalidPart(partNumber, `its ETag is ${part.etag}, not ${etag}`);
    if (checksum !== undefined && checksum.value !== part.checksum?.value)
      throw invalidPart(partNumber, `its ${checksum.algorithm} is not ${checksum.value}`);
    md5.update(Buffer.from(part.etag, "hex"));
    parts.push(part);
  }
  const checksum = kind && joinChecksums(kind, parts);
  mustHave(key, checksum, expected);
  return {
    kind: "complete",
    id: files.bucket.place.newId(),
    list: listOf(named),
    size: parts.reduce((sum, { size }) => sum + size, 0),
    etag: `${md5.digest("hex")}-${parts.length}`,
    ...(checksum === undefined ? {} : { checksum }),
    parts: parts.map(({ file, size, sha256, checksum: own }) => ({
      file,
      size,
      sha256,
      ...(own === undefined || own.algorithm !== kind?.algorithm ? {} : { sum: own.value }),
    })),
  };
}

function listOf(named: readonly NamedPart[]): string {
  return named.map(({ partNumber, etag }) => `${partNumber}:${etag.replaceAll('"', "")}`).join(",");
}

/** BAD_DIGEST when the whole object has another checksum than was declared. */
function mustHave(key: string, found: Checksum | undefined, declared: Checksum | undefined): void {
  if (declared === undefined || (found !== undefined && isSameChecksum(declared, found))) return;
  const message = `The object ${JSON.stringify(key)} was not completed: its ${declared.algorithm} is ${found?.value ?? "not known"}, and ${declared.value} was declared. Upload the parts again, or correct the checksum.`;
  throw holdfastError("BAD_DIGEST", message, { key });
}

/** More than these do not fit into a record: then the parts of the object are not known one by one. */
const runsMax = 512;

function runsOf(parts: readonly BodyPart[]): { readonly partRuns?: readonly PartRun[] } {
  const partRuns: { size: number; count: number }[] = [];
  for (const { size } of parts) {
    const last = partRuns.at(-1);
    if (last?.size === size) last.count++;
    else partRuns.push({ size, count: 1 });
  }
  return partRuns.length > runsMax ? {} : { partRuns };
}

export function invalidPart(partNumber: number, why: string): Error {
  const message = `The part ${partNumber} cannot be used: ${why}. Upload it again, or correct the list.`;
  return holdfastError("INVALID_PART", message, { partNumber });
}
