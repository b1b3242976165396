// Reading objects: get and head.
import { isHoldfastError } from "../../../index.ts";
import type { Bucket, ObjectVersion, ReadOptions, StoredObject } from "../../../objects/index.ts";
import { emptyAnswer } from "../../http/answer.ts";
import { findHeader, getKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import {
  bucketOf,
  findVersionId,
  invalidVersionId,
  isVersionId,
  operation,
  type Operation,
  type Place,
} from "../operation.ts";
import { expirationHeader } from "../bucket/expiration.ts";
import { findHeaderValue, headersOf, versionHeader } from "./object-headers.ts";
import { checkConditions, partRange, rangeOf, resolveRange } from "./read-conditions.ts";

export const getObject: Operation = operation("GetObject", "read", async (request, place) => {
  refuseEncryption(request);
  const bucket = await bucketOf(request, place);
  const [key, versionId] = [getKey(request), findVersionId(request)];
  const read = async (range: ReadOptions["range"]): Promise<StoredObject> =>
    await orMarker(() => bucket.get(key, { versionId, range, signal: request.signal }), versionId);
  const object = await openRange(request, read);
  try {
    checkConditions(request, object);
    const { range, size } = object;
    const more = await moreHeaders(bucket, object);
    if (range === undefined)
      return { status: 200, headers: { ...more, ...describe(request, object, size) }, body: whole(object) };
    const headers = { ...more, ...describe(request, object, range.end - range.start + 1) };
    const contentRange = `bytes ${range.start}-${range.end}/${size}`;
    return { status: 206, headers: { ...headers, "content-range": contentRange }, body: whole(object) };
  } catch (error) {
    await object[Symbol.asyncDispose]();
    throw error;
  }
});

/** A range that no byte satisfies is an error, unless the conditions of the request are not met. */
async function openRange(
  request: S3Request,
  read: (range: ReadOptions["range"]) => Promise<StoredObject>,
): Promise<StoredObject> {
  if (request.query.has("partNumber")) {
    // Its bytes are known only when the object is.
    await using object = await read(undefined);
    const range = partRange(request, object);
    return await read(range);
  }
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

export const headObject: Operation = operation("HeadObject", "read", async (request, place) => {
  refuseEncryption(request);
  const bucket = await bucketOf(request, place);
  const version = await headOf(request, place, bucket);
  checkConditions(request, version);
  const { size } = version;
  const range = request.query.has("partNumber") ? partRange(request, version) : rangeOf(request);
  const more = await moreHeaders(bucket, version);
  if (range === undefined) return emptyAnswer(200, { ...more, ...describe(request, version, size) });
  const { start, end } = resolveRange(range, size);
  const headers = { ...more, ...describe(request, version, end - start + 1) };
  return emptyAnswer(206, { ...headers, "content-range": `bytes ${start}-${end}/${size}` });
});

/** What the settings of the bucket say of a version. */
async function moreHeaders(bucket: Bucket, version: ObjectVersion): Promise<Record<string, string>> {
  const { versioning = "off" } = bucket.knownConfig() ?? {};
  return {
    // Where versions have ids, one that has none of its own is the null version.
    ...(version.versionId === "null" && versioning !== "off" ? { "x-amz-version-id": "null" } : {}),
    ...(version.isLatest ? await expirationHeader(bucket, version) : {}),
  };
}

/** How an object is kept is said when it is put. InvalidArgument, InvalidRequest. */
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

/** MethodNotAllowed for a delete marker that is asked for by its id. */
export async function headOf(request: S3Request, place: Place, found?: Bucket): Promise<ObjectVersion> {
  const bucket = found ?? (await bucketOf(request, place));
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

/** The headers of an answer that carries `length` bytes. */
function describe(request: S3Request, version: ObjectVersion, length: number): Record<string, string | undefined> {
  const { query, principal } = request;
  const withChecksum = findHeader(request, "x-amz-checksum-mode")?.toUpperCase() === "ENABLED";
  const headers = headersOf(version, { withChecksum: withChecksum && length === version.size });
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
  if (query.has("partNumber") && version.partSizes !== undefined)
    headers["x-amz-mp-parts-count"] = String(version.partSizes.length);
  // A version without an id of its own is named only where it was asked for.
  if (query.get("versionId") === "null") headers["x-amz-version-id"] = "null";
  headers["content-length"] = String(length);
  return headers;
}

const overrides: Readonly<Record<string, string>> = {
  "response-content-type": "content-type",
  "response-content-language": "content-language",
  "response-expires": "expires",
  "response-cache-control": "cache-control",
  "response-content-disposition": "content-disposition",
  "response-content-encoding": "content-encoding",
};
