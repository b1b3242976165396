// A bucket and an upload in parts, as programs use them.
import type { Body, Cancel } from "../../common.ts";
import type {
  BodyOption,
  BucketConfig,
  Checksum,
  CopyOptions,
  Deleted,
  DeleteItem,
  DeleteOptions,
  ListOptions,
  ListPage,
  ListVersionsOptions,
  ObjectVersion,
  UploadPartInfo,
  Preconditions,
  PutOptions,
  ReadOptions,
  Retention,
  StoredObject,
  UploadInfo,
  UploadOptions,
  Versioning,
  VersionPage,
} from "./object.ts";

/** An upload in parts. */
export interface Upload extends UploadInfo {
  /**
   * Puts a part, and replaces an earlier part of the same number (1 to 10,000). Throws
   * NO_SUCH_UPLOAD and BAD_DIGEST.
   */
  put(partNumber: number, body: Body, options?: Pick<PutOptions, BodyOption | "signal">): Promise<UploadPartInfo>;
  /**
   * Puts a part that is copied from an object or a range of it. Throws NO_SUCH_UPLOAD, NO_SUCH_KEY,
   * NO_SUCH_VERSION and INVALID_RANGE.
   */
  copy(
    partNumber: number,
    from: {
      bucket?: string | undefined;
      key: string;
      versionId?: string | undefined;
      range?: { start: number; end: number } | undefined;
    },
    options?: Cancel,
  ): Promise<UploadPartInfo>;
  /**
   * Lists the parts in their order, a page at a time (`limit`: default and maximum 1,000). Pass
   * `next` as `after`. Throws NO_SUCH_UPLOAD.
   */
  parts(options?: {
    after?: number | undefined;
    limit?: number | undefined;
  }): Promise<{ readonly parts: readonly UploadPartInfo[]; readonly next?: number }>;
  /**
   * Completes the upload with these parts. `checksum` is of the whole object. The same list again
   * returns the same version for as long as that version exists.
   *
   * Throws INVALID_PART, BAD_DIGEST, PRECONDITION_FAILED and NO_SUCH_UPLOAD.
   */
  complete(
    parts: readonly { partNumber: number; etag: string; checksum?: Checksum | undefined }[],
    options?: Preconditions & Cancel & { checksum?: Checksum | undefined },
  ): Promise<ObjectVersion>;
  /** Aborts the upload and removes its parts. Throws NO_SUCH_UPLOAD, also if it was completed. */
  abort(): Promise<void>;
}
/** A bucket of an object store. If the bucket was deleted, every method throws NO_SUCH_BUCKET. */
export interface Bucket {
  /** The name of the bucket. */
  readonly name: string;
  /**
   * Puts a new version of an object. The version is durable and listed when the promise resolves.
   * Throws PRECONDITION_FAILED, BAD_DIGEST, INVALID_NAME and TOO_LARGE.
   *
   * @example
   * ```ts
   * const { versionId } = await bucket.put("2026/a.pdf", bytes, { contentType: "application/pdf", ifNoneMatch: "*" });
   * ```
   */
  put(key: string, body: Body, options?: PutOptions): Promise<ObjectVersion>;
  /** Opens a version of an object. Throws NO_SUCH_KEY, NO_SUCH_VERSION and INVALID_RANGE. */
  get(key: string, options?: ReadOptions): Promise<StoredObject>;
  /** Returns a version of an object without its body. Throws NO_SUCH_KEY and NO_SUCH_VERSION. */
  head(key: string, options?: Omit<ReadOptions, "range">): Promise<ObjectVersion>;
  /**
   * Deletes an object, or with `versionId` one version permanently. Succeeds if it does not exist.
   * Throws PRECONDITION_FAILED and RETAINED.
   */
  delete(key: string, options?: DeleteOptions): Promise<Deleted>;
  /**
   * Deletes up to 1,000 objects. An object that cannot be deleted has an `error` in the result, and
   * does not affect the others.
   */
  deleteMany(
    items: readonly DeleteItem[],
    options?: Cancel,
  ): Promise<readonly (Deleted | { readonly key: string; readonly error: Error })[]>;
  /**
   * Copies an object of this or another bucket to the key `to`. Throws NO_SUCH_KEY,
   * NO_SUCH_VERSION, PRECONDITION_FAILED, and NO_SUCH_BUCKET if the source bucket does not exist.
   */
  copy(
    from: { bucket?: string | undefined; key: string; versionId?: string | undefined },
    to: string,
    options?: CopyOptions,
  ): Promise<ObjectVersion>;
  /**
   * Reads an object, calls `change` and puts the returned body, unless the object was changed
   * meanwhile; then it repeats, at most `retries` times (default 100). `change` receives undefined
   * if the object does not exist. If it returns undefined, nothing is put. Throws
   * PRECONDITION_FAILED after the last retry.
   *
   * @example
   * ```ts
   * await bucket.update("counter", async (current) => String(Number((await current?.text()) ?? 0) + 1));
   * ```
   */
  update(
    key: string,
    change: (current: StoredObject | undefined) => Promise<Body | undefined> | Body | undefined,
    options?: Omit<PutOptions, keyof Preconditions> & { retries?: number | undefined },
  ): Promise<ObjectVersion | undefined>;
  /** Lists one page of objects, in the order of their keys. */
  list(options?: ListOptions): Promise<ListPage>;
  /** Lists one page of versions and delete markers, in the order of their keys; newest first within a key. */
  listVersions(options?: ListVersionsOptions): Promise<VersionPage>;
  /**
   * Iterates over all objects, in the order of their keys. After the last one it throws the error
   * of the first damaged version, if any.
   */
  objects(options?: Pick<ListOptions, "prefix" | "after"> & Cancel): AsyncIterable<ObjectVersion>;
  /**
   * Iterates over all versions and delete markers of the bucket, of one `key` or of a `prefix`.
   * After the last one it throws the error of the first damaged version, if any.
   */
  versions(options?: { key?: string | undefined; prefix?: string | undefined } & Cancel): AsyncIterable<ObjectVersion>;
  /** Returns the tags of a version. Throws NO_SUCH_KEY and NO_SUCH_VERSION. */
  tags(key: string, options?: { versionId?: string | undefined }): Promise<Readonly<Record<string, string>>>;
  /**
   * Returns the parts of a version that was uploaded in parts; an empty list for another one.
   * `checksum` is in Base64, if the upload had one. Throws NO_SUCH_KEY and NO_SUCH_VERSION.
   */
  parts(
    key: string,
    options?: { versionId?: string | undefined },
  ): Promise<readonly { readonly size: number; readonly checksum?: string }[]>;
  /** Replaces the tags of a version. Throws NO_SUCH_KEY and NO_SUCH_VERSION. */
  setTags(
    key: string,
    tags: Readonly<Record<string, string>>,
    options?: { versionId?: string | undefined },
  ): Promise<void>;
  /**
   * Sets the retention of a version; undefined lifts it. The bucket must have `objectLock`. Throws
   * NO_SUCH_KEY, NO_SUCH_VERSION, and RETAINED if the change would weaken a retention that may not
   * be weakened.
   */
  setRetention(
    key: string,
    retention: Retention | undefined,
    options?: { versionId?: string | undefined; bypassGovernance?: boolean | undefined },
  ): Promise<void>;
  /**
   * Sets or lifts the legal hold of a version. The bucket must have `objectLock`. Throws
   * NO_SUCH_KEY and NO_SUCH_VERSION.
   */
  setLegalHold(key: string, on: boolean, options?: { versionId?: string | undefined }): Promise<void>;
  /**
   * Stores an ACL with a version, for a front end such as the gateway. Throws NO_SUCH_KEY and
   * NO_SUCH_VERSION.
   */
  setAcl(key: string, acl: string, options?: { versionId?: string | undefined }): Promise<void>;
  /** Creates an upload in parts. */
  createUpload(key: string, options?: UploadOptions): Promise<Upload>;
  /** Returns an upload in progress. Throws NO_SUCH_UPLOAD. */
  upload(key: string, id: string): Promise<Upload>;
  /**
   * Lists one page of uploads in progress (`limit`: default and maximum 1,000). Pass
   * `nextKeyMarker` and `nextIdMarker` as `keyMarker` and `idMarker`.
   */
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
  /** Returns the versioning of the bucket. */
  versioning(): Promise<Versioning>;
  /** Enables or suspends versioning. */
  setVersioning(state: "enabled" | "suspended"): Promise<void>;
  /** Returns the configuration of the bucket. */
  config(): Promise<Readonly<BucketConfig>>;
  /** Returns the configuration that this process read last, without reading the disk. Do not change it. */
  knownConfig(): Readonly<BucketConfig> | undefined;
  /** Changes the given properties of the configuration in one step. */
  setConfig(change: Partial<BucketConfig>): Promise<void>;
  /** Stores one document, and other settings with it, in one step. With undefined it removes the document. */
  setDocument(name: string, text: string | undefined, more?: Omit<Partial<BucketConfig>, "documents">): Promise<void>;
}
