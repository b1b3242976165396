// What the policy and the access lists of a bucket and its objects grant: to everybody, and to accounts
// that the bucket does not belong to. A public-access block is stronger than what is granted to everybody.
import { isHoldfastError } from "../../index.ts";
import type { Bucket } from "../../objects/index.ts";
import { malformed, parseXml, type XmlElement } from "../http/xml-in.ts";
import { formatXml } from "../http/xml-out.ts";
import { isListed, type Permission } from "./access-list.ts";
import { judgeCondition, matches, type FindFact } from "./policy-condition.ts";

interface Grantable {
  /** As a policy calls it. */
  readonly action: string;
  /** Of the list of the bucket, or of the object; without one only a policy grants it. */
  readonly permission?: Permission;
  readonly isOfObject?: true;
}

const readObject: Grantable = { action: "s3:GetObject", permission: "READ", isOfObject: true };
const listBucket: Grantable = { action: "s3:ListBucket", permission: "READ" };
const writeBucket: Grantable = { action: "s3:PutObject", permission: "WRITE" };

/** What may be granted to everybody. */
const publicOperations: Readonly<Record<string, Grantable>> = {
  GetObject: readObject,
  HeadObject: readObject,
  GetObjectTagging: { action: "s3:GetObjectTagging" },
  PutObjectTagging: { action: "s3:PutObjectTagging" },
  DeleteObjectTagging: { action: "s3:DeleteObjectTagging" },
  ListObjects: listBucket,
  ListObjectsV2: listBucket,
  HeadBucket: listBucket,
  ListObjectVersions: { action: "s3:ListBucketVersions", permission: "READ" },
  ListMultipartUploads: { action: "s3:ListBucketMultipartUploads", permission: "READ" },
  PutObject: writeBucket,
  CreateMultipartUpload: writeBucket,
  UploadPart: writeBucket,
  CompleteMultipartUpload: writeBucket,
  AbortMultipartUpload: { action: "s3:AbortMultipartUpload", permission: "WRITE" },
  DeleteObject: { action: "s3:DeleteObject", permission: "WRITE" },
};

/** What may be granted to another account beside that; of all else a policy can grant what is named like it. */
const accountOperations: Readonly<Record<string, Grantable>> = {
  ...publicOperations,
  CopyObject: writeBucket,
  UploadPartCopy: writeBucket,
  DeleteObjects: { action: "s3:DeleteObject", permission: "WRITE" },
  ListParts: { action: "s3:ListMultipartUploadParts", permission: "READ" },
  GetBucketAcl: { action: "s3:GetBucketAcl", permission: "READ_ACP" },
  PutBucketAcl: { action: "s3:PutBucketAcl", permission: "WRITE_ACP" },
  GetObjectAcl: { action: "s3:GetObjectAcl", permission: "READ_ACP", isOfObject: true },
  PutObjectAcl: { action: "s3:PutObjectAcl", permission: "WRITE_ACP", isOfObject: true },
};

export interface GrantedRequest {
  /** As AWS names the operation: "PutObject". */
  readonly operation: string;
  readonly key: string | undefined;
  readonly versionId: string | undefined;
  /** Who asks; undefined for a request that is not signed. */
  readonly account: string | undefined;
  /** For conditions. */
  readonly find: FindFact;
}

/** Whether there are buckets in which a request without a signature may do this. */
export function mayBePublic(operation: string): boolean {
  return Object.hasOwn(publicOperations, operation);
}

export async function isGranted(
  bucket: Bucket,
  { operation, key, versionId, account, find }: GrantedRequest,
): Promise<boolean> {
  const table = account === undefined ? publicOperations : accountOperations;
  const found = Object.hasOwn(table, operation) ? table[operation] : undefined;
  if (found === undefined && account === undefined) return false;
  const { action, permission, isOfObject }: Grantable = found ?? { action: `s3:${operation}` };
  const { policy, publicAccessBlock, acl } = (bucket.knownConfig() ?? (await bucket.config())).documents;
  const resource = `arn:aws:s3:::${bucket.name}${key ? `/${key}` : ""}`;
  const judgement =
    policy === undefined ? undefined : await judge(statementsOf(policy), { action, resource, account, find });
  if (judgement === "refused") return false;
  if (judgement === "allowed" && !isBlocked(publicAccessBlock, "RestrictPublicBuckets")) return true;
  // The right to write into a bucket is no right to remove a version.
  if (permission === undefined || (action === "s3:DeleteObject" && versionId !== undefined)) return false;
  const isOpen = !isBlocked(publicAccessBlock, "IgnorePublicAcls");
  const isBy = (list: string | undefined, wanted: Permission): boolean => isListed(list, wanted, account, { isOpen });
  if (isOfObject !== true) return isBy(acl, permission);
  const version = await findVersion(bucket, key ?? "", versionId);
  // That an object is not there may be known to everybody who can list the bucket.
  return version === undefined ? isBy(acl, "READ") : isBy(version.acl, permission);
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

interface Judged {
  readonly action: string;
  readonly resource: string;
  readonly account: string | undefined;
  readonly find: FindFact;
}

/**
 * What cannot be judged, such as an exception or a condition that is not known here, is never an
 * allowance, and always a refusal.
 */
async function judge(statements: readonly Statement[], judged: Judged): Promise<"allowed" | "refused" | undefined> {
  let isAllowed = false;
  for (const statement of statements.filter((each) => applies(each, judged))) {
    const holds = await judgeCondition(statement.Condition, judged.find);
    if (statement.Effect === "Deny" && holds !== false) return "refused";
    if (statement.Effect === "Allow" && holds === true && isPlain(statement)) isAllowed = true;
  }
  return isAllowed ? "allowed" : undefined;
}

function isPlain({ NotPrincipal, NotAction, NotResource }: Statement): boolean {
  return [NotPrincipal, NotAction, NotResource].every((each) => each === undefined);
}

function applies(statement: Statement, { action, resource, account }: Judged): boolean {
  const { Principal, NotPrincipal, Action, NotAction, Resource, NotResource } = statement;
  return (
    (NotPrincipal !== undefined || isEverybody(Principal) || names(Principal, account)) &&
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

/** By its name, or as `arn:aws:iam::shop:root`, or as any user of it. */
function names(principal: unknown, account: string | undefined): boolean {
  if (account === undefined || typeof principal !== "object" || principal === null) return false;
  const { AWS } = principal as { readonly AWS?: unknown };
  const list: readonly unknown[] = Array.isArray(AWS) ? AWS : [AWS];
  return list.some(
    (name) => name === account || (typeof name === "string" && name.startsWith(`arn:aws:iam::${account}:`)),
  );
}

function matchesAny(patterns: unknown, text: string): boolean {
  const list = Array.isArray(patterns) ? patterns : [patterns];
  return list.some((pattern) => typeof pattern === "string" && matches(pattern, text));
}

const blockNames = ["BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"] as const;
type BlockName = (typeof blockNames)[number];

/** All four, as they are told: what is not said is not blocked. MalformedXML. */
export function blockAsXml(root: XmlElement): string {
  const words = blockNames.map((name) => [name, (root.findText(name) ?? "false").toLowerCase()] as const);
  if (words.some(([, word]) => word !== "true" && word !== "false")) throw malformed();
  return formatXml("PublicAccessBlockConfiguration", Object.fromEntries(words));
}

export function isBlocked(document: string | undefined, name: BlockName): boolean {
  if (document === undefined) return false;
  return parseXml(Buffer.from(document), "PublicAccessBlockConfiguration").findText(name)?.toLowerCase() === "true";
}
