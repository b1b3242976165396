// ObjectStore is an object store as programs use it, whatever it is stored in.
import type { Cancel, OpenOptions, VerifyOptions, VerifyReport } from "../../common.ts";
import type { Bucket } from "./bucket.ts";
import type { Versioning } from "./object.ts";

/** Options of `openObjects`. */
export interface ObjectStoreOptions extends OpenOptions {
  /**
   * `fsync` syncs every step before it is acknowledged; `none` leaves that to the operating system.
   * Default `fsync`.
   */
  durability?: "fsync" | "none" | undefined;
  /**
   * Bodies up to this many bytes are stored with the record of their version. Default 65,536; at most 16 MiB, or 1 MiB
   * in a database.
   */
  inlineMax?: number | undefined;
}
/** A bucket in the list of buckets. */
export interface BucketInfo {
  /** The name of the bucket. */
  readonly name: string;
  /** When it was created. */
  readonly createdAt: Date;
  /** Its versioning. */
  readonly versioning: Versioning;
  /** Why its configuration cannot be read. Then `createdAt` and `versioning` are meaningless. */
  readonly damaged?: Error;
}
/** The result of `collect`. */
export interface Collected {
  /** How many versions were removed. */
  readonly objects: number;
  /** How many bytes were removed. */
  readonly bytes: number;
}

/** An object store: buckets of versioned objects. After `close` every method throws CLOSED. */
export interface ObjectStore extends AsyncDisposable {
  /** The absolute path of the object store, or its location in a database. */
  readonly directory: string;
  /** How many keys this process caches. It does not grow with the number of keys that were put. */
  readonly keysInMemory: number;
  /**
   * Creates a bucket. Default `versioning`: `off`, as in S3; `enabled` with `objectLock` (default
   * false). Throws BUCKET_EXISTS and INVALID_NAME.
   */
  createBucket(
    name: string,
    options?: { versioning?: Versioning | undefined; objectLock?: boolean | undefined },
  ): Promise<Bucket>;
  /** Returns a bucket. Throws NO_SUCH_BUCKET. */
  bucket(name: string): Promise<Bucket>;
  /** Returns a bucket, or undefined if it does not exist. */
  findBucket(name: string): Promise<Bucket | undefined>;
  /** Lists all buckets, including those whose configuration is damaged. */
  listBuckets(): Promise<BucketInfo[]>;
  /**
   * Deletes an empty bucket. `abortUploads` (default false) aborts its uploads first. Throws
   * NO_SUCH_BUCKET and BUCKET_NOT_EMPTY.
   */
  deleteBucket(name: string, options?: { abortUploads?: boolean | undefined }): Promise<void>;
  /**
   * Applies the lifecycle rules, and removes orphans and trash. One process at a time collects, so
   * every process may call it. Damage does not stop the collection: it collects the rest, then
   * throws the first such error.
   */
  collect(options?: Cancel): Promise<Collected>;
  /** Checks every record and body. Only one process repairs at a time. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /** Waits for calls in progress and closes the store. */
  close(): Promise<void>;
}
