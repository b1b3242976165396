// Decides whether a bucket grants a request. A denial of the policy applies to everybody. Otherwise
// the owner may do everything, and others may do what the policy or an ACL grants.
import { isHoldfastError } from "../../index.ts";
import type { Bucket, BucketConfig } from "../../objects/index.ts";
import { findHeader, type S3Request } from "../http/request.ts";
import { S3Error } from "../http/s3-error.ts";
import { isListed, type Permission } from "./access-list.ts";
import { enforcesOwner, operator, ownerOf } from "./account.ts";
import { rightsFor, type RequiredAction } from "./actions.ts";
import { judge, readPolicy, type Judgement } from "./bucket-policy.ts";
import { factsOf } from "./policy-facts.ts";
import { accountOf, initiatorOf, isOwner, type Principal } from "./principal.ts";
import { isBlocked, isPublicPolicy } from "./public-access.ts";

export interface AccessRequest {
  /** The AWS name: "PutObject". */
  readonly operation: string;
  readonly key?: string | undefined;
  readonly versionId?: string | undefined;
  /** The prefix of the listed keys, if the query does not contain it. */
  readonly prefix?: string | undefined;
}

/** Throws AccessDenied unless the request has every right that the operation needs. */
export async function mustBeGranted(request: S3Request, bucket: Bucket, asked: AccessRequest): Promise<void> {
  for (const right of rightsFor(asked.operation, request, asked.versionId))
    if (!(await hasRight(request, bucket, asked, right))) throw denied(await policyOf(bucket));
  // As on AWS, nobody but the owner can manage the policy of a bucket, whatever rights they have.
  if (policyOperations.has(asked.operation) && !(await isOfOwner(request.principal, bucket)))
    throw new S3Error("MethodNotAllowed", { details: { Method: request.method } });
}

/** Throws AccessDenied if the header names an account other than the bucket's. */
export async function mustBeExpectedOwner(request: S3Request, bucket: Bucket, header: string): Promise<void> {
  const expected = findHeader(request, header);
  // A number is an AWS account, which some clients always send.
  if (expected === undefined || /^[0-9]{12}$/.test(expected) || expected === (await ownerOf(bucket))) return;
  throw new S3Error("AccessDenied");
}

export async function isGranted(request: S3Request, bucket: Bucket, asked: AccessRequest): Promise<boolean> {
  for (const right of rightsFor(asked.operation, request, asked.versionId))
    if (!(await hasRight(request, bucket, asked, right))) return false;
  return true;
}

/**
 * True if the request may lift the protection of a version: an owner may, and others if the
 * bucket's policy allows it. A pattern such as `s3:*` does not allow others to bypass governance.
 */
export async function mayRelease(request: S3Request, bucket: Bucket, asked: AccessRequest): Promise<boolean> {
  const byName = asked.operation === "BypassGovernance";
  for (const { action } of rightsFor(asked.operation, request, undefined)) {
    const judgement = await judgeRight(request, bucket, asked, action, { byName });
    const isOwners = isOwner(request.principal) && (await isOfOwner(request.principal, bucket));
    if (judgement === "refused" || (judgement === undefined && !isOwners)) return false;
  }
  return true;
}

/**
 * Throws `error`, or AccessDenied if the request may not list the bucket: then it must not learn
 * that the object does not exist.
 */
export async function hideAbsence(
  error: unknown,
  request: S3Request,
  bucket: Bucket,
  { key }: { readonly key: string | undefined },
): Promise<never> {
  const isOfVersion = isHoldfastError(error, "NO_SUCH_VERSION");
  if (key === undefined || !(isOfVersion || isHoldfastError(error, "NO_SUCH_KEY"))) throw error;
  if (await isOfOwner(request.principal, bucket)) throw error;
  const operation = isOfVersion ? "ListObjectVersions" : "ListObjects";
  if (await isGranted(request, bucket, { operation, prefix: key })) throw error;
  throw new S3Error("AccessDenied", { cause: error });
}

/** True for the operator, and for key pairs of the account that owns the bucket. */
export async function isOfOwner(principal: Principal, bucket: Bucket): Promise<boolean> {
  if (principal.kind === "anonymous") return false;
  const account = accountOf(principal);
  return account === undefined || account === (await ownerOf(bucket));
}

/** True if a bucket grants anything to anyone but its owner. */
export async function hasGrants(bucket: Bucket): Promise<boolean> {
  const { policy, acl } = await documentsOf(bucket);
  return policy !== undefined || acl !== undefined;
}

const policyOperations = new Set(["GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"]);

async function hasRight(
  request: S3Request,
  bucket: Bucket,
  asked: AccessRequest,
  right: RequiredAction,
): Promise<boolean> {
  const { principal } = request;
  const isOwners = await isOfOwner(principal, bucket);
  // The owner can always replace the policy, so a policy cannot lock its owner out permanently.
  if (isOwners && isOwner(principal) && policyOperations.has(asked.operation)) return true;
  const judgement = await judgeRight(request, bucket, asked, right.action);
  if (judgement === "refused") return false;
  if (isOwners) return true;
  const { policy, publicAccessBlock } = await documentsOf(bucket);
  const isRestricted =
    policy !== undefined && isBlocked(publicAccessBlock, "RestrictPublicBuckets") && isPublicPolicy(policy);
  if (judgement === "allowed" && !isRestricted) return true;
  if (ofInitiator.has(right.action) && (await isInitiator(request, bucket))) return true;
  return await isByList(bucket, asked, right, accountOf(principal));
}

/** The account that began an upload may list its parts and abort it. */
const ofInitiator = new Set(["AbortMultipartUpload", "ListMultipartUploadParts"]);

async function isInitiator({ principal, key = "", query }: S3Request, bucket: Bucket): Promise<boolean> {
  if (principal.kind === "anonymous") return false;
  try {
    const { initiator } = await bucket.upload(key, query.get("uploadId") ?? "");
    return initiator === initiatorOf(principal);
  } catch (error) {
    if (isHoldfastError(error, "NO_SUCH_UPLOAD")) return false;
    throw error;
  }
}

async function judgeRight(
  request: S3Request,
  bucket: Bucket,
  { operation, key, versionId, prefix }: AccessRequest,
  action: string,
  options: { readonly byName?: boolean } = {},
): Promise<Judgement> {
  const policy = await policyOf(bucket);
  if (policy === undefined) return undefined;
  const { principal } = request;
  const account = principal.kind === "anonymous" ? undefined : (accountOf(principal) ?? operator);
  const resource = `arn:aws:s3:::${bucket.name}${key === undefined ? "" : `/${key}`}`;
  const find = factsOf({ request, bucket, operation, key, versionId, prefix });
  return await judge(policy, { action, resource, account, find }, options);
}

async function isByList(
  bucket: Bucket,
  asked: AccessRequest,
  { byList }: RequiredAction,
  account: string | undefined,
): Promise<boolean> {
  if (byList === undefined) return false;
  const documents = await documentsOf(bucket);
  if (enforcesOwner(documents)) return false;
  const { publicAccessBlock, acl } = documents;
  const isOpen = !isBlocked(publicAccessBlock, "IgnorePublicAcls");
  const isBy = (list: string | undefined, wanted: Permission): boolean => isListed(list, wanted, account, { isOpen });
  if (byList.of === "bucket") return isBy(acl, byList.permission);
  const version = await findVersion(bucket, asked.key ?? "", asked.versionId);
  // Who can list the bucket may know that an object does not exist.
  return version === undefined ? isBy(acl, "READ") : isBy(version.acl, byList.permission);
}

async function findVersion(
  bucket: Bucket,
  key: string,
  versionId: string | undefined,
): Promise<{ readonly acl?: string } | undefined> {
  try {
    return await bucket.head(key, { versionId });
  } catch (error) {
    if (isHoldfastError(error, "NO_SUCH_KEY") || isHoldfastError(error, "NO_SUCH_VERSION")) return undefined;
    throw error;
  }
}

async function documentsOf(bucket: Bucket): Promise<BucketConfig["documents"]> {
  return (bucket.knownConfig() ?? (await bucket.config())).documents;
}

async function policyOf(bucket: Bucket): Promise<ReturnType<typeof readPolicy> | undefined> {
  const { policy } = await documentsOf(bucket);
  return policy === undefined ? undefined : readPolicy(policy);
}

/** Tells the operator about a policy that an older build stored and that cannot be evaluated. */
function denied(policy: ReturnType<typeof readPolicy> | undefined): Error {
  const fault = policy?.faults[0];
  if (fault === undefined) return new S3Error("AccessDenied");
  const cause = new Error(
    `the bucket policy has a statement that cannot be evaluated, so it denies the request: ${fault}. Put the policy again without it.`,
  );
  return new S3Error("AccessDenied", { cause, isReported: true });
}
