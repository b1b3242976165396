// Buckets: create, delete, list, and what there is to know about one.
import { findGrants, formatGrants, isShared, owner } from "../../access/access-list.ts";
import { readSmallBody } from "../../body/incoming-body.ts";
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { findCount, findHeader, getBucketName } from "../../http/request.ts";
import { S3Error, type S3ErrorCode } from "../../http/s3-error.ts";
import { parseXml } from "../../http/xml-in.ts";
import type { XmlContent } from "../../http/xml-out.ts";
import { ownershipAsXml, ownershipOf } from "./ownership.ts";
import { bucketOf, checkBucketName, operation, type Operation } from "../operation.ts";

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
  const page = visible.slice(0, limit ?? bucketsMax);
  const Bucket = page.map(({ name, createdAt }) => ({ Name: name, CreationDate: createdAt, BucketRegion: region }));
  return xmlAnswer("ListAllMyBucketsResult", {
    Owner: owner,
    Buckets: { Bucket },
    ContinuationToken: page.length < visible.length ? page.at(-1)?.name : undefined,
    Prefix: prefix === "" ? undefined : prefix,
  });
});

/** Also a bucket of which only a prefix is allowed. */
function isVisible(only: readonly string[] | undefined, name: string): boolean {
  return only === undefined || only.some((place) => place === name || place.startsWith(`${name}/`));
}

export const createBucket: Operation = operation("CreateBucket", "manage", async (request, { objects, region }) => {
  const name = checkBucketName(getBucketName(request));
  const bytes = await readSmallBody(request, documentBytesMax);
  checkLocation(bytes, region);
  const grants = findGrants(request);
  const ownership = findHeader(request, "x-amz-object-ownership");
  const documents = {
    ...(grants === undefined ? {} : { acl: formatGrants(grants) }),
    ...(ownership === undefined ? {} : { ownershipControls: ownershipAsXml(ownershipOf(ownership)) }),
  };
  if (ownership === "BucketOwnerEnforced" && grants !== undefined && isShared(grants))
    throw new S3Error("AccessControlListNotSupported");
  const objectLock = findHeader(request, "x-amz-bucket-object-lock-enabled")?.toLowerCase() === "true";
  const bucket = await objects.createBucket(name, objectLock ? { objectLock, versioning: "enabled" } : {});
  // A crash in between leaves a bucket that is the owner's alone.
  if (Object.keys(documents).length > 0) await bucket.setConfig({ documents });
  return emptyAnswer(200, { location: `/${name}` });
});

/** InvalidLocationConstraint, IllegalLocationConstraintException. */
function checkLocation(bytes: Buffer, region: string): void {
  if (bytes.length === 0) return;
  const wanted = parseXml(bytes, "CreateBucketConfiguration").findText("LocationConstraint");
  if (wanted === undefined || wanted === "" || wanted === region) return;
  if (!/^([a-z]{2}(-[a-z]+)+-[0-9]|EU)$/.test(wanted))
    throw new S3Error("InvalidLocationConstraint", { details: { LocationConstraint: wanted } });
  throw new S3Error("IllegalLocationConstraintException", {
    message: `The ${wanted} location constraint is incompatible for the region specific endpoint this request was sent to.`,
  });
}

export const deleteBucket: Operation = operation("DeleteBucket", "manage", async (request, { objects }) => {
  await objects.deleteBucket(checkBucketName(getBucketName(request)));
  return emptyAnswer(204);
});

export const headBucket: Operation = operation("HeadBucket", "read", async (request, place) => {
  await bucketOf(request, place);
  return emptyAnswer(200, { "x-amz-bucket-region": place.region });
});

export const getBucketLocation: Operation = operation("GetBucketLocation", "read", async (request, place) => {
  await bucketOf(request, place);
  return xmlAnswer("LocationConstraint", place.region === "us-east-1" ? "" : place.region);
});

function answering(name: string, root: string, content: XmlContent): Operation {
  return operation(name, "read", async (request, place) => {
    await bucketOf(request, place);
    return xmlAnswer(root, content);
  });
}

function absent(name: string, code: S3ErrorCode): Operation {
  return operation(name, "read", async (request, place) => {
    await bucketOf(request, place);
    throw new S3Error(code);
  });
}

/** By method and sub-resource: what is true of a bucket that does not have a setting. Putting it is refused by name. */
export const unset: Readonly<Record<string, Operation>> = {
  "GET accelerate": answering("GetBucketAccelerateConfiguration", "AccelerateConfiguration", {}),
  "GET logging": answering("GetBucketLogging", "BucketLoggingStatus", {}),
  "GET notification": answering("GetBucketNotificationConfiguration", "NotificationConfiguration", {}),
  "GET requestPayment": answering("GetBucketRequestPayment", "RequestPaymentConfiguration", { Payer: "BucketOwner" }),
  "GET encryption": absent("GetBucketEncryption", "ServerSideEncryptionConfigurationNotFoundError"),
  "GET replication": absent("GetBucketReplication", "ReplicationConfigurationNotFoundError"),
};
