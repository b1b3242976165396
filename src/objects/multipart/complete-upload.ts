// Completes an upload: its parts become the body of a version without being moved. Of several
// completers that compete, one decides.
import { createHash } from "node:crypto";
import { outcomeUnknown } from "../../durable/publish/publish.ts";
import { holdfastError } from "../../errors.ts";
import { findSlotOrDamage } from "../key/entry-file.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import { attributesOf, type KeyVersion } from "../key/key-versions.ts";
import { readVersions } from "../listing/list-page.ts";
import type { BodyFile, Checksum, ChecksumAlgorithm, UploadPartRun } from "../model/entry.ts";
import type { ObjectVersion, Preconditions } from "../model/object.ts";
import { nullVersionId } from "../model/version-id.ts";
import { deleteObject } from "../version/delete-version.ts";
import { bodyFilesOf } from "../version/body-files.ts";
import { findVersion } from "../version/find-version.ts";
import { hasPreconditions, mustMeet } from "../version/preconditions.ts";
import type { StagedBody } from "../version/stage-body.ts";
import { putStaged, type AnnounceKey } from "../version/put-version.ts";
import { isSameChecksum, joinChecksums } from "./joined-checksum.ts";
import { noSuchUpload, type UploadFiles } from "./upload-files.ts";
import type { CompletionRecord, UploadPartRecord, UploadEnd, UploadRecord } from "./upload-records.ts";

const partsMax = 10_000;

export interface NamedUploadPart {
  partNumber: number;
  etag: string;
  checksum?: Checksum | undefined;
}

/** The arguments of a completion: the parts, and optionally the checksum of the whole object. */
export interface NamedUploadParts {
  readonly parts: readonly NamedUploadPart[];
  readonly checksum?: Checksum | undefined;
}

/** Throws NO_SUCH_UPLOAD, INVALID_PART, BAD_DIGEST or PRECONDITION_FAILED. */
export async function completeUpload(
  files: UploadFiles,
  named: NamedUploadParts,
  preconditions: Preconditions,
  announce: AnnounceKey,
): Promise<ObjectVersion> {
  const { bucket } = files;
  const upload = await files.find();
  if (upload === undefined) throw noSuchUpload(files.id);
  const { key, facts } = upload;
  const end = (await files.findEnd()) ?? (await decideEnd(files, upload, named, preconditions));
  if (end.kind === "abort") throw noSuchUpload(files.id);
  mustBeOf(key, end, named);
  let isFound = false;
  const findExisting = async (head: KeyHead | undefined, open: OpenKey): Promise<KeyVersion | undefined> => {
    const found = head && (await findCompleted(head, open, end, files));
    isFound = found !== undefined;
    // The files of an upload are removed with its version, so this upload was completed and its
    // version deleted.
    if (!isFound && !(await files.isThere())) throw noSuchUpload(files.id);
    return found;
  };
  const { id, parts } = end;
  const body = { ...joinedFactsOf(end), ...bodyFilesOf(parts, files.endFile) };
  const version = await putStaged(bucket, { key, facts, preconditions, findExisting }, body, announce, id);
  if (await isCompleted(files, version, isFound ? undefined : id, announce)) return version;
  throw noSuchUpload(files.id);
}

/**
 * Proposes this completion as the end of the upload. Returns the end that was decided, which may be
 * that of another process.
 */
async function decideEnd(
  files: UploadFiles,
  upload: UploadRecord,
  named: NamedUploadParts,
  preconditions: Preconditions,
): Promise<UploadEnd> {
  const { bucket } = files;
  try {
    const found = await files.findParts(named.parts.map(({ partNumber }) => partNumber));
    const proposal = completionOf(bucket.storage.newId(), upload, named, found);
    // Checked before the end is decided: if the condition fails now, the upload can still be
    // completed later.
    if (hasPreconditions(preconditions)) {
      const current = await bucket.useKey(upload.key, (open) => findVersion(open, upload.key, undefined));
      mustMeet(upload.key, current?.version, preconditions);
    }
    const head = await bucket.useKey(upload.key, ({ chain }) => chain.findHead());
    const { incarnation = "", number = 0 } = head ?? {};
    return await files.decide({ ...proposal, behind: { incarnation, number } });
  } catch (error) {
    // Another process decided the end meanwhile. Its list of parts counts, not that of this caller.
    const end = await files.findEnd();
    if (end !== undefined) return end;
    throw (await files.find()) === undefined ? noSuchUpload(files.id) : error;
  }
}

/** Throws INVALID_PART or BAD_DIGEST if the upload was completed with other parts. */
export function mustBeOf(
  key: string,
  { list, checksum }: Pick<CompletionRecord, "list" | "checksum">,
  { parts, checksum: expected }: NamedUploadParts,
): void {
  if (list !== listOf(parts)) throw invalidPart(parts[0]?.partNumber ?? 0, "the upload was completed with other parts");
  mustHave(key, checksum, expected);
}

/**
 * True if the version that this completer found or put counts. The files of an upload are removed
 * with its version, after it. If the files are gone, there are three cases:
 * - Another completer put the version: it was deleted.
 * - This completer put it (`ownId`) and it is gone too: it existed, and another version replaced
 *   it.
 * - This completer put it and it still exists: it never had a body, because the upload had been
 *   completed and deleted before. It is removed.
 *
 * Throws OUTCOME_UNKNOWN if the check fails: the version may exist.
 */
async function isCompleted(
  files: UploadFiles,
  { key, versionId }: ObjectVersion,
  ownId: string | undefined,
  announce: AnnounceKey,
): Promise<boolean> {
  try {
    if (await files.isThere()) return true;
    if (ownId === undefined) return false;
    const { versions } = await readVersions(files.bucket, key);
    if (!versions.some(({ entry }) => entry.id === ownId)) return true;
    if (versionId !== nullVersionId) await deleteObject(files.bucket, key, { versionId }, announce);
    return false;
  } catch (error) {
    throw outcomeUnknown(files.directory, error);
  }
}

/** Finds the version that another completer put, or that this one put before its reply was lost. */
async function findCompleted(
  head: KeyHead,
  { chain }: OpenKey,
  { id, behind }: CompletionRecord,
  { bucket, id: uploadId }: UploadFiles,
): Promise<KeyVersion | undefined> {
  const first = behind.incarnation === head.incarnation ? behind.number + 1 : 1;
  // Searches from the newest entry back: the version, if it exists, was put a moment ago.
  for (let slot = head.number; slot >= first; slot--) {
    const found = await findSlotOrDamage(bucket.storage.disk, chain.names.slotPath(head.incarnation, slot));
    // The damaged entry may be the version of this upload, and there must not be a second one with
    // the same parts.
    if (found?.entry.kind === "damaged" && (found.entry.legible.id ?? id) === id) throw found.entry.error;
    if (found === undefined || found.entry.kind === "damaged" || found.entry.id !== id) continue;
    // The upload was completed, and its version was deleted.
    if (found.entry.kind !== "put") throw noSuchUpload(uploadId);
    return { slot, entry: found.entry, bodyAt: found.bodyAt, ...attributesOf(found.entry) };
  }
  return undefined;
}

/** Returns the end with the id `id`. `found` are the parts with the named numbers. Throws INVALID_PART or BAD_DIGEST. */
export function completionOf(
  id: string,
  { key, checksum: kind }: UploadRecord,
  { parts: named, checksum: expected }: NamedUploadParts,
  found: readonly (UploadPartRecord | undefined)[],
): Omit<CompletionRecord, "behind"> {
  if (named.length === 0) throw invalidPart(0, "no parts are listed");
  if (named.length > partsMax) throw invalidPart(partsMax + 1, `there are more than ${partsMax}`);
  const parts: UploadPartRecord[] = [];
  for (const [index, { partNumber, etag, checksum }] of named.entries()) {
    if (partNumber <= (parts.at(-1)?.partNumber ?? 0))
      throw invalidPart(partNumber, "parts must be listed in ascending order");
    const part = found[index];
    if (part === undefined) throw invalidPart(partNumber, "it was not uploaded");
    if (part.etag !== etag.replaceAll('"', "")) throw invalidPart(partNumber, `its ETag is ${part.etag}, not ${etag}`);
    if (checksum !== undefined && checksum.value !== part.checksum?.value)
      throw invalidPart(partNumber, `its ${checksum.algorithm} is not ${checksum.value}`);
    parts.push(part);
  }
  const checksum = kind && joinChecksums(kind, parts);
  mustHave(key, checksum, expected);
  return {
    kind: "complete",
    id,
    list: listOf(named),
    size: parts.reduce((sum, { size }) => sum + size, 0),
    etag: joinEtags(parts),
    ...(checksum === undefined ? {} : { checksum }),
    parts: bodyPartsOf(parts, kind?.algorithm),
  };
}

/** Returns the ETag of an object with these parts. */
export function joinEtags(parts: readonly UploadPartRecord[]): string {
  const md5 = createHash("md5");
  for (const { etag } of parts) md5.update(Buffer.from(etag, "hex"));
  return `${md5.digest("hex")}-${parts.length}`;
}

/** Adds the checksum of each part whose algorithm is the upload's. */
export function bodyPartsOf(parts: readonly UploadPartRecord[], algorithm: ChecksumAlgorithm | undefined): BodyFile[] {
  return parts.map(({ file, size, sha256, checksum }) => ({
    file,
    size,
    sha256,
    ...(checksum === undefined || checksum.algorithm !== algorithm ? {} : { sum: checksum.value }),
  }));
}

function listOf(named: readonly NamedUploadPart[]): string {
  return named.map(({ partNumber, etag }) => `${partNumber}:${etag.replaceAll('"', "")}`).join(",");
}

/** Throws BAD_DIGEST if the checksum of the whole object is not the declared one. */
function mustHave(key: string, found: Checksum | undefined, declared: Checksum | undefined): void {
  if (declared === undefined || (found !== undefined && isSameChecksum(declared, found))) return;
  const message = `The object ${JSON.stringify(key)} was not completed: its ${declared.algorithm} is ${found?.value ?? "unknown"}, but ${declared.value} was declared. Upload the parts again, or correct the checksum.`;
  throw holdfastError("BAD_DIGEST", message, { key });
}

/**
 * The maximum number of runs that fit into a record. With more, the sizes of the parts are not
 * recorded.
 */
const runsMax = 512;

/** The facts of a completed object, without where its body is. */
export function joinedFactsOf({ size, etag, checksum, parts }: Omit<CompletionRecord, "behind">): JoinedFacts {
  return { size, etag, ...runsOf(parts), ...(checksum === undefined ? {} : { checksum }) };
}

export type JoinedFacts = Pick<StagedBody, "size" | "etag" | "checksum" | "partRuns">;

function runsOf(parts: readonly BodyFile[]): { readonly partRuns?: readonly UploadPartRun[] } {
  const partRuns: { size: number; count: number }[] = [];
  for (const { size } of parts) {
    const last = partRuns.at(-1);
    if (last?.size === size) last.count++;
    else partRuns.push({ size, count: 1 });
  }
  return partRuns.length > runsMax ? {} : { partRuns };
}

export function invalidPart(partNumber: number, why: string): Error {
  const message = `Part ${partNumber} cannot be used: ${why}. Upload it again, or correct the list.`;
  return holdfastError("INVALID_PART", message, { partNumber });
}
