// Lists the parts of an upload, and the uploads in progress in a bucket.
import type { Bucket, UploadPartInfo, UploadInfo } from "../../../objects/index.ts";
import { accountAsXml, enforcesOwner, ownerOf } from "../../access/account.ts";
import { xmlAnswer } from "../../http/answer.ts";
import { findCount, getKey } from "../../http/request.ts";
import type { XmlContent } from "../../http/xml-out.ts";
import { encodingOf } from "../bucket/listings.ts";
import { quoted } from "../object/object-headers.ts";
import { bucketOf, operation, type Operation } from "../operation.ts";
import { pageMax } from "./complete.ts";
import { typeName, uploadIdOf } from "./uploads.ts";

export const listParts: Operation = operation("ListParts", "read", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const key = getKey(request);
  const upload = await bucket.upload(key, uploadIdOf(request));
  const after = findCount(request, "part-number-marker") ?? 0;
  const limit = findCount(request, "max-parts", pageMax) ?? pageMax;
  const { parts, next } = limit === 0 ? { parts: [] } : await upload.parts({ after, limit });
  const { encode, encodingType } = encodingOf(request);
  const people = await peopleOf(bucket);
  return xmlAnswer("ListPartsResult", {
    Bucket: bucket.name,
    Key: encode(key),
    UploadId: upload.id,
    ...people(upload),
    StorageClass: "STANDARD",
    PartNumberMarker: after,
    NextPartNumberMarker: next ?? parts.at(-1)?.partNumber ?? 0,
    MaxParts: limit,
    IsTruncated: next !== undefined,
    EncodingType: encodingType,
    ChecksumAlgorithm: upload.checksum?.algorithm,
    ChecksumType: upload.checksum && typeName(upload.checksum.type),
    Part: parts.map(partAsXml),
  });
});

/**
 * The initiator of an upload and the future owner of its object: the same account, unless the
 * bucket enforces its owner. Uploads of an older release do not name their initiator.
 */
async function peopleOf(bucket: Bucket): Promise<(upload: UploadInfo) => Record<string, XmlContent>> {
  const owner = await ownerOf(bucket);
  const isEnforced = enforcesOwner((await bucket.config()).documents);
  return ({ initiator = owner }) => ({
    Initiator: accountAsXml(initiator),
    Owner: accountAsXml(isEnforced ? owner : initiator),
  });
}

function partAsXml({ partNumber, etag, size, lastModified, checksum }: UploadPartInfo): XmlContent {
  const own = checksum === undefined ? {} : { [`Checksum${checksum.algorithm}`]: checksum.value };
  return { PartNumber: partNumber, LastModified: lastModified, ETag: quoted(etag), Size: size, ...own };
}

export const listMultipartUploads: Operation = operation("ListMultipartUploads", "read", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const [prefix, delimiter, keyMarker, idMarker] = ["prefix", "delimiter", "key-marker", "upload-id-marker"].map(
    (name) => request.query.get(name) || undefined,
  );
  const limit = findCount(request, "max-uploads", pageMax) ?? pageMax;
  const { encode, encodingType } = encodingOf(request);
  // As in S3, `upload-id-marker` is ignored without `key-marker`.
  const from = keyMarker === undefined ? {} : { keyMarker, idMarker };
  const page = await uploadsPage(bucket, { prefix: prefix ?? "", delimiter, ...from, limit });
  const people = await peopleOf(bucket);
  return xmlAnswer("ListMultipartUploadsResult", {
    Bucket: bucket.name,
    Prefix: encode(prefix ?? ""),
    Delimiter: delimiter && encode(delimiter),
    KeyMarker: encode(keyMarker ?? ""),
    UploadIdMarker: idMarker ?? "",
    NextKeyMarker: page.next && encode(page.next.keyMarker),
    NextUploadIdMarker: page.next?.idMarker,
    MaxUploads: limit,
    EncodingType: encodingType,
    IsTruncated: page.next !== undefined,
    Upload: page.uploads.map((upload) => ({
      Key: encode(upload.key),
      UploadId: upload.id,
      ...people(upload),
      StorageClass: "STANDARD",
      Initiated: upload.startedAt,
      ChecksumAlgorithm: upload.checksum?.algorithm,
      ChecksumType: upload.checksum && typeName(upload.checksum.type),
    })),
    CommonPrefixes: page.prefixes.map((Prefix) => ({ Prefix: encode(Prefix) })),
  });
});

interface UploadsWanted {
  readonly prefix: string;
  readonly delimiter: string | undefined;
  readonly keyMarker?: string | undefined;
  readonly idMarker?: string | undefined;
  readonly limit: number;
}

interface UploadsPage {
  readonly uploads: UploadInfo[];
  readonly prefixes: string[];
  readonly next?: { readonly keyMarker: string; readonly idMarker?: string | undefined };
}

/** Keys that contain the delimiter after the prefix are grouped under their common prefix. */
async function uploadsPage(
  bucket: Bucket,
  { prefix, delimiter, keyMarker, idMarker, limit }: UploadsWanted,
): Promise<UploadsPage> {
  const [uploads, prefixes]: [UploadInfo[], string[]] = [[], []];
  const commonOf = (key: string): string | undefined => {
    const end = delimiter === undefined ? -1 : key.indexOf(delimiter, prefix.length);
    return delimiter === undefined || end < 0 ? undefined : key.slice(0, end + delimiter.length);
  };
  let last: UploadsPage["next"] = keyMarker === undefined ? undefined : { keyMarker, idMarker };
  // If the marker is a common prefix, the page begins after all keys below it.
  let passed = keyMarker !== undefined && commonOf(keyMarker) === keyMarker ? keyMarker : undefined;
  if (limit === 0) return { uploads, prefixes };
  for (let from: UploadsPage["next"] | undefined = last; ;) {
    const page = await bucket.listUploads({ prefix, ...from, limit: pageMax });
    for (const upload of page.uploads) {
      // A damaged upload without a legible key cannot be listed here. It can be aborted by its id.
      if (upload.key === "") continue;
      // A marker without an upload id skips all uploads of its key.
      if (idMarker === undefined && upload.key === keyMarker) continue;
      const common = commonOf(upload.key);
      if (common !== undefined && common === passed) continue;
      if (uploads.length + prefixes.length >= limit) return { uploads, prefixes, ...(last && { next: last }) };
      if (common === undefined) uploads.push(upload);
      else prefixes.push(common);
      passed = common;
      last = common === undefined ? { keyMarker: upload.key, idMarker: upload.id } : { keyMarker: common };
    }
    if (page.nextKeyMarker === undefined) return { uploads, prefixes };
    from = { keyMarker: page.nextKeyMarker, idMarker: page.nextIdMarker };
  }
}
