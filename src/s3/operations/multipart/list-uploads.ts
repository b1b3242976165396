// What is under way: the parts of an upload, and the uploads of a bucket.
import type { Bucket, PartInfo, UploadInfo } from "../../../objects/index.ts";
import { accountAsXml, ownerOf } from "../../access/account.ts";
import { xmlAnswer } from "../../http/answer.ts";
import { findCount, getKey } from "../../http/request.ts";
import type { XmlContent } from "../../http/xml-out.ts";
import { encodingOf } from "../bucket/listings.ts";
import { quoted } from "../object/object-headers.ts";
import { bucketOf, operation, type Operation } from "../operation.ts";
import { pageMax } from "./complete.ts";
import { typeName, uploadIdOf } from "./uploads.ts";

export const listParts: Operation = operation("ListParts", "read", async (request, place) => {
  const bucket = await bucketOf(request, place);
  const key = getKey(request);
  const upload = await bucket.upload(key, uploadIdOf(request));
  const after = findCount(request, "part-number-marker") ?? 0;
  const limit = findCount(request, "max-parts", pageMax) ?? pageMax;
  const { parts, next } = limit === 0 ? { parts: [] } : await upload.parts({ after, limit });
  const { encode, encodingType } = encodingOf(request);
  const owner = accountAsXml(await ownerOf(bucket));
  return xmlAnswer("ListPartsResult", {
    Bucket: bucket.name,
    Key: encode(key),
    UploadId: upload.id,
    Initiator: owner,
    Owner: owner,
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

function partAsXml({ partNumber, etag, size, lastModified, checksum }: PartInfo): XmlContent {
  const own = checksum === undefined ? {} : { [`Checksum${checksum.algorithm}`]: checksum.value };
  return { PartNumber: partNumber, LastModified: lastModified, ETag: quoted(etag), Size: size, ...own };
}

export const listMultipartUploads: Operation = operation("ListMultipartUploads", "read", async (request, place) => {
  const bucket = await bucketOf(request, place);
  const [prefix, delimiter, keyMarker, idMarker] = ["prefix", "delimiter", "key-marker", "upload-id-marker"].map(
    (name) => request.query.get(name) || undefined,
  );
  const limit = findCount(request, "max-uploads", pageMax) ?? pageMax;
  const { encode, encodingType } = encodingOf(request);
  // Without the key that it belongs to, the id of an upload says nothing.
  const from = keyMarker === undefined ? {} : { keyMarker, idMarker };
  const page = await uploadsPage(bucket, { prefix: prefix ?? "", delimiter, ...from, limit });
  const owner = accountAsXml(await ownerOf(bucket));
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
    Upload: page.uploads.map(({ key, id, startedAt, checksum }) => ({
      Key: encode(key),
      UploadId: id,
      Initiator: owner,
      Owner: owner,
      StorageClass: "STANDARD",
      Initiated: startedAt,
      ChecksumAlgorithm: checksum?.algorithm,
      ChecksumType: checksum && typeName(checksum.type),
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

/** Uploads of keys that have the delimiter behind the prefix are told as their common beginning. */
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
  // A marker that is a common beginning stands for all that begins so.
  let passed = keyMarker !== undefined && commonOf(keyMarker) === keyMarker ? keyMarker : undefined;
  if (limit === 0) return { uploads, prefixes };
  for (let from: UploadsPage["next"] | undefined = last; ;) {
    const page = await bucket.listUploads({ prefix, ...from, limit: pageMax });
    for (const upload of page.uploads) {
      // The key of a marker that names no upload is passed over whole.
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
