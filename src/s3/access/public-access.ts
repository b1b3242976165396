// Which requests without a signature are answered: those that the policy or the access list of a
// bucket, or the access list of an object, allows to everybody, and that its public-access block does
// not forbid.
import { isHoldfastError } from "../../index.ts";
import type { Bucket } from "../../objects/index.ts";
import { parseXml } from "../http/xml-in.ts";
import { grantsEverybody } from "./access-list.ts";

/** What a policy calls an operation that may be public. */
const publicActions: Readonly<Record<string, string>> = {
  GetObject: "s3:GetObject",
  HeadObject: "s3:GetObject",
  GetObjectTagging: "s3:GetObjectTagging",
  PutObjectTagging: "s3:PutObjectTagging",
  DeleteObjectTagging: "s3:DeleteObjectTagging",
  ListObjects: "s3:ListBucket",
  ListObjectsV2: "s3:ListBucket",
  HeadBucket: "s3:ListBucket",
  ListObjectVersions: "s3:ListBucketVersions",
  ListMultipartUploads: "s3:ListBucketMultipartUploads",
  PutObject: "s3:PutObject",
  CreateMultipartUpload: "s3:PutObject",
  UploadPart: "s3:PutObject",
  CompleteMultipartUpload: "s3:PutObject",
  AbortMultipartUpload: "s3:AbortMultipartUpload",
  DeleteObject: "s3:DeleteObject",
};

export interface PublicRequest {
  /** As AWS names the operation: "PutObject". */
  readonly operation: string;
  readonly key: string | undefined;
  readonly versionId: string | undefined;
}

export async function isPublic(bucket: Bucket, { operation, key, versionId }: PublicRequest): Promise<boolean> {
  const action = Object.hasOwn(publicActions, operation) ? publicActions[operation] : undefined;
  if (action === undefined) return false;
  const { policy, publicAccessBlock, acl } = (await bucket.config()).documents;
  const judgement =
    policy === undefined ? undefined : judge(policy, action, `arn:aws:s3:::${bucket.name}${key ? `/${key}` : ""}`);
  if (judgement === "refused") return false;
  if (judgement === "allowed" && !isBlocked(publicAccessBlock, "RestrictPublicBuckets")) return true;
  if (isBlocked(publicAccessBlock, "IgnorePublicAcls")) return false;
  if (action === "s3:GetObject") return await isReadable(bucket, key ?? "", versionId, acl);
  const isListing = action.startsWith("s3:List");
  const isWriting = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"].includes(action);
  // The right to write into a bucket is no right to remove a version.
  if (action === "s3:DeleteObject" && versionId !== undefined) return false;
  return (isListing && grantsEverybody(acl, "READ")) || (isWriting && grantsEverybody(acl, "WRITE"));
}

/** That an object is not there may be known to everybody who can list the bucket. */
async function isReadable(
  bucket: Bucket,
  key: string,
  versionId: string | undefined,
  bucketAcl: string | undefined,
): Promise<boolean> {
  try {
    return grantsEverybody((await bucket.head(key, { versionId })).acl, "READ");
  } catch (error) {
    if (isHoldfastError(error, "NO_SUCH_KEY") || isHoldfastError(error, "NO_SUCH_VERSION"))
      return grantsEverybody(bucketAcl, "READ");
    throw error;
  }
}

interface Statement {
  readonly Effect?: unknown;
  readonly Principal?: unknown;
  readonly Action?: unknown;
  readonly Resource?: unknown;
  readonly Condition?: unknown;
  readonly NotPrincipal?: unknown;
  readonly NotAction?: unknown;
  readonly NotResource?: unknown;
}

/**
 * A condition cannot be judged here, and neither can an exception: an allowance with one does not
 * count, a refusal with one does.
 */
function judge(policy: string, action: string, resource: string): "allowed" | "refused" | undefined {
  const statements = statementsOf(policy).filter((statement) => applies(statement, action, resource));
  if (statements.some(({ Effect }) => Effect === "Deny")) return "refused";
  return statements.some((statement) => statement.Effect === "Allow" && isPlain(statement)) ? "allowed" : undefined;
}

function isPlain({ Condition, NotPrincipal, NotAction, NotResource }: Statement): boolean {
  return [Condition, NotPrincipal, NotAction, NotResource].every((each) => each === undefined);
}

function applies(statement: Statement, action: string, resource: string): boolean {
  const { Principal, NotPrincipal, Action, NotAction, Resource, NotResource } = statement;
  return (
    (NotPrincipal !== undefined || isEverybody(Principal)) &&
    (NotAction !== undefined || matchesAny(Action, action)) &&
    (NotResource !== undefined || matchesAny(Resource, resource))
  );
}

/** Whether a policy allows something to everybody, whatever it is. */
export function isPublicPolicy(policy: string): boolean {
  return statementsOf(policy).some(
    ({ Effect, Principal, NotPrincipal, Condition }) =>
      Effect === "Allow" && Condition === undefined && (NotPrincipal !== undefined || isEverybody(Principal)),
  );
}

function statementsOf(policy: string): readonly Statement[] {
  const { Statement } = JSON.parse(policy) as { readonly Statement?: unknown };
  return (Array.isArray(Statement) ? Statement : [Statement]) as readonly Statement[];
}

function isEverybody(principal: unknown): boolean {
  if (principal === "*") return true;
  if (typeof principal !== "object" || principal === null) return false;
  const { AWS } = principal as { readonly AWS?: unknown };
  return AWS === "*" || (Array.isArray(AWS) && AWS.includes("*"));
}

function matchesAny(patterns: unknown, text: string): boolean {
  const list = Array.isArray(patterns) ? patterns : [patterns];
  return list.some((pattern) => typeof pattern === "string" && matches(pattern, text));
}

/** `*` for any characters, `?` for one; in time that grows with both lengths only. */
export function matches(pattern: string, text: string): boolean {
  let [at, star, mark] = [0, -1, 0];
  for (let index = 0; index < text.length;) {
    if (pattern[at] === "*") [star, mark, at] = [at, index, at + 1];
    else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === text[index]))
      [at, index] = [at + 1, index + 1];
    else if (star >= 0) [at, mark, index] = [star + 1, mark + 1, mark + 1];
    else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}

type BlockName = "BlockPublicAcls" | "IgnorePublicAcls" | "BlockPublicPolicy" | "RestrictPublicBuckets";

export function isBlocked(document: string | undefined, name: BlockName): boolean {
  if (document === undefined) return false;
  return parseXml(Buffer.from(document), "PublicAccessBlockConfiguration").findText(name)?.toLowerCase() === "true";
}
