// CopyObject: the source, its conditions, and the attributes that the copy inherits.
import type { Bucket, ObjectVersion } from "../../../objects/index.ts";
import { isHoldfastError } from "../../../index.ts";
import { hideAbsence, mustBeExpectedOwner, mustBeGranted } from "../../access/grant.ts";
import { covers } from "../../access/principal.ts";
import { findAlgorithm } from "../../body/checksum.ts";
import { xmlAnswer, type Answer } from "../../http/answer.ts";
import { findHeader, getKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { checksumAsXml, quoted, unquoted, versionHeader } from "./object-headers.ts";
import { attributesOf, preconditionsOf } from "./put-attributes.ts";
import { bucketOf, checkBucketName, operation, type Operation, type Service } from "../operation.ts";

const copyBytesMax = 5 * 1024 ** 3;
/** How often a copy is tried again because its source was overwritten. */
const attemptsMax = 5;

export const copyObject: Operation = operation("CopyObject", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const conditions = preconditionsOf(request);
  for (let attempt = 1; ; attempt++)
    try {
      return await copyOnce(request, service, bucket);
    } catch (error) {
      // The source changed between the check and the copy.
      const isChanged = Object.keys(conditions).length === 0 && isHoldfastError(error, "PRECONDITION_FAILED");
      if (!isChanged || attempt >= attemptsMax) throw error;
    }
});

async function copyOnce(request: S3Request, service: Service, bucket: Bucket): Promise<Answer> {
  const key = getKey(request);
  const source = await findSource(request, service);
  const directive = directiveOf(request, "x-amz-metadata-directive");
  const tagging = directiveOf(request, "x-amz-tagging-directive");
  const { name, version } = source;
  const isSelf = source.bucket.name === bucket.name && name.key === key && name.versionId === undefined;
  if (isSelf && directive === "COPY" && tagging === "COPY" && findHeader(request, "x-amz-storage-class") === undefined)
    throw new S3Error("InvalidRequest", {
      message:
        "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
    });
  if (version.size > copyBytesMax)
    throw new S3Error("InvalidRequest", {
      message: `The specified copy source is larger than the maximum allowable size for a copy source: ${copyBytesMax}`,
    });
  const { metadata, tags, retention, legalHold, acl, ...headers } = await attributesOf(request, service, bucket);
  const algorithm = findAlgorithm(findHeader(request, "x-amz-checksum-algorithm"));
  const { versionId } = version;
  const sourceTags = tagging === "REPLACE" ? {} : await source.bucket.tags(name.key, { versionId });
  // Copying tags needs two rights: to read those of the source, and to tag the target.
  if (Object.keys(sourceTags).length > 0) {
    await mustBeGranted(request, source.bucket, { ...name, operation: "GetObjectTagging" });
    await mustBeGranted(request, bucket, { operation: "PutObjectTagging", key });
  }
  const copied = await bucket.copy({ bucket: source.bucket.name, key: name.key, versionId }, key, {
    ...(directive === "REPLACE" ? { ...headers, metadata } : { ...version.headers, metadata: version.metadata }),
    tags: tagging === "REPLACE" ? (tags ?? {}) : sourceTags,
    ...(retention === undefined ? {} : { retention }),
    ...(legalHold === undefined ? {} : { legalHold }),
    ...(acl === undefined ? {} : { acl }),
    ...(algorithm === undefined ? {} : { checksum: { algorithm } }),
    ...preconditionsOf(request),
    attributes: "replace",
    // Copies exactly the version that was checked.
    sourceIfMatch: version.etag,
    signal: request.signal,
  });
  const { lastModified, etag, checksum } = copied;
  const content = { LastModified: lastModified, ETag: quoted(etag) };
  return xmlAnswer("CopyObjectResult", checksum === undefined ? content : { ...content, ...checksumAsXml(checksum) }, {
    ...versionHeader(copied),
    ...sourceHeader(version),
  });
}

/** The id of the copied version, unless it is the null version. */
export function sourceHeader({ versionId }: ObjectVersion): Record<string, string> {
  return versionId === "null" ? {} : { "x-amz-copy-source-version-id": versionId };
}

export interface CopySource {
  readonly bucket: Bucket;
  /** The source as the client named it. */
  readonly name: SourceName;
  readonly version: ObjectVersion;
}

interface SourceName {
  readonly bucket: string;
  readonly key: string;
  readonly versionId?: string;
}

/** Finds the source in x-amz-copy-source and checks its conditions on the version to be copied. */
export async function findSource(request: S3Request, service: Service): Promise<CopySource> {
  const name = parseSource(findHeader(request, "x-amz-copy-source") ?? "");
  if (request.principal.kind === "key" && !covers(request.principal.credentials, name.bucket, name.key))
    throw new S3Error("AccessDenied");
  const bucket = await service.objects.bucket(name.bucket);
  await mustBeGranted(request, bucket, { ...name, operation: "GetObject" });
  await mustBeExpectedOwner(request, bucket, "x-amz-source-expected-bucket-owner");
  const version = await headSource(bucket, name).catch((error: unknown) =>
    hideAbsence(error, request, bucket, { key: name.key }),
  );
  checkSourceConditions(request, version);
  return { bucket, name, version };
}

async function headSource(bucket: Bucket, { key, versionId }: SourceName): Promise<ObjectVersion> {
  try {
    return await bucket.head(key, { versionId });
  } catch (error) {
    if (versionId !== undefined && isHoldfastError(error, "NO_SUCH_KEY") && error.deleteMarker !== undefined)
      throw new S3Error("InvalidRequest", {
        message: "The source of a copy request may not specifically refer to a delete marker by version id.",
        cause: error,
      });
    throw error;
  }
}

function parseSource(header: string): SourceName {
  const invalid = (): Error =>
    new S3Error("InvalidArgument", {
      message: "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
      details: { ArgumentName: "x-amz-copy-source", ArgumentValue: header },
    });
  const query = header.indexOf("?versionId=");
  const [path, version] = query < 0 ? [header] : [header.slice(0, query), header.slice(query + "?versionId=".length)];
  try {
    const decoded = decodeURIComponent(path).replace(/^\//, "");
    const slash = decoded.indexOf("/");
    if (slash < 1 || slash === decoded.length - 1) throw invalid();
    const name = { bucket: checkBucketName(decoded.slice(0, slash)), key: decoded.slice(slash + 1) };
    return version === undefined ? name : { ...name, versionId: decodeURIComponent(version) };
  } catch {
    throw invalid();
  }
}

function checkSourceConditions(request: S3Request, { etag, lastModified }: ObjectVersion): void {
  const get = (name: string): string | undefined => findHeader(request, `x-amz-copy-source-${name}`);
  const [match, noneMatch] = [get("if-match"), get("if-none-match")];
  const stampMs = Math.floor(lastModified.getTime() / 1000) * 1000;
  const [modifiedMs, unmodifiedMs] = [get("if-modified-since"), get("if-unmodified-since")].map((text) =>
    text === undefined ? Number.NaN : Date.parse(text),
  ) as [number, number];
  const fails =
    (match !== undefined && match !== "*" && unquoted(match) !== etag) ||
    (noneMatch !== undefined && (noneMatch === "*" || unquoted(noneMatch) === etag)) ||
    (match === undefined && stampMs > unmodifiedMs) ||
    (noneMatch === undefined && modifiedMs <= Date.now() && stampMs <= modifiedMs);
  if (fails) throw new S3Error("PreconditionFailed");
}

function directiveOf(request: S3Request, name: string): "COPY" | "REPLACE" {
  const text = findHeader(request, name) ?? "COPY";
  if (text === "COPY" || text === "REPLACE") return text;
  throw new S3Error("InvalidArgument", {
    message: name === "x-amz-metadata-directive" ? "Unknown metadata directive." : "Unknown tagging directive.",
    details: { ArgumentName: name, ArgumentValue: text },
  });
}
