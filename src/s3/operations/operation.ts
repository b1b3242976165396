// An operation of S3: the right it needs, and its implementation.
import type { Bucket, ObjectStore } from "../../objects/index.ts";
import { ownerOf, type Accounts } from "../access/account.ts";
import type { AccessLevel } from "../access/principal.ts";
import type { Answer } from "../http/answer.ts";
import { getBucketName, type S3Request } from "../http/request.ts";
import { encodeUri } from "../http/raw-target.ts";
import { S3Error } from "../http/s3-error.ts";

export interface Service {
  readonly objects: ObjectStore;
  readonly region: string;
  /** All accounts that have key pairs, and the operator. */
  readonly accounts: ReadonlySet<string>;
}

/** The accounts that a grant in this bucket may name. */
export async function accountsOf(bucket: Bucket, { accounts }: Service): Promise<Accounts> {
  return { owner: await ownerOf(bucket), all: accounts };
}

export interface Operation {
  /** The AWS name: "PutObject". */
  readonly name: string;
  readonly need: AccessLevel;
  readonly run: (request: S3Request, service: Service) => Promise<Answer>;
}

export function operation(name: string, need: AccessLevel, run: Operation["run"]): Operation {
  return { name, need, run };
}

/** The bucket whose rights were checked, so that the operation need not find it again. */
const found = new WeakMap<S3Request, Bucket>();

/** Throws NoSuchBucket or InvalidBucketName. */
export async function bucketOf(request: S3Request, { objects }: Service): Promise<Bucket> {
  const bucket = found.get(request) ?? (await objects.bucket(checkBucketName(getBucketName(request))));
  found.set(request, bucket);
  return bucket;
}

/**
 * Like `bucketOf`, for a request that may be unsigned: such a request must not learn whether a
 * bucket exists. Throws AccessDenied.
 */
export async function bucketOfAnybody(request: S3Request, service: Service): Promise<Bucket> {
  if (request.principal.kind === "key") return await bucketOf(request, service);
  const bucket = await service.objects.findBucket(checkBucketName(getBucketName(request)));
  if (bucket === undefined) throw new S3Error("AccessDenied");
  found.set(request, bucket);
  return bucket;
}

const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

export function checkBucketName(name: string): string {
  const isAddress = /^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$/.test(name);
  if (bucketName.test(name) && !/\.\.|\.-|-\./.test(name) && !isAddress && !name.startsWith("xn--")) return name;
  throw new S3Error("InvalidBucketName", { details: { BucketName: name } });
}

/** Prefixes and suffixes of names that AWS reserves for special buckets. */
const reserved = /^sthree-|-s3alias$|--ol-s3$|\.mrap$|--x-s3$|--table-s3$/;

/** Checks the name of a bucket to be created. Throws InvalidBucketName. */
export function checkNewBucketName(name: string): string {
  if (!reserved.test(checkBucketName(name))) return name;
  throw new S3Error("InvalidBucketName", { details: { BucketName: name } });
}

const partsMax = 10_000;

/** Throws InvalidArgument. */
export function getPartNumber({ query }: S3Request): number {
  const text = query.get("partNumber") ?? "";
  const number = Number(text);
  if (/^[0-9]{1,5}$/.test(text) && number >= 1 && number <= partsMax) return number;
  const message = `Part number must be an integer between 1 and ${partsMax}, inclusive`;
  throw new S3Error("InvalidArgument", { message, details: { ArgumentName: "partNumber", ArgumentValue: text } });
}

/** Returns the URL under which the client reaches an object. */
export function locationOf({ incoming, headers }: S3Request, bucket: string, key: string): string {
  const scheme = "encrypted" in incoming.socket ? "https" : "http";
  return `${scheme}://${headers.host ?? "localhost"}/${bucket}/${key.split("/").map(encodeUri).join("/")}`;
}

/** Returns the version id in the query. Throws InvalidArgument for an empty one. */
export function findVersionId({ query }: S3Request): string | undefined {
  const versionId = query.get("versionId");
  if (versionId !== "") return versionId;
  const message = "Version id cannot be the empty string";
  throw new S3Error("InvalidArgument", { message, details: { ArgumentName: "versionId", ArgumentValue: "" } });
}

/** Also accepts ids of other S3 servers: they name versions that do not exist here. */
export function isVersionId(text: string): boolean {
  return /^[0-9a-zA-Z._-]{1,128}$/.test(text);
}

export function invalidVersionId(text: string): Error {
  const message = "Invalid version id specified";
  return new S3Error("InvalidArgument", { message, details: { ArgumentName: "versionId", ArgumentValue: text } });
}
