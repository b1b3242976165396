// Who owns and shares what: access lists of buckets and objects, ownership controls, and whether a
// bucket is public.
import type { Bucket } from "../../../objects/index.ts";
import {
  findGrants,
  formatGrants,
  grantsAsXml,
  grantsOfXml,
  isOpenList,
  isShared,
  parseGrants,
  type Grant,
} from "../../access/access-list.ts";
import { ownerOf } from "../../access/account.ts";
import { isPublicPolicy } from "../../access/public-access.ts";
import { readSmallBody } from "../../body/incoming-body.ts";
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { getKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { malformed, parseXml } from "../../http/xml-in.ts";
import { formatXml } from "../../http/xml-out.ts";
import { mustMayShare } from "../object/put-attributes.ts";
import { headOf } from "../object/object-reads.ts";
import { accountsOf, bucketOf, findVersionId, operation, type Operation, type Place } from "../operation.ts";

const documentBytesMax = 64 * 1024;

export const getBucketAcl: Operation = operation("GetBucketAcl", "read", async (request, place) => {
  const bucket = await bucketOf(request, place);
  const { acl } = (await bucket.config()).documents;
  return xmlAnswer("AccessControlPolicy", grantsAsXml(parseGrants(acl), await ownerOf(bucket)));
});

export const putBucketAcl: Operation = operation("PutBucketAcl", "manage", async (request, place) => {
  const bucket = await bucketOf(request, place);
  const grants = await wantedGrants(request, place, bucket);
  await bucket.setDocument("acl", formatGrants(grants));
  return emptyAnswer();
});

export const getObjectAcl: Operation = operation("GetObjectAcl", "read", async (request, place) => {
  const bucket = await bucketOf(request, place);
  const { acl } = await headOf(request, place, bucket);
  return xmlAnswer("AccessControlPolicy", grantsAsXml(parseGrants(acl), await ownerOf(bucket)));
});

export const putObjectAcl: Operation = operation("PutObjectAcl", "write", async (request, place) => {
  const bucket = await bucketOf(request, place);
  const grants = await wantedGrants(request, place, bucket);
  await bucket.setAcl(getKey(request), formatGrants(grants), { versionId: findVersionId(request) });
  return emptyAnswer();
});

/** By headers, or by a document. MissingSecurityHeader, MalformedACLError, AccessDenied. */
async function wantedGrants(request: S3Request, place: Place, bucket: Bucket): Promise<readonly Grant[]> {
  const bytes = await readSmallBody(request, documentBytesMax);
  const accounts = await accountsOf(bucket, place);
  const byHeader = findGrants(request, accounts);
  if (byHeader === undefined && bytes.length === 0)
    throw new S3Error("MissingSecurityHeader", { details: { MissingHeaderName: "x-amz-acl" } });
  if (byHeader !== undefined && bytes.length > 0)
    throw new S3Error("InvalidRequest", {
      message: "Specifying both headers and a document for an ACL is not allowed",
    });
  const grants = byHeader ?? grantsOfXml(documentOf(bytes), accounts);
  await mustMayShare(request.principal, bucket, grants);
  return grants;
}

function documentOf(bytes: Buffer): ReturnType<typeof parseXml> {
  try {
    return parseXml(bytes, "AccessControlPolicy");
  } catch (cause) {
    throw new S3Error("MalformedACLError", { cause });
  }
}

export const getPolicyStatus: Operation = operation("GetBucketPolicyStatus", "read", async (request, place) => {
  const { policy, acl } = (await (await bucketOf(request, place)).config()).documents;
  const isOpen = (policy !== undefined && isPublicPolicy(policy)) || isOpenList(parseGrants(acl));
  return xmlAnswer("PolicyStatus", { IsPublic: isOpen });
});

const ownerships = ["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"] as const;
type Ownership = (typeof ownerships)[number];

/** InvalidArgument. */
export function ownershipOf(text: string): Ownership {
  const found = ownerships.find((name) => name === text);
  if (found !== undefined) return found;
  const message = "Invalid x-amz-object-ownership header";
  throw new S3Error("InvalidArgument", {
    message,
    details: { ArgumentName: "x-amz-object-ownership", ArgumentValue: text },
  });
}

export function ownershipAsXml(ownership: Ownership): string {
  return formatXml("OwnershipControls", { Rule: { ObjectOwnership: ownership } });
}

/** MalformedXML. A bucket that is shared by its list cannot be one without lists. */
export async function checkOwnership(bytes: Buffer, bucket: Bucket): Promise<void> {
  const rules = parseXml(bytes, "OwnershipControls").all("Rule");
  const wanted = rules[0]?.findText("ObjectOwnership");
  if (rules.length !== 1 || !ownerships.some((name) => name === wanted)) throw malformed();
  const { acl } = (await bucket.config()).documents;
  if (wanted === "BucketOwnerEnforced" && isShared(parseGrants(acl)))
    throw new S3Error("InvalidRequest", {
      message: "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
    });
}
