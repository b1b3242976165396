// What a bucket policy may say: checked when it is put, so that one which is kept can be judged.
import type { Bucket } from "../../objects/index.ts";
import { S3Error } from "../http/s3-error.ts";
import { matches } from "./policy-condition.ts";
import { isBlocked, isPublicPolicy } from "./public-access.ts";

const policyBytesMax = 20 * 1024;

/** MalformedPolicy; AccessDenied where the bucket must not become public. */
export async function checkPolicy(bytes: Buffer, bucket: Bucket): Promise<void> {
  const text = bytes.toString("utf8");
  if (bytes.length > policyBytesMax)
    throw malformed("Policies are larger than the maximum size of 20480 bytes allowed.");
  for (const statement of statementsOf(text)) checkStatement(statement, bucket.name);
  const { publicAccessBlock } = (await bucket.config()).documents;
  if (isPublicPolicy(text) && isBlocked(publicAccessBlock, "BlockPublicPolicy")) throw new S3Error("AccessDenied");
}

function statementsOf(text: string): readonly unknown[] {
  let policy: unknown;
  try {
    policy = JSON.parse(text);
  } catch (cause) {
    throw malformed("Policies must be valid JSON and the first byte must be '{'", cause);
  }
  if (typeof policy !== "object" || policy === null || Array.isArray(policy))
    throw malformed("Policies must be valid JSON and the first byte must be '{'");
  if (!("Statement" in policy)) throw malformed("Missing required field Statement");
  const list: readonly unknown[] = Array.isArray(policy.Statement) ? policy.Statement : [policy.Statement];
  if (list.length === 0) throw malformed("Could not parse the policy: Statement is empty!");
  return list;
}

function checkStatement(value: unknown, bucket: string): void {
  if (typeof value !== "object" || value === null) throw malformed("Could not parse the policy");
  const statement = value as Readonly<Record<string, unknown>>;
  if (statement.Effect !== "Allow" && statement.Effect !== "Deny")
    throw malformed("Invalid effect: it is Allow or Deny.");
  for (const name of ["Principal", "Action", "Resource"])
    if (statement[name] === undefined && statement[`Not${name}`] === undefined)
      throw malformed(`Missing required field ${name}`);
  for (const principal of [statement.Principal, statement.NotPrincipal]) checkPrincipal(principal);
  const resources = textsOf(statement.Resource ?? statement.NotResource, "Policy has invalid resource");
  for (const resource of resources) {
    const [name = ""] = pathOf(resource)?.split("/") ?? [];
    if (!matches(name, bucket)) throw malformed("Policy has invalid resource");
  }
  const actions = textsOf(statement.Action ?? statement.NotAction, "Policy has invalid action");
  for (const action of actions) if (!isAction(action)) throw malformed("Policy has invalid action");
  if (statement.Action === undefined || statement.Resource === undefined) return;
  for (const action of actions)
    if (!resources.some((resource) => fits(action, pathOf(resource) ?? "")))
      throw malformed("Action does not apply to any resource(s) in statement");
}

/** Everybody, or who is named. */
function checkPrincipal(principal: unknown): void {
  if (principal === undefined || principal === "*") return;
  const isNamed =
    typeof principal === "object" &&
    principal !== null &&
    !Array.isArray(principal) &&
    Object.values(principal).length > 0 &&
    Object.values(principal).every((names: unknown) => textsOf(names, "Invalid principal in policy").length > 0);
  if (!isNamed) throw malformed("Invalid principal in policy");
}

/** One text, or a list of at least one. MalformedPolicy. */
function textsOf(value: unknown, fault: string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || list.some((each) => typeof each !== "string" || each === "")) throw malformed(fault);
  return list as readonly string[];
}

/** Behind the name of the service; `bucket` or `bucket/key`. */
function pathOf(resource: string): string | undefined {
  return /^arn:aws:s3:::(.*)$/s.exec(resource)?.[1];
}

/** What concerns objects; all other actions concern buckets. */
const ofObjects = new Set(
  `AbortMultipartUpload BypassGovernanceRetention DeleteObject DeleteObjectTagging DeleteObjectVersion
   DeleteObjectVersionTagging GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold GetObjectRetention
   GetObjectTagging GetObjectTorrent GetObjectVersion GetObjectVersionAcl GetObjectVersionAttributes
   GetObjectVersionForReplication GetObjectVersionTagging GetObjectVersionTorrent InitiateReplication
   ListMultipartUploadParts ObjectOwnerOverrideToBucketOwner PutObject PutObjectAcl PutObjectLegalHold
   PutObjectRetention PutObjectTagging PutObjectVersionAcl PutObjectVersionTagging ReplicateDelete
   ReplicateObject ReplicateTags RestoreObject`.split(/\s+/),
);
const ofBuckets = new Set(
  `CreateBucket DeleteBucket DeleteBucketOwnershipControls DeleteBucketPolicy DeleteBucketWebsite
   GetAccelerateConfiguration GetAnalyticsConfiguration GetBucketAcl GetBucketCORS GetBucketLocation
   GetBucketLogging GetBucketNotification GetBucketObjectLockConfiguration GetBucketOwnershipControls
   GetBucketPolicy GetBucketPolicyStatus GetBucketPublicAccessBlock GetBucketRequestPayment GetBucketTagging
   GetBucketVersioning GetBucketWebsite GetEncryptionConfiguration GetIntelligentTieringConfiguration
   GetInventoryConfiguration GetLifecycleConfiguration GetMetricsConfiguration GetReplicationConfiguration
   ListBucket ListBucketMultipartUploads ListBucketVersions PutAccelerateConfiguration
   PutAnalyticsConfiguration PutBucketAcl PutBucketCORS PutBucketLogging PutBucketNotification
   PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy PutBucketPublicAccessBlock
   PutBucketRequestPayment PutBucketTagging PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
   PutIntelligentTieringConfiguration PutInventoryConfiguration PutLifecycleConfiguration
   PutMetricsConfiguration PutReplicationConfiguration`.split(/\s+/),
);

function isAction(text: string): boolean {
  if (text === "*") return true;
  const name = /^s3:(.+)$/i.exec(text)?.[1];
  return name !== undefined && [...ofObjects, ...ofBuckets].some((known) => matches(name, known));
}

/** Whether there is something in `path` that the action can be done to. */
function fits(action: string, path: string): boolean {
  const name = action === "*" ? "*" : action.slice("s3:".length);
  const isForObjects = path.includes("/") || path.endsWith("*");
  const isForBuckets = !path.includes("/");
  return (
    (isForObjects && [...ofObjects].some((known) => matches(name, known))) ||
    (isForBuckets && [...ofBuckets].some((known) => matches(name, known)))
  );
}

function malformed(message: string, cause?: unknown): Error {
  return new S3Error("MalformedPolicy", { message, cause });
}
