// What a caller of an object store says and gets: buckets, objects, versions and uploads.
import type { Body, Cancel, Content, OpenOptions, VerifyOptions, VerifyReport } from "../../common.ts";
import type { Checksum, ChecksumAlgorithm } from "./entry.ts";

export type { Checksum, ChecksumAlgorithm } from "./entry.ts";

export interface ObjectStoreOptions extends OpenOptions {
  durability?: "fsync" | "none" | undefined;
  /** Bodies up to this many bytes live in the version file's own block. Default 64 KiB. */
  inlineMax?: number | undefined;
}
export type Versioning = "enabled" | "suspended" | "off";
export interface BucketInfo {
  readonly name: string;
  readonly createdAt: Date;
  readonly versioning: Versioning;
}
export interface ContentHeaders {
  contentType?: string | undefined;
  contentEncoding?: string | undefined;
  contentDisposition?: string | undefined;
  contentLanguage?: string | undefined;
  cacheControl?: string | undefined;
  expires?: string | undefined;
}
export interface Retention {
  readonly mode: "governance" | "compliance";
  readonly until: Date;
}

/**
 * Decided by the swap itself: exactly one of many rivals wins. PRECONDITION_FAILED, without `current`
 * when no object is there.
 */
export interface Preconditions {
  /** ETag. */
  ifMatch?: string | undefined;
  ifNoneMatch?: "*" | undefined;
  /** Stronger than an ETag, which two equal bodies share. */
  ifVersion?: string | undefined;
}
export interface PutOptions extends ContentHeaders, Preconditions, Cancel {
  metadata?: Readonly<Record<string, string>> | undefined;
  tags?: Readonly<Record<string, string>> | undefined;
  /** Declared by the sender; fewer or other bytes: nothing is stored (BAD_DIGEST). */
  size?: number | undefined;
  md5?: string | undefined;
  checksum?: Checksum | { readonly algorithm: ChecksumAlgorithm } | undefined;
  retention?: Retention | undefined;
  legalHold?: boolean | undefined;
  /** Kept for a front, such as the gateway, and given back as it is. Says nothing to the store. */
  acl?: string | undefined;
}
export interface CopyOptions extends PutOptions {
  /** Default "copy": headers, metadata and tags of the source. */
  attributes?: "copy" | "replace" | undefined;
  sourceIfMatch?: string | undefined;
  sourceIfNoneMatch?: string | undefined;
}
export interface ObjectVersion {
  readonly key: string;
  /** "null" where versioning was off or suspended, as in S3. */
  readonly versionId: string;
  readonly etag: string;
  readonly size: number;
  readonly lastModified: Date;
  readonly deleteMarker: boolean;
  readonly isLatest: boolean;
  readonly contentType?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly checksum?: Checksum;
  readonly retention?: Retention;
  readonly legalHold?: boolean;
  /** Absent when there are none. */
  readonly tagCount?: number;
  readonly acl?: string;
  /** Of a version that was uploaded in parts. */
  readonly partSizes?: readonly number[];
}
/**
 * Opened: one version, whatever is put meanwhile. It can be read once to its end also when it is
 * deleted meanwhile. NO_SUCH_VERSION ends the stream when a part is gone that was not open: one
 * behind the first 64, or of a large object that is read again. Dispose of it, or read it to the end.
 */
export interface StoredObject extends ObjectVersion, Content, AsyncDisposable {
  readonly range?: { readonly start: number; readonly end: number };
}
export interface ReadOptions extends Cancel {
  versionId?: string | undefined;
  /** Bytes, both ends inclusive; a negative start counts from the end. */
  range?: { start: number; end?: number | undefined } | undefined;
}
export interface DeleteOptions extends Cancel {
  versionId?: string | undefined;
  ifMatch?: string | undefined;
  /** Only if the current version has so many bytes. */
  ifSize?: number | undefined;
  /** Only if the current version was written in this second. */
  ifLastModified?: Date | undefined;
  /** Lifts governance retention; never compliance. */
  bypassGovernance?: boolean | undefined;
}
/** One of many objects to delete. */
export interface DeleteItem extends Omit<DeleteOptions, "signal"> {
  key: string;
}
export interface Deleted {
  readonly key: string;
  readonly versionId?: string;
  readonly deleteMarker: boolean;
}
export interface ListOptions {
  prefix?: string | undefined;
  delimiter?: string | undefined;
  /**
   * A key, or a common prefix of this very prefix and delimiter: all that begins with that one is
   * skipped. A common prefix is longer than `prefix`, and has the delimiter at its end only.
   */
  after?: string | undefined;
  /** Default and maximum 1_000. With 0 the page is empty, and has no `next`. */
  limit?: number | undefined;
}
export interface ListPage {
  readonly objects: readonly ObjectVersion[];
  readonly prefixes: readonly string[];
  /** Absent on the last page; goes into `after`. */
  readonly next?: string;
}
export interface ListVersionsOptions {
  prefix?: string | undefined;
  delimiter?: string | undefined;
  keyMarker?: string | undefined;
  versionMarker?: string | undefined;
  limit?: number | undefined;
}
export interface VersionPage {
  /** Delete markers among them, newest first within a key. */
  readonly versions: readonly ObjectVersion[];
  readonly prefixes: readonly string[];
  readonly nextKeyMarker?: string;
  /** Where the page ended: the next one goes on there also if that version is gone by then. */
  readonly nextVersionMarker?: string;
}
export interface PartInfo {
  readonly partNumber: number;
  readonly etag: string;
  readonly size: number;
  readonly lastModified: Date;
  readonly checksum?: Checksum;
}
export interface UploadInfo {
  readonly id: string;
  readonly key: string;
  readonly startedAt: Date;
  /** As it was asked for when the upload began. */
  readonly checksum?: Omit<Checksum, "value">;
}
/** A checksum of type "full" is joined from those of the parts, which only CRCs allow; "composite" is the default. */
export type UploadOptions = Omit<PutOptions, keyof Preconditions | "size" | "md5" | "checksum"> & {
  checksum?: Omit<Checksum, "value"> | undefined;
};
export interface Upload extends UploadInfo {
  put(
    partNumber: number,
    body: Body,
    options?: Pick<PutOptions, "size" | "md5" | "checksum" | "signal">,
  ): Promise<PartInfo>;
  copy(
    partNumber: number,
    from: {
      bucket?: string | undefined;
      key: string;
      versionId?: string | undefined;
      range?: { start: number; end: number } | undefined;
    },
    options?: Cancel,
  ): Promise<PartInfo>;
  parts(options?: {
    after?: number | undefined;
    limit?: number | undefined;
  }): Promise<{ readonly parts: readonly PartInfo[]; readonly next?: number }>;
  /**
   * Idempotent: the same list again gives the same version, for as long as that one is there; NO_SUCH_UPLOAD
   * afterwards. `checksum` is of the whole object.
   * INVALID_PART, BAD_DIGEST, PRECONDITION_FAILED.
   */
  complete(
    parts: readonly { partNumber: number; etag: string; checksum?: Checksum | undefined }[],
    options?: Preconditions & Cancel & { checksum?: Checksum | undefined },
  ): Promise<ObjectVersion>;
  abort(): Promise<void>;
}
export interface LifecycleRule {
  id?: string | undefined;
  prefix?: string | undefined;
  tags?: Readonly<Record<string, string>> | undefined;
  /** Only versions of more bytes than this. */
  bytesAbove?: number | undefined;
  /** Only versions of fewer bytes than this. */
  bytesBelow?: number | undefined;
  /** At the first midnight (UTC) so many days after it was written. */
  expireDays?: number | undefined;
  /** All that there is, from this moment on. */
  expireAtMs?: number | undefined;
  noncurrent?: { days?: number | undefined; keep?: number | undefined } | undefined;
  abortUploadsDays?: number | undefined;
  removeLoneMarkers?: boolean | undefined;
}
/** What a front such as the gateway stores with a bucket. `documents` are kept and returned as they are (CORS, policy, …). */
export interface BucketConfig {
  versioning: Versioning;
  objectLock: boolean;
  defaultRetention?: { mode: "governance" | "compliance"; days: number } | undefined;
  lifecycle: readonly LifecycleRule[];
  tags: Readonly<Record<string, string>>;
  documents: Readonly<Record<string, string>>;
}
export interface Bucket {
  readonly name: string;
  /** The version is durable and listed when it resolves. PRECONDITION_FAILED, BAD_DIGEST. */
  put(key: string, body: Body, options?: PutOptions): Promise<ObjectVersion>;
  /** NO_SUCH_KEY, NO_SUCH_VERSION, INVALID_RANGE. */
  get(key: string, options?: ReadOptions): Promise<StoredObject>;
  head(key: string, options?: Omit<ReadOptions, "range">): Promise<ObjectVersion>;
  delete(key: string, options?: DeleteOptions): Promise<Deleted>;
  deleteMany(
    items: readonly DeleteItem[],
    options?: Cancel,
  ): Promise<readonly (Deleted | { readonly key: string; readonly error: Error })[]>;
  copy(
    from: { bucket?: string | undefined; key: string; versionId?: string | undefined },
    to: string,
    options?: CopyOptions,
  ): Promise<ObjectVersion>;
  /** Read, change, write with `ifVersion`, again when another writer was faster. `change` gets undefined when there is no such key; returning undefined writes nothing. */
  update(
    key: string,
    change: (current: StoredObject | undefined) => Promise<Body | undefined> | Body | undefined,
    options?: Omit<PutOptions, keyof Preconditions> & { retries?: number | undefined },
  ): Promise<ObjectVersion | undefined>;
  list(options?: ListOptions): Promise<ListPage>;
  listVersions(options?: ListVersionsOptions): Promise<VersionPage>;
  /** All pages. */
  objects(options?: Pick<ListOptions, "prefix" | "after"> & Cancel): AsyncIterable<ObjectVersion>;
  versions(options?: { key?: string | undefined; prefix?: string | undefined } & Cancel): AsyncIterable<ObjectVersion>;
  tags(key: string, options?: { versionId?: string | undefined }): Promise<Readonly<Record<string, string>>>;
  /** Of a version that was uploaded in parts, in their order; none of another one. `checksum` is in Base64, where the upload had one. */
  parts(
    key: string,
    options?: { versionId?: string | undefined },
  ): Promise<readonly { readonly size: number; readonly checksum?: string }[]>;
  setTags(
    key: string,
    tags: Readonly<Record<string, string>>,
    options?: { versionId?: string | undefined },
  ): Promise<void>;
  setRetention(
    key: string,
    retention: Retention | undefined,
    options?: { versionId?: string | undefined; bypassGovernance?: boolean | undefined },
  ): Promise<void>;
  setLegalHold(key: string, on: boolean, options?: { versionId?: string | undefined }): Promise<void>;
  setAcl(key: string, acl: string, options?: { versionId?: string | undefined }): Promise<void>;
  createUpload(key: string, options?: UploadOptions): Promise<Upload>;
  /** NO_SUCH_UPLOAD. */
  upload(key: string, id: string): Promise<Upload>;
  listUploads(options?: {
    prefix?: string | undefined;
    keyMarker?: string | undefined;
    idMarker?: string | undefined;
    limit?: number | undefined;
  }): Promise<{
    readonly uploads: readonly UploadInfo[];
    readonly nextKeyMarker?: string;
    readonly nextIdMarker?: string;
  }>;
  versioning(): Promise<Versioning>;
  setVersioning(state: "enabled" | "suspended"): Promise<void>;
  config(): Promise<Readonly<BucketConfig>>;
  /** The same as this process has seen it last, without a look at the disk; not to be changed. */
  knownConfig(): Readonly<BucketConfig> | undefined;
  setConfig(change: Partial<BucketConfig>): Promise<void>;
  /** One document, and perhaps other settings with it, in one step. Undefined removes it. */
  setDocument(name: string, text: string | undefined, more?: Omit<Partial<BucketConfig>, "documents">): Promise<void>;
}
export interface ObjectStore extends AsyncDisposable {
  /** BUCKET_EXISTS. Default versioning: "off", as in S3. */
  createBucket(
    name: string,
    options?: { versioning?: Versioning | undefined; objectLock?: boolean | undefined },
  ): Promise<Bucket>;
  /** NO_SUCH_BUCKET. */
  bucket(name: string): Promise<Bucket>;
  findBucket(name: string): Promise<Bucket | undefined>;
  listBuckets(): Promise<BucketInfo[]>;
  /** NO_SUCH_BUCKET, BUCKET_NOT_EMPTY. Uploads that are under way keep it, unless `abortUploads` is set. */
  deleteBucket(name: string, options?: { abortUploads?: boolean | undefined }): Promise<void>;
  /** Orphans, trash, lifecycle; under a lease, so calling it everywhere is harmless. */
  collect(options?: Cancel): Promise<{ readonly objects: number; readonly bytes: number }>;
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  close(): Promise<void>;
}
