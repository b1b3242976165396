// The actions of policies, by their AWS names: which ones an operation needs, which exist on AWS,
// and which an ACL can grant as well.
import { findHeader, type S3Request } from "../http/request.ts";
import type { Permission } from "./access-list.ts";
import { matches } from "./wildcard.ts";

interface NeededActions {
  readonly actions: readonly string[];
  /** The actions for a request that names a version. Default: `actions`. */
  readonly ofVersion?: readonly string[];
}

const needs = (...actions: readonly string[]): NeededActions => ({ actions });
const versioned = (action: string, ofVersion: string): NeededActions => ({ actions: [action], ofVersion: [ofVersion] });

type Table = Readonly<Record<string, NeededActions>>;

/** Both tables are keyed by operation. A test compares them with the router. */
const bucketTable: Table = {
  CreateBucket: needs("CreateBucket"),
  DeleteBucket: needs("DeleteBucket"),
  HeadBucket: needs("ListBucket"),
  ListObjects: needs("ListBucket"),
  ListObjectsV2: needs("ListBucket"),
  ListObjectVersions: needs("ListBucketVersions"),
  ListMultipartUploads: needs("ListBucketMultipartUploads"),
  GetBucketLocation: needs("GetBucketLocation"),
  GetBucketAcl: needs("GetBucketAcl"),
  PutBucketAcl: needs("PutBucketAcl"),
  GetBucketPolicy: needs("GetBucketPolicy"),
  PutBucketPolicy: needs("PutBucketPolicy"),
  DeleteBucketPolicy: needs("DeleteBucketPolicy"),
  GetBucketPolicyStatus: needs("GetBucketPolicyStatus"),
  GetBucketVersioning: needs("GetBucketVersioning"),
  PutBucketVersioning: needs("PutBucketVersioning"),
  GetBucketTagging: needs("GetBucketTagging"),
  PutBucketTagging: needs("PutBucketTagging"),
  DeleteBucketTagging: needs("PutBucketTagging"),
  GetBucketLifecycleConfiguration: needs("GetLifecycleConfiguration"),
  PutBucketLifecycleConfiguration: needs("PutLifecycleConfiguration"),
  DeleteBucketLifecycle: needs("PutLifecycleConfiguration"),
  GetObjectLockConfiguration: needs("GetBucketObjectLockConfiguration"),
  PutObjectLockConfiguration: needs("PutBucketObjectLockConfiguration"),
  GetBucketCors: needs("GetBucketCORS"),
  PutBucketCors: needs("PutBucketCORS"),
  DeleteBucketCors: needs("PutBucketCORS"),
  GetPublicAccessBlock: needs("GetBucketPublicAccessBlock"),
  PutPublicAccessBlock: needs("PutBucketPublicAccessBlock"),
  DeletePublicAccessBlock: needs("PutBucketPublicAccessBlock"),
  GetBucketOwnershipControls: needs("GetBucketOwnershipControls"),
  PutBucketOwnershipControls: needs("PutBucketOwnershipControls"),
  DeleteBucketOwnershipControls: needs("PutBucketOwnershipControls"),
  GetBucketAccelerateConfiguration: needs("GetAccelerateConfiguration"),
  PutBucketAccelerateConfiguration: needs("PutAccelerateConfiguration"),
  GetBucketLogging: needs("GetBucketLogging"),
  PutBucketLogging: needs("PutBucketLogging"),
  GetBucketNotificationConfiguration: needs("GetBucketNotification"),
  PutBucketNotificationConfiguration: needs("PutBucketNotification"),
  GetBucketRequestPayment: needs("GetBucketRequestPayment"),
  PutBucketRequestPayment: needs("PutBucketRequestPayment"),
  GetBucketEncryption: needs("GetEncryptionConfiguration"),
  DeleteBucketEncryption: needs("PutEncryptionConfiguration"),
  GetBucketReplication: needs("GetReplicationConfiguration"),
  DeleteBucketReplication: needs("PutReplicationConfiguration"),
  GetBucketWebsite: needs("GetBucketWebsite"),
  DeleteBucketWebsite: needs("DeleteBucketWebsite"),
};

const objectTable: Table = {
  GetObject: versioned("GetObject", "GetObjectVersion"),
  HeadObject: versioned("GetObject", "GetObjectVersion"),
  GetObjectAttributes: {
    actions: ["GetObject", "GetObjectAttributes"],
    ofVersion: ["GetObjectVersion", "GetObjectVersionAttributes"],
  },
  GetObjectAcl: versioned("GetObjectAcl", "GetObjectVersionAcl"),
  PutObjectAcl: versioned("PutObjectAcl", "PutObjectVersionAcl"),
  GetObjectTagging: versioned("GetObjectTagging", "GetObjectVersionTagging"),
  PutObjectTagging: versioned("PutObjectTagging", "PutObjectVersionTagging"),
  DeleteObjectTagging: versioned("DeleteObjectTagging", "DeleteObjectVersionTagging"),
  GetObjectRetention: needs("GetObjectRetention"),
  PutObjectRetention: needs("PutObjectRetention"),
  GetObjectLegalHold: needs("GetObjectLegalHold"),
  PutObjectLegalHold: needs("PutObjectLegalHold"),
  PutObject: needs("PutObject"),
  PostObject: needs("PutObject"),
  // The right to read the source is checked separately, like that of a GetObject.
  CopyObject: needs("PutObject"),
  CreateMultipartUpload: needs("PutObject"),
  UploadPart: needs("PutObject"),
  UploadPartCopy: needs("PutObject"),
  CompleteMultipartUpload: needs("PutObject"),
  AbortMultipartUpload: needs("AbortMultipartUpload"),
  ListParts: needs("ListMultipartUploadParts"),
  DeleteObject: versioned("DeleteObject", "DeleteObjectVersion"),
  // The right to each key is checked separately, like that of a DeleteObject.
  DeleteObjects: versioned("DeleteObject", "DeleteObjectVersion"),
  BypassGovernance: needs("BypassGovernanceRetention"),
};

/** Actions of AWS on objects that no operation of the gateway needs. A policy may name them. */
const moreOfObjects = `GetObjectTorrent GetObjectVersionForReplication GetObjectVersionTorrent InitiateReplication
  ObjectOwnerOverrideToBucketOwner ReplicateDelete ReplicateObject ReplicateTags RestoreObject`.split(/\s+/);
const moreOfBuckets = `CreateBucketMetadataTableConfiguration DeleteBucketMetadataTableConfiguration
  GetAnalyticsConfiguration GetBucketMetadataTableConfiguration GetIntelligentTieringConfiguration
  GetInventoryConfiguration GetMetricsConfiguration ListTagsForResource PutAnalyticsConfiguration PutBucketWebsite
  PutIntelligentTieringConfiguration PutInventoryConfiguration PutMetricsConfiguration TagResource
  UntagResource`.split(/\s+/);

const table: Table = { ...bucketTable, ...objectTable, ListBuckets: needs("ListAllMyBuckets") };

function actionsOf(some: Table): readonly string[] {
  return Object.values(some).flatMap(({ actions, ofVersion = [] }) => [...actions, ...ofVersion]);
}

const existing: Readonly<Record<"objects" | "buckets", readonly string[]>> = {
  objects: [...new Set([...actionsOf(objectTable), ...moreOfObjects])],
  buckets: [...new Set([...actionsOf(bucketTable), ...moreOfBuckets])],
};

/** Matches action patterns of a policy, such as `s3:getobject` and `s3:Put*`. */
export function matchesAction(pattern: string, action: string): boolean {
  return pattern === "*" || matches(pattern.toLowerCase(), `s3:${action.toLowerCase()}`);
}

/** True if the pattern matches an AWS action on objects or on buckets. */
export function existsFor(what: keyof typeof existing, pattern: string): boolean {
  return existing[what].some((action) => matchesAction(pattern, action));
}

/** One right that a request must have. */
export interface RequiredAction {
  readonly action: string;
  /** The ACL entry that also grants this right. */
  readonly byList?: ListEntry;
}

interface ListEntry {
  readonly of: "bucket" | "object";
  readonly permission: Permission;
}

const byLists: Readonly<Record<string, ListEntry>> = {
  GetObject: { of: "object", permission: "READ" },
  GetObjectVersion: { of: "object", permission: "READ" },
  GetObjectAcl: { of: "object", permission: "READ_ACP" },
  GetObjectVersionAcl: { of: "object", permission: "READ_ACP" },
  PutObjectAcl: { of: "object", permission: "WRITE_ACP" },
  PutObjectVersionAcl: { of: "object", permission: "WRITE_ACP" },
  ListBucket: { of: "bucket", permission: "READ" },
  ListBucketVersions: { of: "bucket", permission: "READ" },
  ListBucketMultipartUploads: { of: "bucket", permission: "READ" },
  ListMultipartUploadParts: { of: "bucket", permission: "READ" },
  PutObject: { of: "bucket", permission: "WRITE" },
  AbortMultipartUpload: { of: "bucket", permission: "WRITE" },
  // Only a policy can allow DeleteObjectVersion: an ACL never does.
  DeleteObject: { of: "bucket", permission: "WRITE" },
  GetBucketAcl: { of: "bucket", permission: "READ_ACP" },
  PutBucketAcl: { of: "bucket", permission: "WRITE_ACP" },
};

/**
 * An account that the bucket's ACL lets write owns the objects that it puts, and may set their ACL
 * and tags.
 */
const byWriting: ListEntry = { of: "bucket", permission: "WRITE" };

/** Operations that create an object. Their headers may need further rights. */
const making = new Set(["PutObject", "PostObject", "CopyObject", "CreateMultipartUpload"]);

/** All rights that a request needs. Throws a TypeError for an operation that is not in the table. */
export function rightsFor(
  operation: string,
  request: Pick<S3Request, "headers">,
  versionId: string | undefined,
): readonly RequiredAction[] {
  const needed = Object.hasOwn(table, operation) ? table[operation] : undefined;
  if (needed === undefined) throw new TypeError(`The operation ${operation} has no actions.`);
  const { actions, ofVersion = actions } = needed;
  const rights = (versionId === undefined ? actions : ofVersion).map((action) => right(action));
  return making.has(operation) ? [...rights, ...rightsOfHeaders(request)] : rights;
}

function right(action: string): RequiredAction {
  const byList = byLists[action];
  return byList === undefined ? { action } : { action, byList };
}

function rightsOfHeaders(request: Pick<S3Request, "headers">): readonly RequiredAction[] {
  const isGiven = (name: string): boolean => findHeader(request, name) !== undefined;
  const hasList = isGiven("x-amz-acl") || Object.keys(request.headers).some((name) => name.startsWith("x-amz-grant-"));
  const isRetained = isGiven("x-amz-object-lock-mode") || isGiven("x-amz-object-lock-retain-until-date");
  return [
    ...(hasList ? [{ action: "PutObjectAcl", byList: byWriting }] : []),
    ...(isGiven("x-amz-tagging") ? [{ action: "PutObjectTagging", byList: byWriting }] : []),
    ...(isRetained ? [{ action: "PutObjectRetention" }] : []),
    ...(isGiven("x-amz-object-lock-legal-hold") ? [{ action: "PutObjectLegalHold" }] : []),
  ];
}

/** Returns the operations in the table, for tests. */
export const operationsWithActions: readonly string[] = Object.keys(table);

const signedOnly = new Set(["ListBuckets", "CreateBucket", "CopyObject", "UploadPartCopy"]);

/** False for operations that AWS refuses without a signature, whatever a policy says. */
export function mayBeUnsigned(operation: string): boolean {
  return !signedOnly.has(operation);
}
