// Finds the operation of a request by its method, its bucket and key, and the sub-resource in its
// query.
import { S3Error } from "../http/s3-error.ts";
import type { S3Request } from "../http/request.ts";
import * as settings from "./bucket/bucket-settings.ts";
import * as buckets from "./bucket/buckets.ts";
import { copyObject } from "./object/copy-object.ts";
import { deleteDocument, getDocument, putDocument } from "./bucket/documents.ts";
import * as lifecycle from "./bucket/lifecycle.ts";
import * as listings from "./bucket/listings.ts";
import { completeMultipartUpload } from "./multipart/complete.ts";
import { listMultipartUploads, listParts } from "./multipart/list-uploads.ts";
import * as uploads from "./multipart/uploads.ts";
import { unset } from "./bucket/unset.ts";
import * as objectSettings from "./object/object-settings.ts";
import * as ownership from "./bucket/ownership.ts";
import { getObjectAttributes } from "./object/object-attributes.ts";
import * as reads from "./object/object-reads.ts";
import * as writes from "./object/object-writes.ts";
import type { Operation } from "./operation.ts";

type Routes = Readonly<Record<string, Operation>>;

/** By method and sub-resource, or by the method alone. */
const bucketRoutes: Routes = {
  "GET location": buckets.getBucketLocation,
  "GET acl": ownership.getBucketAcl,
  "PUT acl": ownership.putBucketAcl,
  "GET policyStatus": ownership.getPolicyStatus,
  "GET versioning": settings.getVersioning,
  "PUT versioning": settings.putVersioning,
  "GET tagging": settings.getBucketTagging,
  "PUT tagging": settings.putBucketTagging,
  "DELETE tagging": settings.deleteBucketTagging,
  "GET lifecycle": lifecycle.getLifecycle,
  "PUT lifecycle": lifecycle.putLifecycle,
  "DELETE lifecycle": lifecycle.deleteLifecycle,
  "GET object-lock": settings.getObjectLock,
  "PUT object-lock": settings.putObjectLock,
  ...documentRoutes("cors", "policy", "publicAccessBlock", "ownershipControls"),
  ...unset,
  "GET versions": listings.listObjectVersions,
  "GET uploads": listMultipartUploads,
  "POST delete": writes.deleteObjects,
  GET: listings.listObjects,
  PUT: buckets.createBucket,
  HEAD: buckets.headBucket,
  DELETE: buckets.deleteBucket,
};

const objectRoutes: Routes = {
  "GET acl": ownership.getObjectAcl,
  "PUT acl": ownership.putObjectAcl,
  "GET tagging": objectSettings.getObjectTagging,
  "PUT tagging": objectSettings.putObjectTagging,
  "DELETE tagging": objectSettings.deleteObjectTagging,
  "GET retention": objectSettings.getObjectRetention,
  "PUT retention": objectSettings.putObjectRetention,
  "GET legal-hold": objectSettings.getObjectLegalHold,
  "PUT legal-hold": objectSettings.putObjectLegalHold,
  "GET attributes": getObjectAttributes,
  "POST uploads": uploads.createMultipartUpload,
  "GET uploadId": listParts,
  "PUT uploadId": uploads.uploadPart,
  "POST uploadId": completeMultipartUpload,
  "DELETE uploadId": uploads.abortMultipartUpload,
  GET: reads.getObject,
  HEAD: reads.headObject,
  PUT: writes.putObject,
  DELETE: writes.deleteObject,
};

function documentRoutes(...names: readonly string[]): Routes {
  return Object.fromEntries(
    names.flatMap((name) => [
      [`GET ${name}`, getDocument(name)],
      [`PUT ${name}`, putDocument(name)],
      [`DELETE ${name}`, deleteDocument(name)],
    ]),
  );
}

/**
 * Sub-resources of S3 that are not supported. A request for one is refused by name, and never
 * handled as another operation.
 */
const unsupported = new Set([
  "accelerate",
  "analytics",
  "encryption",
  "intelligent-tiering",
  "inventory",
  "logging",
  "metrics",
  "notification",
  "renameObject",
  "replication",
  "requestPayment",
  "restore",
  "select",
  "session",
  "torrent",
  "website",
]);

/** The sub-resources that select an operation. */
export const subResources: ReadonlySet<string> = new Set([
  ...[...Object.keys(bucketRoutes), ...Object.keys(objectRoutes)].flatMap((route) => route.split(" ")[1] ?? []),
  ...unsupported,
]);

/** Returns all operations that method, address and query can select. */
export const routedOperations: readonly Operation[] = [
  ...Object.values(bucketRoutes),
  ...Object.values(objectRoutes),
  buckets.listBuckets,
  listings.listObjectsV2,
  copyObject,
  uploads.uploadPartCopy,
];

/** Throws NotImplemented or MethodNotAllowed. */
export function operationOf(request: S3Request): Operation {
  const { method, bucket, key, query, headers } = request;
  if (bucket === undefined) {
    if (method === "GET") return buckets.listBuckets;
    throw new S3Error("MethodNotAllowed", { details: { Method: method } });
  }
  const routes = key === undefined ? bucketRoutes : objectRoutes;
  for (const name of query.keys()) {
    const route = routes[`${method} ${name}`];
    if (route !== undefined) return withCopy(route, headers["x-amz-copy-source"] !== undefined);
    if (unsupported.has(name))
      throw new S3Error("NotImplemented", {
        message: `?${name} is not implemented.`,
        details: { QueryParameter: name },
      });
  }
  if (routes === bucketRoutes && method === "GET" && query.get("list-type") === "2") return listings.listObjectsV2;
  const route = routes[method];
  if (route === undefined) throw new S3Error("MethodNotAllowed", { details: { Method: method } });
  return withCopy(route, headers["x-amz-copy-source"] !== undefined);
}

function withCopy(route: Operation, isCopy: boolean): Operation {
  if (!isCopy) return route;
  if (route === writes.putObject) return copyObject;
  return route === uploads.uploadPart ? uploads.uploadPartCopy : route;
}
