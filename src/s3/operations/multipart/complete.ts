// Completing a multipart upload: its list of parts, their sizes and checksums.
import { isHoldfastError } from "../../../index.ts";
import type { Checksum, PartInfo, Upload } from "../../../objects/index.ts";
import { checksumAlgorithms, checksumHeader } from "../../body/checksum.ts";
import { readSmallBody } from "../../body/incoming-body.ts";
import { xmlAnswer } from "../../http/answer.ts";
import { findHeader, getKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { malformed, readXml, type XmlElement } from "../../http/xml-in.ts";
import { checksumAsXml, quoted, unquoted, versionHeader } from "../object/object-headers.ts";
import { preconditionsOf } from "../object/put-attributes.ts";
import { bucketOf, locationOf, operation, type Operation } from "../operation.ts";
import { uploadIdOf } from "./uploads.ts";

const partsMax = 10_000;
export const pageMax = 1000;
/** Of every part but the last. */
const partBytesMin = 5 * 1024 ** 2;

/** Of a list of 10,000 parts. */
const documentBytesMax = 8 * 1024 ** 2;

export const completeMultipartUpload: Operation = operation(
  "CompleteMultipartUpload",
  "write",
  async (request, place) => {
    const bucket = await bucketOf(request, place);
    const key = getKey(request);
    const conditions = preconditionsOf(request);
    // A checksum here is that of the object.
    const bytes = await readSmallBody(request, documentBytesMax, { isOfBody: false });
    const root = await readXml(bytes, "CompleteMultipartUpload");
    const parts = root.all("Part").map(partOfXml);
    if (parts.length === 0 || parts.length > partsMax) throw malformed();
    if (parts.some(({ partNumber }, index) => index > 0 && partNumber <= (parts[index - 1]?.partNumber ?? 0)))
      throw new S3Error("InvalidPartOrder");
    const upload = await bucket.upload(key, uploadIdOf(request));
    await checkSizes(upload, parts);
    const expected = expectedChecksum(request);
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

/** EntityTooSmall, InvalidPart. An upload that is over was checked when it was completed. */
async function checkSizes(
  upload: Upload,
  named: readonly { readonly partNumber: number; readonly etag: string }[],
): Promise<void> {
  const found = new Map<number, PartInfo>();
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
  for (const [index, { partNumber, etag }] of named.entries()) {
    const part = found.get(partNumber);
    // What is wrong with a part that is not there is told by the upload itself.
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

/** Of the whole object. InvalidRequest for two. */
function expectedChecksum(request: S3Request): Checksum | undefined {
  const given = checksumAlgorithms.filter((name) => findHeader(request, checksumHeader(name)) !== undefined);
  const [algorithm, second] = given;
  if (second !== undefined)
    throw new S3Error("InvalidRequest", {
      message: "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
    });
  return algorithm && { algorithm, value: findHeader(request, checksumHeader(algorithm)) ?? "" };
}

function partOfXml(part: XmlElement): { partNumber: number; etag: string; checksum?: Checksum } {
  const partNumber = Number(part.getText("PartNumber"));
  if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > partsMax) throw malformed();
  const algorithm = checksumAlgorithms.find((name) => part.find(`Checksum${name}`) !== undefined);
  const checksum =
    algorithm === undefined ? {} : { checksum: { algorithm, value: part.getText(`Checksum${algorithm}`) } };
  return { partNumber, etag: unquoted(part.getText("ETag")), ...checksum };
}
