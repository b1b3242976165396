// Operations on buckets: create, delete, list, and basic properties.
import { accountAsXml, operator, ownerDocument, ownerOf } from "../../access/account.ts";
import { findGrants, formatGrants, isShared, parseGrants } from "../../access/access-list.ts";
import { mustBeGranted } from "../../access/grant.ts";
import { accountOf } from "../../access/principal.ts";
import { isHoldfastError } from "../../../index.ts";
import type { Bucket, BucketInfo, ObjectStore } from "../../../objects/index.ts";
import { readSmallBody } from "../../body/incoming-body.ts";
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { findCount, findHeader, getBucketName, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { parseXml } from "../../http/xml-in.ts";
import { mustMayShare } from "../object/put-attributes.ts";
import { ownershipAsXml, ownershipOf } from "./ownership.ts";
import { tagsOf, type TagSet } from "../object/tag-set.ts";
import { bucketOf, checkBucketName, checkNewBucketName, operation, type Operation } from "../operation.ts";

const documentBytesMax = 64 * 1024;
const bucketsMax = 10_000;

export const listBuckets: Operation = operation("ListBuckets", "read", async (request, { objects, region }) => {
  const { principal, query } = request;
  const all = await objects.listBuckets();
  const [prefix = "", after = "", wantedRegion = region] = ["prefix", "continuation-token", "bucket-region"].map(
    (name) => query.get(name) || undefined,
  );
  const limit = findCount(request, "max-buckets");
  if (limit !== undefined && (limit < 1 || limit > bucketsMax))
    throw new S3Error("InvalidArgument", {
      message: `Argument max-buckets must be an integer between 1 and ${bucketsMax}`,
      details: { ArgumentName: "max-buckets", ArgumentValue: String(limit) },
    });
  const visible = all.filter(
    ({ name }) =>
      principal.kind === "key" &&
      isVisible(principal.credentials.only, name) &&
      name.startsWith(prefix) &&
      name > after &&
      wantedRegion === region,
  );
  const account = accountOf(principal);
  const own = account === undefined ? visible : await ownedBy(account, visible, objects);
  const page = own.slice(0, limit ?? bucketsMax);
  const Bucket = page.map(({ name, createdAt }) => ({ Name: name, CreationDate: createdAt, BucketRegion: region }));
  return xmlAnswer("ListAllMyBucketsResult", {
    Owner: accountAsXml(account ?? operator),
    Buckets: { Bucket },
    ContinuationToken: page.length < own.length ? page.at(-1)?.name : undefined,
    Prefix: prefix === "" ? undefined : prefix,
  });
});

async function ownedBy<T extends Pick<BucketInfo, "name" | "damaged">>(
  account: string,
  buckets: readonly T[],
  objects: ObjectStore,
): Promise<T[]> {
  const found: T[] = [];
  for (const each of buckets) {
    // The owner of this bucket cannot be read, so only the operator sees it.
    if (each.damaged !== undefined) continue;
    const bucket = await objects.findBucket(each.name);
    if (bucket !== undefined && (await ownerOf(bucket)) === account) found.push(each);
  }
  return found;
}

/** True if the key pair may use the bucket, or a prefix in it. */
function isVisible(only: readonly string[] | undefined, name: string): boolean {
  return only === undefined || only.some((place) => place === name || place.startsWith(`${name}/`));
}

export const createBucket: Operation = operation("CreateBucket", "manage", async (request, service) => {
  const { objects, region } = service;
  const name = checkNewBucketName(getBucketName(request));
  const tags = wishesOf(await readSmallBody(request, documentBytesMax), region);
  const account = accountOf(request.principal);
  const grants = findGrants(request, { owner: account ?? operator, all: service.accounts });
  const ownership = findHeader(request, "x-amz-object-ownership");
  const documents = {
    ...(account === undefined ? {} : { [ownerDocument]: account }),
    ...(grants === undefined ? {} : { acl: formatGrants(grants) }),
    ...(ownership === undefined ? {} : { ownershipControls: ownershipAsXml(ownershipOf(ownership)) }),
  };
  if (ownership === "BucketOwnerEnforced" && grants !== undefined && isShared(grants))
    throw new S3Error("InvalidBucketAclWithObjectOwnership");
  const objectLock = findHeader(request, "x-amz-bucket-object-lock-enabled")?.toLowerCase() === "true";
  await mustNotBeOthers(name, account, objects);
  const wishes = { acl: documents.acl, isPlain: !objectLock && ownership === undefined && isEmpty(tags) };
  const bucket = await objects
    .createBucket(name, objectLock ? { objectLock, versioning: "enabled" } : {})
    .catch(async (error: unknown) => {
      if (!isHoldfastError(error, "BUCKET_EXISTS")) throw error;
      await mustNotBeOthers(name, account, objects);
      // Like AWS in us-east-1: an owner may create its bucket again, which resets the ACL.
      if (region !== "us-east-1" || !wishes.isPlain) throw error;
      await resetList(request, await bucketOf(request, service), wishes.acl);
      return undefined;
    });
  if (bucket === undefined) return emptyAnswer(200, { location: `/${name}` });
  // If the gateway crashes between the two steps, the bucket belongs to the operator alone.
  if (!isEmpty({ ...documents, ...tags })) await bucket.setConfig({ documents, tags });
  return emptyAnswer(200, { location: `/${name}` });
});

function isEmpty(record: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(record).length === 0;
}

/** Resets the ACL of an existing bucket, so its policy and its ownership controls apply. */
async function resetList(request: S3Request, bucket: Bucket, acl: string | undefined): Promise<void> {
  const { acl: known } = (await bucket.config()).documents;
  if (known === acl) return;
  await mustBeGranted(request, bucket, { operation: "PutBucketAcl", key: undefined });
  await mustMayShare(request.principal, bucket, parseGrants(acl));
  await bucket.setDocument("acl", acl);
}

/** Throws BucketAlreadyExists for a bucket of another account. */
async function mustNotBeOthers(name: string, account = operator, objects: ObjectStore): Promise<void> {
  const there = await objects.findBucket(name);
  if (there !== undefined && (await ownerOf(there)) !== account)
    throw new S3Error("BucketAlreadyExists", { details: { BucketName: name } });
}

/**
 * Returns the tags for a new bucket. Throws InvalidLocationConstraint,
 * IllegalLocationConstraintException or InvalidTag.
 */
function wishesOf(bytes: Buffer, region: string): TagSet {
  if (bytes.length === 0) return {};
  const root = parseXml(bytes, "CreateBucketConfiguration");
  const wanted = root.findText("LocationConstraint");
  const tags = root.find("Tags");
  if (wanted === undefined || wanted === "" || wanted === region)
    return tags === undefined ? {} : tagsOf(tags, { isBucket: true });
  if (!/^([a-z]{2}(-[a-z]+)+-[0-9]|EU)$/.test(wanted))
    throw new S3Error("InvalidLocationConstraint", { details: { LocationConstraint: wanted } });
  throw new S3Error("IllegalLocationConstraintException", {
    message: `The ${wanted} location constraint is incompatible for the region specific endpoint this request was sent to.`,
  });
}

export const deleteBucket: Operation = operation("DeleteBucket", "manage", async (request, { objects }) => {
  // As on AWS, incomplete uploads do not block the deletion.
  await objects.deleteBucket(checkBucketName(getBucketName(request)), { abortUploads: true });
  return emptyAnswer(204);
});

export const headBucket: Operation = operation("HeadBucket", "read", async (request, service) => {
  await bucketOf(request, service);
  return emptyAnswer(200, { "x-amz-bucket-region": service.region });
});

export const getBucketLocation: Operation = operation("GetBucketLocation", "read", async (request, service) => {
  await bucketOf(request, service);
  return xmlAnswer("LocationConstraint", service.region === "us-east-1" ? "" : service.region);
});
