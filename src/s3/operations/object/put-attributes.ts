// The attributes of an object, read from the headers of a put.
import type { Bucket, ContentHeaders, Preconditions, PutOptions, Retention } from "../../../objects/index.ts";
import {
  findGrants,
  formatGrants,
  isOpenList,
  isShared,
  parseGrants,
  withWriter,
  type Grant,
} from "../../access/access-list.ts";
import { enforcesOwner } from "../../access/account.ts";
import { accountOf, isOwner, type Principal } from "../../access/principal.ts";
import { isBlocked } from "../../access/public-access.ts";
import { findHeader, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { contentHeaders, defaultContentType, findHeaderValue, isHeaderName, notImplemented } from "./object-headers.ts";
import { accountsOf, type Service } from "../operation.ts";
import { parseTagHeader } from "./tag-set.ts";

const metadataBytesMax = 2048;

type Attributes = Omit<PutOptions, keyof Preconditions | "checksum" | "size" | "md5" | "signal">;

/**
 * Returns all attributes of a put except the body and the conditions. Throws InvalidRequest for a
 * retention in a bucket without object lock.
 */
export async function attributesOf(request: S3Request, service: Service, bucket: Bucket): Promise<Attributes> {
  refuseUnsupported(request);
  const headers: ContentHeaders = {};
  for (const [option, name] of Object.entries(contentHeaders) as [keyof ContentHeaders, string][]) {
    const value = option === "contentEncoding" ? contentEncodingOf(request) : findHeader(request, name);
    if (value !== undefined && value !== "") headers[option] = value;
  }
  const tagging = findHeader(request, "x-amz-tagging");
  const retention = findRetention(request);
  const hold = findHeader(request, "x-amz-object-lock-legal-hold");
  const legalHold = hold === undefined ? undefined : isOn(hold);
  if (retention !== undefined || legalHold !== undefined) await mustHaveLock(bucket);
  const acl = await findList(request, service, bucket);
  return {
    ...headers,
    contentType: headers.contentType ?? defaultContentType,
    metadata: metadataOf(request),
    ...(tagging === undefined ? {} : { tags: parseTagHeader(tagging) }),
    ...(retention === undefined ? {} : { retention }),
    ...(legalHold === undefined ? {} : { legalHold }),
    ...(acl === undefined ? {} : { acl }),
  };
}

const ownerReads: readonly Grant[] = [{ grantee: "owner", permission: "READ" }];

/** Returns the ACL of the new object; undefined if only the owner has access. */
async function findList(request: S3Request, service: Service, bucket: Bucket): Promise<string | undefined> {
  const accounts = await accountsOf(bucket, service);
  const grants = findGrants(request, accounts);
  if (grants !== undefined) await mustMayShare(request.principal, bucket, grants);
  const account = accountOf(request.principal);
  const isOthers = account !== undefined && account !== accounts.owner;
  const isForReading = findHeader(request, "x-amz-acl") === "bucket-owner-read";
  if (isOthers)
    return formatGrants(withWriter(isForReading ? ownerReads : (grants ?? parseGrants(undefined)), account));
  return grants && formatGrants(grants);
}

/** Throws InvalidRequest. */
export async function mustHaveLock(bucket: Bucket): Promise<void> {
  if ((await bucket.config()).objectLock) return;
  throw new S3Error("InvalidRequest", { message: "Bucket is missing Object Lock Configuration" });
}

/**
 * Throws AccessDenied for an ACL that grants access to others than the owner, if the key pair does
 * not belong to an owner or the public-access block forbids it. Anonymous uploads to an open bucket
 * may be open.
 */
export async function mustMayShare(principal: Principal, bucket: Bucket, grants: readonly Grant[]): Promise<void> {
  if (!isShared(grants)) return;
  if (principal.kind === "key" && !isOwner(principal)) throw new S3Error("AccessDenied");
  const { documents } = await bucket.config();
  if (enforcesOwner(documents)) throw new S3Error("AccessControlListNotSupported");
  if (isOpenList(grants) && isBlocked(documents.publicAccessBlock, "BlockPublicAcls"))
    throw new S3Error("AccessDenied");
}

/**
 * Returns the content encoding without aws-chunked, which is the framing of the body and not a
 * property of the object.
 */
function contentEncodingOf(request: S3Request): string | undefined {
  const names = findHeader(request, "content-encoding")?.split(",");
  return names
    ?.filter((name) => name.trim().toLowerCase() !== "aws-chunked")
    .join(",")
    .trim();
}

function metadataOf({ headers }: S3Request): Record<string, string> {
  const own = Object.entries(headers).filter(([name, value]) => name.startsWith(metadataPrefix) && value !== undefined);
  return checkMetadata(
    own.map(([name, value]) => [name.slice(metadataPrefix.length), headerText(String(value))] as const),
  );
}

export const metadataPrefix = "x-amz-meta-";

/** Throws MetadataTooLarge, or InvalidArgument for metadata that no header could return. */
function checkMetadata(pairs: readonly (readonly [name: string, text: string])[]): Record<string, string> {
  let bytes = 0;
  for (const [name, text] of pairs) {
    if (!isHeaderName(name) || findHeaderValue(text) === undefined)
      throw new S3Error("InvalidArgument", { details: { ArgumentName: `${metadataPrefix}${name}` } });
    bytes += name.length + Buffer.byteLength(text);
  }
  if (bytes > metadataBytesMax)
    throw new S3Error("MetadataTooLarge", {
      details: { Size: String(bytes), MaxSizeAllowed: String(metadataBytesMax) },
    });
  return Object.fromEntries(pairs);
}

/** Node decodes headers as Latin-1. Clients send UTF-8 or Latin-1. */
function headerText(value: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(value, "latin1"));
  } catch {
    return value;
  }
}

function findRetention(request: S3Request): Retention | undefined {
  const [mode, until] = ["x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date"].map((name) =>
    findHeader(request, name),
  );
  if (mode === undefined && until === undefined) return undefined;
  if (mode === undefined || until === undefined)
    throw new S3Error("InvalidArgument", {
      message: "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied",
    });
  return { mode: retentionMode(mode), until: retentionDate(until) };
}

/** Throws InvalidArgument. */
export function retentionMode(text: string): Retention["mode"] {
  const mode = text.toLowerCase();
  if (text === text.toUpperCase() && (mode === "governance" || mode === "compliance")) return mode;
  throw new S3Error("InvalidArgument", { message: "Unknown wormMode directive." });
}

export function retentionDate(text: string): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime()))
    throw new S3Error("InvalidArgument", { message: "The retain until date must be provided in ISO 8601 format" });
  if (date.getTime() <= Date.now())
    throw new S3Error("InvalidArgument", { message: "The retain until date must be in the future!" });
  return date;
}

/** Throws InvalidArgument. */
export function isOn(status: string): boolean {
  if (status === "ON" || status === "OFF") return status === "ON";
  throw new S3Error("InvalidArgument", { message: "Legal Hold must be either of 'ON' or 'OFF'" });
}

/**
 * Returns If-Match and If-None-Match of a write. Throws PreconditionFailed for a pair that can
 * never hold.
 */
export function preconditionsOf(request: S3Request): Preconditions {
  const [ifMatch, ifNoneMatch] = ["if-match", "if-none-match"].map((name) => findHeader(request, name)?.trim());
  if (ifMatch !== undefined && ifNoneMatch === "*")
    throw new S3Error("PreconditionFailed", { details: { Condition: "If-None-Match" } });
  return { ...(ifMatch === undefined ? {} : { ifMatch }), ...(ifNoneMatch === undefined ? {} : { ifNoneMatch }) };
}

/**
 * Headers that a put must not ignore: it would overwrite an object, or not do what the client
 * asked.
 */
const unsupportedHeaders = new Set([
  "x-amz-rename-source",
  "x-amz-website-redirect-location",
  "x-amz-write-offset-bytes",
]);

/** Refuses, by name, headers that would change how the object is stored, instead of ignoring them. */
function refuseUnsupported(request: S3Request): void {
  const { headers } = request;
  const method = findHeader(request, "x-amz-server-side-encryption");
  if (method !== undefined && !encryptions.includes(method))
    throw new S3Error("InvalidArgument", {
      message: "The encryption method specified is not supported",
      details: { ArgumentName: "x-amz-server-side-encryption", ArgumentValue: method },
    });
  for (const name of Object.keys(headers)) {
    if (name.startsWith("x-amz-server-side-encryption")) throw notImplemented(name);
    if (unsupportedHeaders.has(name)) throw notImplemented(name);
  }
  const storageClass = findHeader(request, "x-amz-storage-class");
  if (storageClass === undefined || readyClasses.includes(storageClass)) return;
  if (slowClasses.includes(storageClass)) throw notImplemented(`x-amz-storage-class: ${storageClass}`);
  throw new S3Error("InvalidStorageClass", { details: { StorageClassRequested: storageClass } });
}

const encryptions: readonly string[] = ["AES256", "aws:kms", "aws:kms:dsse", "aws:fsx"];

/**
 * Storage classes whose objects can be read at any time. All are stored as STANDARD, which offers
 * at least as much.
 */
const readyClasses: readonly string[] = [
  "STANDARD",
  "REDUCED_REDUNDANCY",
  "STANDARD_IA",
  "ONEZONE_IA",
  "INTELLIGENT_TIERING",
  "GLACIER_IR",
];
/**
 * Storage classes that are refused: their objects must be restored before a read, or are stored
 * elsewhere.
 */
const slowClasses: readonly string[] = ["GLACIER", "DEEP_ARCHIVE", "OUTPOSTS", "SNOW", "EXPRESS_ONEZONE"];
