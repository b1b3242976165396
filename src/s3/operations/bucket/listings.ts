// Listings of objects, in both versions of the operation, and of versions.
import type { DamagedVersion, ListPage, ObjectVersion, VersionPage } from "../../../objects/index.ts";
import { accountAsXml, ownerOf } from "../../access/account.ts";
import { xmlAnswer } from "../../http/answer.ts";
import { encodeUri } from "../../http/raw-target.ts";
import { findCount, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import type { XmlContent } from "../../http/xml-out.ts";
import { quoted } from "../object/object-headers.ts";
import { bucketOf, operation, type Operation } from "../operation.ts";

const keysMax = 1000;

export const listObjects: Operation = operation("ListObjects", "read", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const { prefix, delimiter, limit, encode, encodingType } = listArguments(request);
  const marker = request.query.get("marker") ?? "";
  const page =
    limit === 0 ? nothing : await bucket.list({ prefix, delimiter, after: marker === "" ? undefined : marker, limit });
  const { objects, prefixes, damaged, next } = page;
  const last = next ?? objects.at(-1)?.key;
  const owner = accountAsXml(await ownerOf(bucket));
  const content = {
    Name: bucket.name,
    Prefix: encode(prefix ?? ""),
    Marker: encode(marker),
    NextMarker: next !== undefined && delimiter !== undefined && last !== undefined ? encode(last) : undefined,
    MaxKeys: limit,
    Delimiter: delimiter === undefined ? undefined : encode(delimiter),
    EncodingType: encodingType,
    IsTruncated: next !== undefined,
    Contents: inOrder(objects, damaged).map((object) => entryOf(object, encode, owner)),
    CommonPrefixes: prefixes.map((Prefix) => ({ Prefix: encode(Prefix) })),
  };
  return xmlAnswer("ListBucketResult", content, damageHeaders(damaged));
});

export const listObjectsV2: Operation = operation("ListObjectsV2", "read", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const { prefix, delimiter, limit, encode, encodingType } = listArguments(request);
  const { query } = request;
  const [token, startAfter] = [query.get("continuation-token"), query.get("start-after")];
  // An empty token counts as absent.
  const after = token ? decodeToken(token) : startAfter;
  const page =
    limit === 0 ? nothing : await bucket.list({ prefix, delimiter, after: after === "" ? undefined : after, limit });
  const { prefixes, damaged, next } = page;
  const objects = inOrder(page.objects, damaged);
  const hasOwner = query.get("fetch-owner") === "true";
  const owner = accountAsXml(await ownerOf(bucket));
  const content = {
    Name: bucket.name,
    Prefix: encode(prefix ?? ""),
    StartAfter: startAfter === undefined ? undefined : encode(startAfter),
    ContinuationToken: token,
    NextContinuationToken: next === undefined ? undefined : encodeToken(next),
    KeyCount: objects.length + prefixes.length,
    MaxKeys: limit,
    Delimiter: delimiter === undefined ? undefined : encode(delimiter),
    EncodingType: encodingType,
    IsTruncated: next !== undefined,
    Contents: objects.map((object) => entryOf(object, encode, hasOwner ? owner : undefined)),
    CommonPrefixes: prefixes.map((Prefix) => ({ Prefix: encode(Prefix) })),
  };
  return xmlAnswer("ListBucketResult", content, damageHeaders(damaged));
});

export const listObjectVersions: Operation = operation("ListObjectVersions", "read", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const { prefix, delimiter, limit, encode, encodingType } = listArguments(request);
  const { query } = request;
  const [keyMarker, versionMarker] = [query.get("key-marker") ?? "", query.get("version-id-marker") ?? ""];
  if (versionMarker !== "" && keyMarker === "")
    throw new S3Error("InvalidArgument", {
      message: "A version-id marker cannot be specified without a key marker.",
      details: { ArgumentName: "version-id-marker", ArgumentValue: versionMarker },
    });
  const options = {
    prefix,
    delimiter,
    limit,
    keyMarker: keyMarker === "" ? undefined : keyMarker,
    versionMarker: versionMarker === "" ? undefined : versionMarker,
  };
  const page: VersionPage = limit === 0 ? { versions: [], prefixes: [] } : await bucket.listVersions(options);
  const { prefixes, damaged, nextKeyMarker, nextVersionMarker } = page;
  const versions = inOrder(
    page.versions,
    damaged?.filter(({ versionId }) => versionId !== undefined),
  );
  const owner = accountAsXml(await ownerOf(bucket));
  const content = {
    Name: bucket.name,
    Prefix: encode(prefix ?? ""),
    KeyMarker: encode(keyMarker),
    VersionIdMarker: versionMarker,
    NextKeyMarker: nextKeyMarker === undefined ? undefined : encode(nextKeyMarker),
    NextVersionIdMarker: nextVersionMarker,
    MaxKeys: limit,
    Delimiter: delimiter === undefined ? undefined : encode(delimiter),
    EncodingType: encodingType,
    IsTruncated: nextKeyMarker !== undefined,
    Version: versions.filter(({ deleteMarker }) => !deleteMarker).map((version) => versionOf(version, encode, owner)),
    DeleteMarker: versions
      .filter(({ deleteMarker }) => deleteMarker)
      .map((version) => versionOf(version, encode, owner)),
    CommonPrefixes: prefixes.map((Prefix) => ({ Prefix: encode(Prefix) })),
  };
  return xmlAnswer("ListVersionsResult", content, damageHeaders(damaged));
});

const nothing: ListPage = { objects: [], prefixes: [] };

/**
 * Unreadable versions are listed too, without size, ETag and time: a client that mirrors the bucket
 * must not take them for deleted, and its GET reports the damage.
 */
function inOrder(whole: readonly ObjectVersion[], damaged: readonly DamagedVersion[] = []): readonly ObjectVersion[] {
  if (damaged.length === 0) return whole;
  const shown = damaged.map(({ key, versionId = "", isLatest }) => ({ ...unreadable, key, versionId, isLatest }));
  return [...whole, ...shown].sort(
    (one, other) =>
      Buffer.compare(Buffer.from(one.key), Buffer.from(other.key)) || Number(other.isLatest) - Number(one.isLatest),
  );
}

const unreadable: Omit<ObjectVersion, "key" | "versionId" | "isLatest"> = {
  etag: "",
  size: 0,
  lastModified: new Date(0),
  deleteMarker: false,
  headers: {},
  metadata: {},
};

/** Tells the client how many entries of the page cannot be read. */
function damageHeaders(damaged: readonly DamagedVersion[] | undefined): Record<string, string | undefined> {
  return { "x-holdfast-damaged": damaged === undefined ? undefined : String(damaged.length) };
}

interface Encoding {
  readonly encodingType: string | undefined;
  readonly encode: (text: string) => string;
}

interface ListArguments extends Encoding {
  readonly prefix: string | undefined;
  readonly delimiter: string | undefined;
  readonly limit: number;
}

function listArguments(request: S3Request): ListArguments {
  const [prefix, delimiter] = ["prefix", "delimiter"].map((name) => request.query.get(name) || undefined);
  return { prefix, delimiter, limit: findCount(request, "max-keys", keysMax) ?? keysMax, ...encodingOf(request) };
}

/** The encoding of keys in a listing. Throws InvalidArgument. */
export function encodingOf({ query }: S3Request): Encoding {
  const encodingType = query.get("encoding-type");
  if (encodingType === undefined) return { encodingType, encode: (text) => text };
  if (encodingType !== "url")
    throw new S3Error("InvalidArgument", {
      message: "Invalid Encoding Method specified in Request",
      details: { ArgumentName: "encoding-type", ArgumentValue: encodingType },
    });
  return { encodingType, encode: (text) => encodeUri(text).replaceAll("%2F", "/").replaceAll("%20", "+") };
}

function entryOf(object: ObjectVersion, encode: (text: string) => string, owner?: XmlContent): XmlContent {
  const { key, lastModified, etag, size, checksum } = object;
  return {
    Key: encode(key),
    LastModified: lastModified,
    ETag: quoted(etag),
    ChecksumAlgorithm: checksum?.algorithm,
    ChecksumType: checksum && (checksum.type === "composite" ? "COMPOSITE" : "FULL_OBJECT"),
    Size: size,
    StorageClass: "STANDARD",
    Owner: owner,
  };
}

function versionOf(version: ObjectVersion, encode: (text: string) => string, owner: XmlContent): XmlContent {
  const { key, versionId, isLatest, lastModified, deleteMarker } = version;
  const common = {
    Key: encode(key),
    VersionId: versionId,
    IsLatest: isLatest,
    LastModified: lastModified,
    Owner: owner,
  };
  if (deleteMarker) return common;
  return { ...common, ETag: quoted(version.etag), Size: version.size, StorageClass: "STANDARD" };
}

/** Returns a token that is opaque to clients and safe in a URL. */
function encodeToken(after: string): string {
  return Buffer.from(after).toString("base64url");
}

function decodeToken(token: string): string {
  const after = Buffer.from(token, "base64url");
  if (after.toString("base64url") !== token.replace(/=+$/, ""))
    throw new S3Error("InvalidArgument", {
      message: "The continuation token provided is incorrect",
      details: { ArgumentName: "continuation-token" },
    });
  return after.toString("utf8");
}
