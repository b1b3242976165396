// Multipart uploads: begin, upload and copy parts, abort.
import type { Checksum, ChecksumAlgorithm } from "../../../objects/index.ts";
import { initiatorOf } from "../../access/principal.ts";
import { findAlgorithm } from "../../body/checksum.ts";
import { openBody } from "../../body/incoming-body.ts";
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { findHeader, getKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { findSource, sourceHeader } from "../object/copy-object.ts";
import { checksumHeaders, quoted } from "../object/object-headers.ts";
import { attributesOf } from "../object/put-attributes.ts";
import { bucketOf, getPartNumber, operation, type Operation } from "../operation.ts";

const partBytesMax = 5 * 1024 ** 3;

export const createMultipartUpload: Operation = operation(
  "CreateMultipartUpload",
  "write",
  async (request, service) => {
    const bucket = await bucketOf(request, service);
    const key = getKey(request);
    const algorithm = findAlgorithm(findHeader(request, "x-amz-checksum-algorithm"));
    const wanted = findChecksumType(request);
    if (algorithm === undefined && wanted !== undefined)
      throw new S3Error("InvalidRequest", {
        message: "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
      });
    const kind = algorithm === undefined ? undefined : checksumKind(wanted, algorithm);
    const { id } = await bucket.createUpload(key, {
      ...(await attributesOf(request, service, bucket)),
      ...(kind === undefined ? {} : { checksum: kind }),
      initiator: initiatorOf(request.principal),
    });
    const headers =
      kind === undefined
        ? {}
        : { "x-amz-checksum-algorithm": kind.algorithm, "x-amz-checksum-type": typeName(kind.type) };
    return xmlAnswer("InitiateMultipartUploadResult", { Bucket: bucket.name, Key: key, UploadId: id }, headers);
  },
);

export function typeName(type: Checksum["type"]): string {
  return type === "composite" ? "COMPOSITE" : "FULL_OBJECT";
}

type ChecksumKind = { readonly algorithm: ChecksumAlgorithm; readonly type: "full" | "composite" };

const types = ["FULL_OBJECT", "COMPOSITE"] as const;

/** Throws InvalidRequest. */
export function findChecksumType(request: S3Request): (typeof types)[number] | undefined {
  const text = findHeader(request, "x-amz-checksum-type");
  const found = types.find((type) => type === text?.toUpperCase());
  if (text === undefined || found !== undefined) return found;
  throw new S3Error("InvalidRequest", { message: "Value for x-amz-checksum-type header is invalid." });
}

/**
 * CRCs of parts can be combined to that of the object. Hashes cannot, so only a composite of them
 * exists.
 */
function checksumKind(wanted: (typeof types)[number] | undefined, algorithm: ChecksumAlgorithm): ChecksumKind {
  const isHash = algorithm === "SHA1" || algorithm === "SHA256";
  if ((wanted === "FULL_OBJECT" && isHash) || (wanted === "COMPOSITE" && algorithm === "CRC64NVME"))
    throw new S3Error("InvalidRequest", {
      message: `The ${wanted} checksum type cannot be used with the ${algorithm.toLowerCase()} checksum algorithm.`,
    });
  const type = wanted === undefined ? (algorithm === "CRC64NVME" ? "FULL_OBJECT" : "COMPOSITE") : wanted;
  return { algorithm, type: type === "FULL_OBJECT" ? "full" : "composite" };
}

export const uploadPart: Operation = operation("UploadPart", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const upload = await bucket.upload(getKey(request), uploadIdOf(request));
  const partNumber = getPartNumber(request);
  const { stream, size, checksum, check } = openBody(request);
  const [asked, given] = [upload.checksum?.algorithm, checksum?.algorithm];
  if (asked !== undefined && given !== undefined && asked !== given)
    throw new S3Error("InvalidRequest", {
      message: `Checksum Type mismatch occurred, expected checksum Type: ${asked.toLowerCase()}, actual checksum Type: ${given.toLowerCase()}`,
    });
  const part = await upload.put(partNumber, stream, {
    size,
    check,
    ...(checksum === undefined ? {} : { checksum: { algorithm: checksum.algorithm } }),
    signal: request.signal,
  });
  return emptyAnswer(200, {
    etag: quoted(part.etag),
    ...(part.checksum === undefined ? {} : partChecksum(part.checksum)),
  });
});

function partChecksum(checksum: Checksum): Record<string, string | undefined> {
  return { ...checksumHeaders(checksum), "x-amz-checksum-type": undefined };
}

export const uploadPartCopy: Operation = operation("UploadPartCopy", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const upload = await bucket.upload(getKey(request), uploadIdOf(request));
  const partNumber = getPartNumber(request);
  const { version, name, ...source } = await findSource(request, service);
  const range = copyRange(request);
  if (range !== undefined && range.end >= version.size)
    throw new S3Error("InvalidRange", {
      message: `Range specified is not valid for source object of size: ${version.size}`,
      details: { ActualObjectSize: String(version.size) },
    });
  if ((range === undefined ? version.size : range.end - range.start + 1) > partBytesMax)
    throw new S3Error("InvalidRequest", {
      message: `The specified copy source is larger than the maximum allowable size for a copy source: ${partBytesMax}`,
    });
  const from = { bucket: source.bucket.name, key: name.key, versionId: version.versionId };
  const part = await upload.copy(partNumber, range === undefined ? from : { ...from, range }, {
    signal: request.signal,
  });
  const { lastModified, etag, checksum } = part;
  return xmlAnswer(
    "CopyPartResult",
    {
      LastModified: lastModified,
      ETag: quoted(etag),
      ...(checksum === undefined ? {} : { [`Checksum${checksum.algorithm}`]: checksum.value }),
    },
    sourceHeader(version),
  );
});

function copyRange(request: S3Request): { readonly start: number; readonly end: number } | undefined {
  const text = findHeader(request, "x-amz-copy-source-range");
  if (text === undefined) return undefined;
  const match = /^bytes=([0-9]{1,15})-([0-9]{1,15})$/.exec(text);
  const [start, end] = [Number(match?.[1]), Number(match?.[2])];
  if (match !== null && start <= end) return { start, end };
  throw new S3Error("InvalidArgument", {
    message:
      "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy",
    details: { ArgumentName: "x-amz-copy-source-range", ArgumentValue: text },
  });
}

export function uploadIdOf({ query }: S3Request): string {
  const id = query.get("uploadId");
  if (id === undefined || id === "") throw new S3Error("NoSuchUpload", { details: { UploadId: "" } });
  return id;
}

export const abortMultipartUpload: Operation = operation("AbortMultipartUpload", "write", async (request, service) => {
  const upload = await (await bucketOf(request, service)).upload(getKey(request), uploadIdOf(request));
  await upload.abort();
  return emptyAnswer(204);
});
