// An operation of S3: what it needs to be allowed, and what it does.
import type { Bucket, ObjectStore } from "../../objects/index.ts";
import { ownerOf, type Accounts } from "../access/account.ts";
import type { Need } from "../access/principal.ts";
import type { Answer } from "../http/answer.ts";
import { getBucketName, type S3Request } from "../http/request.ts";
import { encodeUri } from "../http/raw-target.ts";
import { S3Error } from "../http/s3-error.ts";
import { readSmallBody } from "../body/incoming-body.ts";
import { readXml, type XmlElement } from "../http/xml-in.ts";

export interface Place {
  readonly objects: ObjectStore;
  readonly region: string;
  /** All accounts that there are key pairs of, and the operator's. */
  readonly accounts: ReadonlySet<string>;
}

/** What a grant in this bucket may name. */
export async function accountsOf(bucket: Bucket, { accounts }: Place): Promise<Accounts> {
  return { owner: await ownerOf(bucket), all: accounts };
}

export interface Operation {
  /** As AWS names it: "PutObject". */
  readonly name: string;
  readonly need: Need;
  readonly run: (request: S3Request, place: Place) => Promise<Answer>;
}

export function operation(name: string, need: Need, run: Operation["run"]): Operation {
  return { name, need, run };
}

/** NoSuchBucket, InvalidBucketName. */
export async function bucketOf(request: S3Request, { objects }: Place): Promise<Bucket> {
  return await objects.bucket(checkBucketName(getBucketName(request)));
}

const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

export function checkBucketName(name: string): string {
  const isAddress = /^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$/.test(name);
  if (bucketName.test(name) && !/\.\.|\.-|-\./.test(name) && !isAddress && !name.startsWith("xn--")) return name;
  throw new S3Error("InvalidBucketName", { details: { BucketName: name } });
}

/** Endings and beginnings that names of other things than plain buckets have. */
const reserved = /^sthree-|-s3alias$|--ol-s3$|\.mrap$|--x-s3$|--table-s3$/;

/** Of a bucket that is made now. InvalidBucketName. */
export function checkNewBucketName(name: string): string {
  if (!reserved.test(checkBucketName(name))) return name;
  throw new S3Error("InvalidBucketName", { details: { BucketName: name } });
}

/** Of a list of 1,000 keys of 1,024 bytes each, escaped; others are far smaller. */
const documentBytesMax = 8 * 1024 * 1024;

/** The document in the body. MalformedXML. */
export async function xmlBody(request: S3Request, ...roots: readonly string[]): Promise<XmlElement> {
  const bytes = await readSmallBody(request, documentBytesMax);
  return await readXml(bytes, ...roots);
}

const partsMax = 10_000;

/** InvalidArgument. */
export function getPartNumber({ query }: S3Request): number {
  const text = query.get("partNumber") ?? "";
  const number = Number(text);
  if (/^[0-9]{1,5}$/.test(text) && number >= 1 && number <= partsMax) return number;
  const message = `Part number must be an integer between 1 and ${partsMax}, inclusive`;
  throw new S3Error("InvalidArgument", { message, details: { ArgumentName: "partNumber", ArgumentValue: text } });
}

/** The address of an object, as the client reaches it. */
export function locationOf({ incoming, headers }: S3Request, bucket: string, key: string): string {
  const scheme = "encrypted" in incoming.socket ? "https" : "http";
  return `${scheme}://${headers.host ?? "localhost"}/${bucket}/${key.split("/").map(encodeUri).join("/")}`;
}

/** InvalidArgument for an empty one. */
export function findVersionId({ query }: S3Request): string | undefined {
  const versionId = query.get("versionId");
  if (versionId !== "") return versionId;
  const message = "Version id cannot be the empty string";
  throw new S3Error("InvalidArgument", { message, details: { ArgumentName: "versionId", ArgumentValue: "" } });
}

/** Ids of versions that are not there may have been given by another store. */
export function isVersionId(text: string): boolean {
  return /^[0-9a-zA-Z._-]{1,128}$/.test(text);
}

export function invalidVersionId(text: string): Error {
  const message = "Invalid version id specified";
  return new S3Error("InvalidArgument", { message, details: { ArgumentName: "versionId", ArgumentValue: text } });
}
