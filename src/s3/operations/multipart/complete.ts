// CompleteMultipartUpload: the list of parts, their sizes and checksums.
import { isHoldfastError } from "../../../index.ts";
import type { Checksum, UploadPartInfo, Upload } from "../../../objects/index.ts";
import { checksumAlgorithms, checksumHeader, isChecksum } from "../../body/checksum.ts";
import { readSmallBody } from "../../body/incoming-body.ts";
import { xmlAnswer } from "../../http/answer.ts";
import { findHeader, getKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { malformed, readXml, type XmlElement } from "../../http/xml-in.ts";
import { checksumAsXml, quoted, unquoted, versionHeader } from "../object/object-headers.ts";
import { preconditionsOf } from "../object/put-attributes.ts";
import { bucketOf, locationOf, operation, type Operation } from "../operation.ts";
import { findChecksumType, typeName, uploadIdOf } from "./uploads.ts";

const partsMax = 10_000;
export const pageMax = 1000;
/** Minimum size of every part except the last. */
const partBytesMin = 5 * 1024 ** 2;

/** Fits a list of 10,000 parts. */
const documentBytesMax = 8 * 1024 ** 2;

export const completeMultipartUpload: Operation = operation(
  "CompleteMultipartUpload",
  "write",
  async (request, service) => {
    const bucket = await bucketOf(request, service);
    const key = getKey(request);
    const conditions = preconditionsOf(request);
    // A checksum header of this request is that of the object, not of this body.
    const bytes = await readSmallBody(request, documentBytesMax, { isOfBody: false });
    const root = await readXml(bytes, "CompleteMultipartUpload");
    const parts = root.all("Part").map(partOfXml);
    if (parts.length === 0 || parts.length > partsMax) throw malformed();
    if (parts.some(({ partNumber }, index) => index > 0 && partNumber <= (parts[index - 1]?.partNumber ?? 0)))
      throw new S3Error("InvalidPartOrder");
    const upload = await bucket.upload(key, uploadIdOf(request));
    const expected = expectedChecksum(request);
    checkChecksums(request, upload, parts);
    await checkSizes(upload, parts, findSize(request));
    const version = await upload.complete(parts, {
      ...conditions,
      ...(expected === undefined ? {} : { checksum: expected }),
      signal: request.signal,
    });
    const content = {
      Location: locationOf(request, bucket.name, key),
      Bucket: bucket.name,
      Key: key,
      ETag: quoted(version.etag),
      ...(version.checksum === undefined ? {} : checksumAsXml(version.checksum)),
    };
    return xmlAnswer("CompleteMultipartUploadResult", content, versionHeader(version));
  },
);

interface NamedUploadPart {
  readonly partNumber: number;
  readonly etag: string;
  readonly checksum?: Checksum;
}

/**
 * Throws InvalidRequest if the checksum type is not the one that the upload was created with, or if
 * a part lacks a required checksum.
 */
function checkChecksums(request: S3Request, { checksum }: Upload, parts: readonly NamedUploadPart[]): void {
  const type = findChecksumType(request);
  const asked = checksum && typeName(checksum.type);
  if (type !== undefined && asked !== undefined && type !== asked)
    throw new S3Error("InvalidRequest", {
      message: `The upload was created using the ${asked} checksum mode. The complete request must use the same checksum mode.`,
    });
  const without = parts.find((part) => part.checksum === undefined);
  if (asked !== "COMPOSITE" || without === undefined) return;
  throw new S3Error("InvalidRequest", {
    message: `The upload was created using a ${checksum?.algorithm.toLowerCase() ?? ""} checksum. The complete request must include the checksum for each part. It was missing for part ${without.partNumber} in the request.`,
  });
}

/** Returns the size of the whole object that the client expects. Throws InvalidRequest. */
function findSize(request: S3Request): number | undefined {
  const text = findHeader(request, "x-amz-mp-object-size");
  if (text === undefined || /^[0-9]{1,15}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw new S3Error("InvalidRequest", { message: "Value for x-amz-mp-object-size header is invalid." });
}

/**
 * Throws EntityTooSmall or InvalidRequest. Skips an upload that has ended: it was checked when it
 * was completed.
 */
async function checkSizes(
  upload: Upload,
  named: readonly NamedUploadPart[],
  expected: number | undefined,
): Promise<void> {
  const found = new Map<number, UploadPartInfo>();
  try {
    for (let after: number | undefined = 0; after !== undefined;) {
      const page: Awaited<ReturnType<Upload["parts"]>> = await upload.parts({ after, limit: pageMax });
      for (const part of page.parts) found.set(part.partNumber, part);
      after = page.next;
    }
  } catch (error) {
    if (isHoldfastError(error, "NO_SUCH_UPLOAD")) return;
    throw error;
  }
  const size = named.reduce((sum, { partNumber }) => sum + (found.get(partNumber)?.size ?? Number.NaN), 0);
  if (expected !== undefined && size !== expected && !Number.isNaN(size))
    throw new S3Error("InvalidRequest", {
      message: `The provided 'x-amz-mp-object-size' header value ${expected} does not match what was computed: ${size}`,
    });
  for (const [index, { partNumber, etag }] of named.entries()) {
    const part = found.get(partNumber);
    // Missing parts and wrong ETags are left to the upload, which reports them.
    if (part === undefined || part.etag !== etag || index === named.length - 1 || part.size >= partBytesMin) continue;
    throw new S3Error("EntityTooSmall", {
      details: {
        ProposedSize: String(part.size),
        MinSizeAllowed: String(partBytesMin),
        PartNumber: String(partNumber),
        ETag: etag,
      },
    });
  }
}

/** Returns the checksum of the whole object. Throws InvalidRequest for two. */
function expectedChecksum(request: S3Request): Checksum | undefined {
  const given = checksumAlgorithms.filter((name) => findHeader(request, checksumHeader(name)) !== undefined);
  const [algorithm, second] = given;
  if (second !== undefined)
    throw new S3Error("InvalidRequest", {
      message: "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
    });
  if (algorithm === undefined) return undefined;
  const value = findHeader(request, checksumHeader(algorithm)) ?? "";
  // A composite checksum ends with the number of parts.
  if (isChecksum(algorithm, value.replace(/-[0-9]{1,5}$/, ""))) return { algorithm, value };
  throw new S3Error("InvalidRequest", { message: `Value for ${checksumHeader(algorithm)} header is invalid.` });
}

/** Throws MalformedXML or InvalidArgument. */
function partOfXml(part: XmlElement): NamedUploadPart {
  const text = part.getText("PartNumber");
  const partNumber = Number(text);
  if (!Number.isInteger(partNumber)) throw malformed();
  if (partNumber < 1 || partNumber > partsMax)
    throw new S3Error("InvalidArgument", {
      message: `PartNumber must be >= 1 and <= ${partsMax}`,
      details: { ArgumentName: "PartNumber", ArgumentValue: text },
    });
  const etag = unquoted(part.getText("ETag"));
  const [algorithm, second] = checksumAlgorithms.filter((name) => part.find(`Checksum${name}`) !== undefined);
  if (algorithm === undefined) return { partNumber, etag };
  const value = part.getText(`Checksum${algorithm}`);
  if (second !== undefined || !isChecksum(algorithm, value))
    throw new S3Error("InvalidArgument", {
      message: "Invalid Base64 or multiple checksums present in request",
      details: { ArgumentName: `Checksum${algorithm}`, ArgumentValue: value },
    });
  return { partNumber, etag, checksum: { algorithm, value } };
}
