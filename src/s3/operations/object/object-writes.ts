// PutObject, DeleteObject and DeleteObjects.
import type { Bucket, DeleteOptions, Preconditions } from "../../../objects/index.ts";
import { isHoldfastError } from "../../../index.ts";
import { openBody } from "../../body/incoming-body.ts";
import { xmlBody } from "../../body/small-document.ts";
import { asS3Error, emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { findHeader, getKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { malformed } from "../../http/xml-in.ts";
import type { XmlContent } from "../../http/xml-out.ts";
import { mayRelease, mustBeGranted } from "../../access/grant.ts";
import { covers } from "../../access/principal.ts";
import { checksumHeaders, notImplemented, quoted, unquoted, versionHeader } from "./object-headers.ts";
import { expirationHeader } from "../bucket/expiration.ts";
import { attributesOf, preconditionsOf } from "./put-attributes.ts";
import { isListed } from "./read-conditions.ts";
import { bucketOf, findVersionId, invalidVersionId, isVersionId, operation, type Operation } from "../operation.ts";

export const putObject: Operation = operation("PutObject", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const key = getKey(request);
  const conditions = preconditionsOf(request);
  const attributes = await attributesOf(request, service, bucket);
  const { stream, size, checksum, check } = openBody(request);
  await checkEarly(bucket, key, conditions);
  const version = await bucket.put(key, stream, {
    ...attributes,
    ...conditions,
    size,
    check,
    checksum: { algorithm: checksum?.algorithm ?? "CRC64NVME" },
    signal: request.signal,
  });
  return emptyAnswer(200, {
    etag: quoted(version.etag),
    ...versionHeader(version),
    ...(await expirationHeader(bucket, version, attributes.tags ?? {})),
    ...(version.checksum === undefined ? {} : checksumHeaders(version.checksum)),
  });
});

/**
 * Checks conditions before the body is sent, so that a waiting client need not send it. The put
 * decides.
 */
async function checkEarly(bucket: Bucket, key: string, { ifMatch, ifNoneMatch }: Preconditions): Promise<void> {
  if (ifMatch === undefined && ifNoneMatch === undefined) return;
  const current = await bucket.head(key).catch((error: unknown) => {
    if (ifMatch === undefined && isHoldfastError(error, "NO_SUCH_KEY")) return undefined;
    throw error;
  });
  if (current === undefined) return;
  const failed = (Condition: string): Error => new S3Error("PreconditionFailed", { details: { Condition } });
  if (ifMatch !== undefined && !isListed(ifMatch, current.etag)) throw failed("If-Match");
  if (ifNoneMatch !== undefined && isListed(ifNoneMatch, current.etag)) throw failed("If-None-Match");
}

export const deleteObject: Operation = operation("DeleteObject", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const key = getKey(request);
  const conditions = deleteConditions({
    etag: findHeader(request, "if-match"),
    size: findHeader(request, "x-amz-if-match-size"),
    time: findHeader(request, "x-amz-if-match-last-modified-time"),
    versionId: request.query.get("versionId"),
  });
  const versionId = findVersionId(request);
  // The response repeats the id in a header, so it must be valid.
  if (versionId !== undefined && !isVersionId(versionId)) throw invalidVersionId(versionId);
  const options = {
    ...conditions,
    versionId,
    bypassGovernance: await bypasses(request, bucket, { key, versionId }),
    signal: request.signal,
  };
  const deleted = await bucket.delete(key, options);
  return emptyAnswer(204, {
    ...(deleted.versionId === undefined ? {} : { "x-amz-version-id": deleted.versionId }),
    ...(deleted.deleteMarker ? { "x-amz-delete-marker": "true" } : {}),
  });
});

interface DeleteConditions {
  readonly etag: string | undefined;
  readonly size: string | undefined;
  readonly time: string | undefined;
  readonly versionId: string | undefined;
}

/**
 * Returns the conditions of a delete, which apply to the current version. Throws NotImplemented if
 * the request names a version, and InvalidArgument.
 */
function deleteConditions({ etag, size, time, versionId }: DeleteConditions): DeleteOptions {
  if ([etag, size, time].every((each) => each === undefined)) return {};
  if (versionId !== undefined) throw notImplemented("A condition with a versionId");
  const lastModified = time === undefined ? undefined : new Date(time);
  if ((size !== undefined && !/^[0-9]{1,15}$/.test(size)) || Number.isNaN(lastModified?.getTime() ?? 0))
    throw new S3Error("InvalidArgument", { message: "A condition of the deletion is not a valid number or time." });
  return {
    ...(etag === undefined ? {} : { ifMatch: unquoted(etag) }),
    ...(size === undefined ? {} : { ifSize: Number(size) }),
    ...(lastModified === undefined ? {} : { ifLastModified: lastModified }),
  };
}

/** False for callers who may not bypass governance: the header is ignored. */
export async function bypasses(
  request: S3Request,
  bucket: Bucket,
  version: { readonly key: string; readonly versionId: string | undefined },
): Promise<boolean> {
  if (findHeader(request, "x-amz-bypass-governance-retention")?.toLowerCase() !== "true") return false;
  return await mayRelease(request, bucket, { operation: "BypassGovernance", ...version });
}

const deletesMax = 1000;
const deletesAtOnce = 32;

export const deleteObjects: Operation = operation("DeleteObjects", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const root = await xmlBody(request, "Delete");
  const wanted = root.all("Object");
  if (wanted.length === 0 || wanted.length > deletesMax) throw malformed();
  const isQuiet = root.findText("Quiet")?.toLowerCase() === "true";
  const items = wanted.map((item) => ({
    Key: item.getText("Key"),
    VersionId: item.findText("VersionId") || undefined,
    etag: item.findText("ETag"),
    size: item.findText("Size"),
    time: item.findText("LastModifiedTime"),
  }));
  const results: (XmlContent & object)[] = [];
  for (let at = 0; at < items.length; at += deletesAtOnce)
    results.push(
      ...(await Promise.all(items.slice(at, at + deletesAtOnce).map((item) => deleteOne(request, bucket, item)))),
    );
  const Deleted = results.filter((result) => !("Code" in result));
  const Errors = results.filter((result) => "Code" in result);
  return xmlAnswer("DeleteResult", { Deleted: isQuiet ? [] : Deleted, Error: Errors });
});

interface DeleteItem extends Omit<DeleteConditions, "versionId"> {
  readonly Key: string;
  readonly VersionId: string | undefined;
}

/** A failure is reported for this key only. */
async function deleteOne(
  request: S3Request,
  bucket: Bucket,
  { Key, VersionId, ...conditions }: DeleteItem,
): Promise<XmlContent & object> {
  try {
    if (request.principal.kind === "key" && !covers(request.principal.credentials, bucket.name, Key))
      throw new S3Error("AccessDenied");
    await mustBeGranted(request, bucket, { operation: "DeleteObject", key: Key, versionId: VersionId });
    const options = {
      ...deleteConditions({ ...conditions, versionId: VersionId }),
      versionId: VersionId,
      bypassGovernance: await bypasses(request, bucket, { key: Key, versionId: VersionId }),
      signal: request.signal,
    };
    const deleted = await bucket.delete(Key, options);
    return {
      Key,
      VersionId,
      DeleteMarker: deleted.deleteMarker ? true : undefined,
      DeleteMarkerVersionId: deleted.deleteMarker ? (deleted.versionId ?? VersionId) : undefined,
    };
  } catch (error) {
    const { code: Code, message: Message } = asS3Error(error);
    return { Key, VersionId, Code, Message };
  }
}
