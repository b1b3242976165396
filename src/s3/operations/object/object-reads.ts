// GetObject and HeadObject.
import { isHoldfastError } from "../../../index.ts";
import type { Bucket, Checksum, ObjectVersion, ReadOptions, StoredObject } from "../../../objects/index.ts";
import { isGranted } from "../../access/grant.ts";
import { emptyAnswer } from "../../http/answer.ts";
import { findHeader, getKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { bucketOf, findVersionId, invalidVersionId, isVersionId, operation, type Operation } from "../operation.ts";
import { expirationHeader } from "../bucket/expiration.ts";
import { findHeaderValue, headersOf, versionHeader } from "./object-headers.ts";
import { checkConditions, findPart, rangeOf, resolveRange, type UploadPart, type Range } from "./read-conditions.ts";

export const getObject: Operation = operation("GetObject", "read", async (request, service) => {
  refuseEncryption(request);
  const bucket = await bucketOf(request, service);
  const [key, versionId] = [getKey(request), findVersionId(request)];
  const read = async (range: ReadOptions["range"]): Promise<StoredObject> =>
    await orMarker(() => bucket.get(key, { versionId, range, signal: request.signal }), versionId);
  const { object, part } = request.query.has("partNumber")
    ? await openPart(request, bucket, read)
    : { object: await openRange(request, read), part: undefined };
  try {
    checkConditions(request, object);
    const more = await moreHeaders(request, bucket, object);
    const { status, headers } = describe(request, object, { range: object.range, part });
    return { status, headers: { ...headers, ...more }, body: isEmptyPart(part) ? "" : whole(object) };
  } catch (error) {
    await object[Symbol.asyncDispose]();
    throw error;
  }
});

/** How often a read is tried again because the version was replaced. */
const attemptsMax = 10;

/**
 * The position of a part depends on the version, so the part and the body must come from the same
 * one. Throws SlowDown.
 */
async function openPart(
  request: S3Request,
  bucket: Bucket,
  read: (range: ReadOptions["range"]) => Promise<StoredObject>,
): Promise<{ readonly object: StoredObject; readonly part: UploadPart | undefined }> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const version = await headOf(request, bucket);
    checkConditions(request, version);
    const part = await findPart(request, bucket, version);
    const object = await read(part?.range);
    if (object.etag === version.etag) return { object, part };
    await object[Symbol.asyncDispose]();
  }
  throw new S3Error("SlowDown");
}

/** Opens the requested range. Throws INVALID_RANGE only if the conditions of the request hold. */
async function openRange(
  request: S3Request,
  read: (range: ReadOptions["range"]) => Promise<StoredObject>,
): Promise<StoredObject> {
  const range = rangeOf(request);
  try {
    return await read(range);
  } catch (error) {
    if (!isHoldfastError(error, "INVALID_RANGE")) throw error;
    await using object = await read(undefined);
    checkConditions(request, object);
    throw error;
  }
}

async function* whole(object: StoredObject): AsyncGenerator<Uint8Array> {
  try {
    yield* object.stream();
  } finally {
    await object[Symbol.asyncDispose]();
  }
}

export const headObject: Operation = operation("HeadObject", "read", async (request, service) => {
  refuseEncryption(request);
  const bucket = await bucketOf(request, service);
  const version = await headOf(request, bucket);
  checkConditions(request, version);
  const part = await findPart(request, bucket, version);
  const range = part === undefined ? rangeOf(request) : part.range;
  const resolved = range && resolveRange(range, version.size);
  const { status, headers } = describe(request, version, { range: resolved, part });
  return emptyAnswer(status, { ...headers, ...(await moreHeaders(request, bucket, version)) });
});

/** Headers that depend on the bucket's settings. A header that the request may not see is undefined. */
async function moreHeaders(
  request: S3Request,
  bucket: Bucket,
  version: ObjectVersion,
): Promise<Record<string, string | undefined>> {
  const { versioning = "off" } = bucket.knownConfig() ?? {};
  const hidden: Record<string, undefined> = {};
  const [key, versionId] = [getKey(request), findVersionId(request)];
  for (const { operation, isSet, headers } of guarded(version))
    if (isSet && !(await isGranted(request, bucket, { operation, key, versionId })))
      for (const name of headers) hidden[name] = undefined;
  return {
    ...hidden,
    // In a bucket with versioning, a version without an id of its own is the null version.
    ...(version.versionId === "null" && versioning !== "off" ? { "x-amz-version-id": "null" } : {}),
    ...(version.isLatest ? await expirationHeader(bucket, version) : {}),
  };
}

interface GuardedHeaders {
  /** A caller sees these headers if it may perform this operation. */
  readonly operation: string;
  readonly isSet: boolean;
  readonly headers: readonly string[];
}

function guarded({ tagCount, retention, legalHold }: ObjectVersion): readonly GuardedHeaders[] {
  const lock = "x-amz-object-lock";
  return [
    { operation: "GetObjectTagging", isSet: tagCount !== undefined, headers: ["x-amz-tagging-count"] },
    {
      operation: "GetObjectRetention",
      isSet: retention !== undefined,
      headers: [`${lock}-mode`, `${lock}-retain-until-date`],
    },
    { operation: "GetObjectLegalHold", isSet: legalHold !== undefined, headers: [`${lock}-legal-hold`] },
  ];
}

/** Encryption is chosen by the put, not by the read. Throws InvalidArgument or InvalidRequest. */
function refuseEncryption(request: S3Request): void {
  if (findHeader(request, "x-amz-server-side-encryption") !== undefined)
    throw new S3Error("InvalidArgument", {
      message: "x-amz-server-side-encryption header is not supported for this operation.",
      details: { ArgumentName: "x-amz-server-side-encryption" },
    });
  if (findHeader(request, "x-amz-server-side-encryption-customer-algorithm") !== undefined)
    throw new S3Error("InvalidRequest", {
      message: "The encryption parameters are not applicable to this object.",
    });
}

/** Throws MethodNotAllowed for a delete marker requested by its id. */
export async function headOf(request: S3Request, bucket: Bucket): Promise<ObjectVersion> {
  const [key, versionId] = [getKey(request), findVersionId(request)];
  return await orMarker(async () => {
    const version = await bucket.head(key, { versionId, signal: request.signal });
    if (version.deleteMarker) throw markerError(version);
    return version;
  }, versionId);
}

async function orMarker<T>(read: () => Promise<T>, versionId?: string): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (versionId !== undefined && isHoldfastError(error, "NO_SUCH_KEY") && error.deleteMarker === versionId)
      throw markerError({ versionId });
    if (isHoldfastError(error, "NO_SUCH_VERSION") && !isVersionId(error.versionId))
      throw invalidVersionId(error.versionId);
    throw error;
  }
}

function markerError(version: Pick<ObjectVersion, "versionId"> & Partial<ObjectVersion>): Error {
  const headers = {
    allow: "DELETE",
    "x-amz-delete-marker": "true",
    ...(version.lastModified === undefined ? {} : { "last-modified": version.lastModified.toUTCString() }),
    ...versionHeader(version),
  };
  return new S3Error("MethodNotAllowed", { headers });
}

/** Which bytes of a version are sent: without a range, all of them. */
interface SentBytes {
  readonly range: Range | undefined;
  readonly part: UploadPart | undefined;
}

function isEmptyPart(part: UploadPart | undefined): boolean {
  return part !== undefined && part.range === undefined;
}

/**
 * Returns the checksum of the bytes that are sent; undefined if they are only a piece of what a
 * stored checksum covers.
 */
function checksumOf({ checksum, size }: ObjectVersion, { range, part }: SentBytes): Checksum | undefined {
  if (checksum === undefined) return undefined;
  if (part?.count !== undefined) return part.checksum === undefined ? undefined : { ...checksum, value: part.checksum };
  return range === undefined || range.end - range.start + 1 === size ? checksum : undefined;
}

function describe(
  request: S3Request,
  version: ObjectVersion,
  answered: SentBytes,
): { readonly status: number; readonly headers: Record<string, string | undefined> } {
  const { query, principal } = request;
  const { range, part } = answered;
  const withChecksum = findHeader(request, "x-amz-checksum-mode")?.toUpperCase() === "ENABLED";
  const headers = headersOf(version, withChecksum ? checksumOf(version, answered) : undefined);
  for (const [parameter, name] of Object.entries(overrides)) {
    const value = query.get(parameter);
    if (value === undefined) continue;
    if (principal.kind === "anonymous")
      throw new S3Error("InvalidRequest", {
        message: "Request specific response headers cannot be used for anonymous GET requests.",
      });
    const given = findHeaderValue(value);
    if (given === undefined)
      throw new S3Error("InvalidArgument", { details: { ArgumentName: parameter, ArgumentValue: value } });
    headers[name] = given;
  }
  if (part?.count !== undefined) headers["x-amz-mp-parts-count"] = String(part.count);
  // The id of the null version is sent only if the request named it.
  if (query.get("versionId") === "null") headers["x-amz-version-id"] = "null";
  const whole = isEmptyPart(part) ? 0 : version.size;
  headers["content-length"] = String(range === undefined ? whole : range.end - range.start + 1);
  if (range === undefined) return { status: 200, headers };
  headers["content-range"] = `bytes ${range.start}-${range.end}/${version.size}`;
  return { status: 206, headers };
}

const overrides: Readonly<Record<string, string>> = {
  "response-content-type": "content-type",
  "response-content-language": "content-language",
  "response-expires": "expires",
  "response-cache-control": "cache-control",
  "response-content-disposition": "content-disposition",
  "response-content-encoding": "content-encoding",
};
