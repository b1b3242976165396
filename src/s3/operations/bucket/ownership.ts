// Operations on ownership and sharing: ACLs of buckets and objects, ownership controls, and the
// policy status.
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
import { accountsOf, bucketOf, findVersionId, operation, type Operation, type Service } from "../operation.ts";

const documentBytesMax = 64 * 1024;

export const getBucketAcl: Operation = operation("GetBucketAcl", "read", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const { acl } = (await bucket.config()).documents;
  return xmlAnswer("AccessControlPolicy", grantsAsXml(parseGrants(acl), await ownerOf(bucket)));
});

export const putBucketAcl: Operation = operation("PutBucketAcl", "manage", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const grants = await wantedGrants(request, service, bucket);
  await bucket.setDocument("acl", formatGrants(grants));
  return emptyAnswer();
});

export const getObjectAcl: Operation = operation("GetObjectAcl", "read", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const { acl } = await headOf(request, bucket);
  return xmlAnswer("AccessControlPolicy", grantsAsXml(parseGrants(acl), await ownerOf(bucket)));
});

export const putObjectAcl: Operation = operation("PutObjectAcl", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const grants = await wantedGrants(request, service, bucket);
  await bucket.setAcl(getKey(request), formatGrants(grants), { versionId: findVersionId(request) });
  return emptyAnswer();
});

/**
 * Returns the ACL from the headers or from the document. Throws MissingSecurityHeader,
 * MalformedACLError or AccessDenied.
 */
async function wantedGrants(request: S3Request, service: Service, bucket: Bucket): Promise<readonly Grant[]> {
  const bytes = await readSmallBody(request, documentBytesMax);
  const accounts = await accountsOf(bucket, service);
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

export const getPolicyStatus: Operation = operation("GetBucketPolicyStatus", "read", async (request, service) => {
  const { policy, acl } = (await (await bucketOf(request, service)).config()).documents;
  const isOpen = (policy !== undefined && isPublicPolicy(policy)) || isOpenList(parseGrants(acl));
  return xmlAnswer("PolicyStatus", { IsPublic: isOpen });
});

const ownerships = ["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"] as const;
type Ownership = (typeof ownerships)[number];

/** Throws InvalidArgument. */
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

/**
 * Throws MalformedXML, or InvalidRequest if it would disable ACLs while the bucket's ACL shares the
 * bucket.
 */
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
