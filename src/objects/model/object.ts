// The options and results of buckets: objects, versions and uploads.
import type { Cancel, Content } from "../../common.ts";
import type { Checksum, ChecksumAlgorithm } from "./entry.ts";

export type { Checksum, ChecksumAlgorithm } from "./entry.ts";

/**
 * The versioning of a bucket, as in S3. It is `off` until it is enabled for the first time, and
 * `suspended` if it is disabled later.
 */
export type Versioning = "enabled" | "suspended" | "off";
/** HTTP headers that are stored with a version and returned with it. */
export interface ContentHeaders {
  /** `Content-Type`. Default: none. */
  contentType?: string | undefined;
  /** `Content-Encoding`. Default: none. */
  contentEncoding?: string | undefined;
  /** `Content-Disposition`. Default: none. */
  contentDisposition?: string | undefined;
  /** `Content-Language`. Default: none. */
  contentLanguage?: string | undefined;
  /** `Cache-Control`. Default: none. */
  cacheControl?: string | undefined;
  /** `Expires`. Default: none. */
  expires?: string | undefined;
}
/** Protects a version from deletion. */
export interface Retention {
  /** `governance` can be lifted with `bypassGovernance`; `compliance` cannot be lifted. */
  readonly mode: "governance" | "compliance";
  /** When the protection ends. */
  readonly until: Date;
}

/**
 * Conditions of a write, checked by the write itself: exactly one of several rivals succeeds. The
 * others throw PRECONDITION_FAILED, without `current` if there is no object.
 */
export interface Preconditions {
  /** One ETag, or several separated by commas: the current version must have one of them. */
  ifMatch?: string | undefined;
  /** ETags that the current version must not have. `*`: the object must not exist. */
  ifNoneMatch?: string | undefined;
  /** The current version must have this id. Stronger than an ETag, which two equal bodies share. */
  ifVersion?: string | undefined;
}
/** Options of `put`. */
export interface PutOptions extends ContentHeaders, Preconditions, Cancel {
  /** User metadata. Default: none. */
  metadata?: Readonly<Record<string, string>> | undefined;
  /** Tags, which lifecycle rules select by. Default: none. */
  tags?: Readonly<Record<string, string>> | undefined;
  /**
   * The size that the body must have. Otherwise nothing is stored, and the put throws BAD_DIGEST.
   * Default: any.
   */
  size?: number | undefined;
  /**
   * The MD5 that the body must have, in hex or Base64. Otherwise nothing is stored, and the put throws
   * BAD_DIGEST. Default: any.
   */
  md5?: string | undefined;
  /**
   * The checksum that the body must have, or the algorithm of a checksum to compute and store.
   * Throws BAD_DIGEST if it differs. Default: none.
   */
  checksum?: Checksum | { readonly algorithm: ChecksumAlgorithm } | undefined;
  /**
   * Called with the digests when the body is complete. If it throws, nothing is stored, and the put
   * throws the same error.
   */
  check?: ((body: BodyDigests) => void) | undefined;
  /** Protects the version from deletion. Default: the `defaultRetention` of the bucket. */
  retention?: Retention | undefined;
  /** Protects the version from deletion until the hold is lifted. Default false. */
  legalHold?: boolean | undefined;
  /** Stored for a front end such as the gateway and returned unchanged. The store does not interpret it. */
  acl?: string | undefined;
}
/** Digests of a complete body. */
export interface BodyDigests {
  /** Size in bytes. */
  readonly size: number;
  /** MD5 in hex. */
  readonly md5: string;
  /** SHA-256 in hex. */
  readonly sha256: string;
  /** The checksum that the caller requested, if any. */
  readonly checksum?: Checksum;
}
/** Options of `copy`. */
export interface CopyOptions extends PutOptions {
  /**
   * `copy` takes headers, metadata and tags from the source; `replace` takes them from these
   * options. Default `copy`.
   */
  attributes?: "copy" | "replace" | undefined;
  /** The source must have one of these ETags. Throws PRECONDITION_FAILED. */
  sourceIfMatch?: string | undefined;
  /** The source must have none of these ETags. Throws PRECONDITION_FAILED. */
  sourceIfNoneMatch?: string | undefined;
}
/** One version of an object, without its body. */
export interface ObjectVersion {
  /** The key of the object. */
  readonly key: string;
  /**
   * The id of the version; "null" for a version that was put while versioning was off or suspended,
   * as in S3.
   */
  readonly versionId: string;
  /** The ETag, without quotes. */
  readonly etag: string;
  /** Size in bytes. */
  readonly size: number;
  /** When it was put. */
  readonly lastModified: Date;
  /** True for a delete marker. */
  readonly deleteMarker: boolean;
  /** True for the current version. */
  readonly isLatest: boolean;
  /** `Content-Type`, if one was stored. */
  readonly contentType?: string;
  /** The stored HTTP headers, by name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The user metadata. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The stored checksum, if any. */
  readonly checksum?: Checksum;
  /** The retention, if any. */
  readonly retention?: Retention;
  /** True if the version is under a legal hold. */
  readonly legalHold?: boolean;
  /** How many tags it has. Absent if it has none. */
  readonly tagCount?: number;
  /** The ACL that a front end stored, if any. */
  readonly acl?: string;
  /** Sizes of its parts, if it was uploaded in parts. */
  readonly partSizes?: readonly number[];
}
/**
 * An open version. It can be read once to its end, even if it is overwritten or deleted meanwhile.
 * Dispose of it, or read it to the end.
 *
 * The stream throws NO_SUCH_VERSION if a deleted part was not open: one after the first 64, or of a
 * large object that is read again.
 */
export interface StoredObject extends ObjectVersion, Content, AsyncDisposable {
  /** The returned range, both ends inclusive. Absent if the whole object was requested. */
  readonly range?: { readonly start: number; readonly end: number };
}
/** Options of `get`. */
export interface ReadOptions extends Cancel {
  /** Reads this version. Default: the current one. */
  versionId?: string | undefined;
  /** Byte range, both ends inclusive; a negative start counts from the end. Default: the whole object. */
  range?: { start: number; end?: number | undefined } | undefined;
}
/** Options of `delete`. */
export interface DeleteOptions extends Cancel {
  /**
   * Deletes this version permanently. Default: deletes the object, and keeps its versions behind a
   * delete marker if versioning is enabled.
   */
  versionId?: string | undefined;
  /** The current version must have one of these ETags. Throws PRECONDITION_FAILED. */
  ifMatch?: string | undefined;
  /** The current version must have this size in bytes. Throws PRECONDITION_FAILED. */
  ifSize?: number | undefined;
  /** The current version must have been put in this second. Throws PRECONDITION_FAILED. */
  ifLastModified?: Date | undefined;
  /** Ignores governance retention, but never compliance. Default false. */
  bypassGovernance?: boolean | undefined;
}
/** An object to delete with `deleteMany`. */
export interface DeleteItem extends Omit<DeleteOptions, "signal"> {
  /** The key of the object. */
  key: string;
}
/** The result of a delete. */
export interface Deleted {
  /** The key of the object. */
  readonly key: string;
  /** The id of the deleted version, or of the delete marker that was added. */
  readonly versionId?: string;
  /** True if a delete marker was added or deleted. */
  readonly deleteMarker: boolean;
}
/** Options of `list`. */
export interface ListOptions {
  /** Lists only keys with this prefix. Default: all. */
  prefix?: string | undefined;
  /** Groups keys that share the text up to this delimiter into `prefixes`. Default: none. */
  delimiter?: string | undefined;
  /**
   * Continues after this key, or after this common prefix and all keys that begin with it. A common
   * prefix must be longer than `prefix`, and contain the delimiter at its end only.
   */
  after?: string | undefined;
  /**
   * The largest number of entries on a page. Default and maximum 1,000. With 0 the page is empty,
   * and has no `next`.
   */
  limit?: number | undefined;
}
/** A version whose record cannot be read. All other versions are listed and can be read. */
export interface DamagedVersion {
  /** The key of the object. */
  readonly key: string;
  /** The id for `get` and `delete`. Absent in a list of objects, and if nothing of the key can be read. */
  readonly versionId?: string;
  /** True if it may be the current version; then the current version is unknown. */
  readonly isLatest: boolean;
  /** Describes the damage, where it is, and the remedy. */
  readonly error: Error;
}
/** One page of `list`. */
export interface ListPage {
  /** The current versions, in the order of their keys. */
  readonly objects: readonly ObjectVersion[];
  /** The common prefixes. */
  readonly prefixes: readonly string[];
  /** Keys whose current version cannot be read, and which are not in `objects`. Absent if there are none. */
  readonly damaged?: readonly DamagedVersion[];
  /** Pass it as `after` to get the next page. Absent on the last page. */
  readonly next?: string;
}
/** Options of `listVersions`. */
export interface ListVersionsOptions {
  /** Lists only keys with this prefix. Default: all. */
  prefix?: string | undefined;
  /** Groups keys that share the text up to this delimiter into `prefixes`. Default: none. */
  delimiter?: string | undefined;
  /** Continues after this key. Default: from the start. */
  keyMarker?: string | undefined;
  /** Continues after this version of `keyMarker`. Default: after all its versions. */
  versionMarker?: string | undefined;
  /** The largest number of entries on a page. Default and maximum 1,000. */
  limit?: number | undefined;
}
/** One page of `listVersions`. */
export interface VersionPage {
  /** Versions and delete markers, in the order of their keys; newest first within a key. */
  readonly versions: readonly ObjectVersion[];
  /** The common prefixes. */
  readonly prefixes: readonly string[];
  /** Versions whose record cannot be read, and which are not in `versions`. Absent if there are none. */
  readonly damaged?: readonly DamagedVersion[];
  /** Pass it as `keyMarker` to get the next page. Absent on the last page. */
  readonly nextKeyMarker?: string;
  /** Pass it as `versionMarker` to get the next page. It stays valid if that version is deleted. */
  readonly nextVersionMarker?: string;
}
/** An uploaded part. */
export interface UploadPartInfo {
  /** The number of the part, from 1 to 10,000. */
  readonly partNumber: number;
  /** The ETag of the part, which `complete` needs. */
  readonly etag: string;
  /** Size in bytes. */
  readonly size: number;
  /** When the part was put. */
  readonly lastModified: Date;
  /** The checksum of the part, if one was requested. */
  readonly checksum?: Checksum;
}
/** @deprecated Use `UploadPartInfo`. */
export type PartInfo = UploadPartInfo;
/** An upload in progress. */
export interface UploadInfo {
  /** The id of the upload. */
  readonly id: string;
  /** The key of the object. */
  readonly key: string;
  /** When the upload was created. */
  readonly startedAt: Date;
  /** The checksum that was requested when the upload was created, if any. */
  readonly checksum?: Omit<Checksum, "value">;
  /** The `initiator` that was passed when it was created, if any. */
  readonly initiator?: string;
  /** Why the upload cannot be read. It can only be aborted; `key` is the readable part of its key, or empty. */
  readonly damaged?: Error;
}
/** The options of `put` that describe the bytes of one body. */
export type BodyOption = "size" | "md5" | "checksum" | "check";
/** Options of `createUpload`. */
export type UploadOptions = Omit<PutOptions, keyof Preconditions | BodyOption> & {
  /**
   * Computes a checksum of the object. `full` combines those of the parts, which only CRCs allow.
   * Default type `composite`; by default, no checksum.
   */
  checksum?: Omit<Checksum, "value"> | undefined;
  /** Stored for a front end such as the gateway and returned unchanged. Default: none. */
  initiator?: string | undefined;
};
/** A rule that `collect` applies to a bucket. */
export interface LifecycleRule {
  /** A name for the rule. Default: none. */
  id?: string | undefined;
  /** Applies only to keys with this prefix. Default: all. */
  prefix?: string | undefined;
  /** Applies only to versions with all these tags. Default: any. */
  tags?: Readonly<Record<string, string>> | undefined;
  /** Applies only to versions of more bytes than this. Default: any. */
  bytesAbove?: number | undefined;
  /** Applies only to versions of fewer bytes than this. Default: any. */
  bytesBelow?: number | undefined;
  /** Deletes the current version at the first midnight UTC after this many days. */
  expireDays?: number | undefined;
  /** Deletes every current version from this time on, in milliseconds since 1970. */
  expireAtMs?: number | undefined;
  /** Removes a noncurrent version `days` after it was superseded (default 0), except the newest `keep` (default 0). */
  noncurrent?: { days?: number | undefined; keep?: number | undefined } | undefined;
  /** Aborts an upload this many days after it was created. */
  abortUploadsDays?: number | undefined;
  /** Removes a delete marker that is the only version of its key. Default false. */
  removeLoneMarkers?: boolean | undefined;
}
/** The configuration of a bucket. */
export interface BucketConfig {
  /** The versioning of the bucket. */
  versioning: Versioning;
  /** True if versions can be retained. It requires versioning. */
  objectLock: boolean;
  /** The retention of versions that are put without one, if any. */
  defaultRetention?: { mode: "governance" | "compliance"; days: number } | undefined;
  /** The lifecycle rules. */
  lifecycle: readonly LifecycleRule[];
  /** The tags of the bucket. */
  tags: Readonly<Record<string, string>>;
  /** Documents of a front end such as the gateway (CORS, policy, …), stored and returned unchanged. */
  documents: Readonly<Record<string, string>>;
}
