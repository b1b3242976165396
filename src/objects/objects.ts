// DirectoryObjects is an object store in a directory, with its buckets.
import type { Cancel, VerifyOptions, VerifyReport } from "../common.ts";
import { Lifetime } from "../durable/wait/lifetime.ts";
import { isHoldfastError } from "../errors.ts";
import { checkOptions } from "../format/known-options.ts";
import { Buckets } from "./bucket/buckets.ts";
import { ObjectBucket, type BucketUse } from "./bucket/object-bucket.ts";
import type { OpenedObjects } from "./bucket/open-objects.ts";
import type { OpenBucket } from "./bucket/open-bucket.ts";
import { Announcements } from "./listing/announcements.ts";
import { KeyIndex, announcementsBeforeMerge } from "./listing/key-index.ts";
import { mergeKeys, type OpenedIndex } from "./listing/listed-keys.ts";
import { Collector } from "./collect/collect.ts";
import { verifyObjects } from "./collect/verify.ts";
import type { PathHold } from "../locks/path/path-hold.ts";
import { directoryLeases, type Leases } from "../part/leases.ts";
import type { Bucket } from "./model/bucket.ts";
import type { Versioning } from "./model/object.ts";
import type { BucketInfo, Collected, ObjectStore, ObjectStoreOptions } from "./model/object-store.ts";
import { newSettings } from "./bucket/bucket-config.ts";
import { traceMethods } from "../telemetry/trace.ts";
import { tracedObjectStoreMethods } from "./traced-methods.ts";

const inlineMaxDefault = 64 * 1024;

/** An object store in a directory. */
export class DirectoryObjects implements ObjectStore {
  static {
    traceMethods(this, tracedObjectStoreMethods);
  }

  readonly directory: string;
  readonly #opened: OpenedObjects;
  readonly #buckets: Buckets;
  readonly #use: BucketUse;
  readonly #leases: Leases;
  readonly #announcements = new Announcements((bucket) =>
    mergeKeys(bucket, this.#indexOf(bucket), announcementsBeforeMerge),
  );
  /** By the directory of the index: a bucket that is created again has a new directory. */
  readonly #indexes = new Map<string, Promise<KeyIndex>>();
  readonly #life: Lifetime;

  constructor(opened: OpenedObjects, { inlineMax = inlineMaxDefault }: ObjectStoreOptions = {}) {
    this.directory = opened.storage.layout.directory;
    this.#life = new Lifetime(this.directory);
    this.#opened = opened;
    this.#buckets = new Buckets(opened.storage);
    this.#leases = directoryLeases(this.directory, async () => opened.storage.ground);
    this.#use = {
      directory: this.directory,
      buckets: this.#buckets,
      inlineMax,
      announce: (bucket, key, incarnation) => this.#announcements.announce(bucket, key, incarnation),
      indexOf: (bucket) => this.#indexOf(bucket),
      run: (work) => this.#life.run(work),
    };
  }

  get keysInMemory(): number {
    return this.#buckets.keysInMemory;
  }

  async createBucket(
    name: string,
    options: { versioning?: Versioning | undefined; objectLock?: boolean | undefined } = {},
  ): Promise<Bucket> {
    const settings = newSettings(options);
    await this.#life.run(async () => {
      await this.#buckets.create(name, settings);
      // Created here for users who may only read: they cannot create the index that a listing
      // needs. If this fails, the bucket exists anyway, and the next process that may write creates
      // the index.
      await this.#makeIndex(name).catch(() => undefined);
      await this.#opened.storage.reserve.fill();
    });
    return new ObjectBucket(name, this.#use);
  }

  async #makeIndex(name: string): Promise<void> {
    const bucket = await this.#buckets.find(name);
    if (bucket !== undefined) await this.#openIndex(bucket);
  }

  async bucket(name: string): Promise<Bucket> {
    return await this.#life.run(async () => {
      await (await this.#buckets.get(name)).mustBeThere();
      return new ObjectBucket(name, this.#use);
    });
  }

  async findBucket(name: string): Promise<Bucket | undefined> {
    const found = await this.#life.run(() => this.#buckets.findLiving(name));
    return found && new ObjectBucket(name, this.#use);
  }

  async listBuckets(): Promise<BucketInfo[]> {
    return await this.#life.run(() => this.#buckets.list());
  }

  async deleteBucket(name: string, options: { abortUploads?: boolean | undefined } = {}): Promise<void> {
    checkOptions("deleteBucket", options, { abortUploads: true });
    const { abortUploads = false } = options;
    await this.#life.run(() => this.#opened.storage.reserve.use(() => this.#buckets.delete(name, abortUploads)));
  }

  async collect(options: Cancel = {}): Promise<Collected> {
    checkOptions("collect", options, { signal: true });
    const { signal } = options;
    return await this.#life.run(async () => {
      // Collects even without the lease: a full disk has no room for a lease, and the collection
      // makes room. The lease only spares other processes the same work.
      const hold = await this.#lease(signal).catch((error: unknown) => {
        if (!isHoldfastError(error, "DISK_FULL")) throw error;
      });
      try {
        return await new Collector(this.#opened.storage, this.#buckets, this.#use.indexOf).collect({ signal });
      } finally {
        await this.#opened.storage.reserve.fill();
        // An error is ignored: a lease that could not be released ends with this process.
        await hold?.release().catch(() => undefined);
      }
    });
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkOptions("verify", options, { signal: true, repair: true, onProgress: true });
    return await this.#life.run(async () => {
      // Only one process repairs at a time: a second one could move what the first has just
      // restored.
      const hold = options.repair === true ? await this.#lease(options.signal) : undefined;
      try {
        return await verifyObjects(this.#opened.storage, this.#buckets, options);
      } finally {
        await hold?.release().catch(() => undefined);
      }
    });
  }

  async #lease(signal: AbortSignal | undefined): Promise<PathHold> {
    return await this.#leases.acquire("collect", signal ?? new AbortController().signal);
  }

  async close(): Promise<void> {
    await this.#life.close(() => this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await this.#announcements.settled();
    await this.#leases.close();
    if (this.#opened.ownsGround) await this.#opened.storage.ground.close();
  }

  #indexOf(bucket: OpenBucket): OpenedIndex {
    return {
      open: () => this.#openIndex(bucket),
      openAgain: () => {
        this.#indexes.delete(bucket.layout.index);
        return this.#openIndex(bucket);
      },
    };
  }

  async #openIndex(bucket: OpenBucket): Promise<KeyIndex> {
    const path = bucket.layout.index;
    let opening = this.#indexes.get(path);
    if (opening === undefined) {
      opening = KeyIndex.open(bucket);
      this.#indexes.set(path, opening);
      opening.catch(() => this.#indexes.delete(path));
    }
    return await opening;
  }
}
