// DirectoryObjects: an object store in a directory, with its buckets.
import type { Cancel, VerifyOptions, VerifyReport } from "../common.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { checkOptions } from "../format/known-options.ts";
import { Buckets } from "./bucket/buckets.ts";
import { ObjectBucket, type BucketUse } from "./bucket/object-bucket.ts";
import type { OpenedObjects } from "./bucket/open-objects.ts";
import type { OpenBucket } from "./bucket/open-bucket.ts";
import { Announcements } from "./listing/announcements.ts";
import { KeyIndex, mergeAt } from "./listing/key-index.ts";
import { Collector, type Collected } from "./collect/collect.ts";
import { verifyObjects } from "./collect/verify.ts";
import type { PathHold } from "../locks/path/path-hold.ts";
import { Leases } from "../part/leases.ts";
import { checkSettings } from "./model/arguments.ts";
import type { BucketInfo, ObjectStoreOptions, Versioning } from "./model/object-store.ts";
import { versionings } from "./bucket/bucket-config.ts";

const inlineMaxDefault = 64 * 1024;

export class DirectoryObjects implements AsyncDisposable {
  readonly directory: string;
  readonly #opened: OpenedObjects;
  readonly #buckets: Buckets;
  readonly #use: BucketUse;
  readonly #leases: Leases;
  readonly #announcements = new Announcements(async (bucket) => await (await this.#openIndex(bucket)).merge(mergeAt));
  /** By the directory of the index: a bucket that is made again has another one. */
  readonly #indexes = new Map<string, Promise<KeyIndex>>();
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(opened: OpenedObjects, { inlineMax = inlineMaxDefault }: ObjectStoreOptions = {}) {
    this.directory = opened.place.layout.directory;
    this.#opened = opened;
    this.#buckets = new Buckets(opened.place);
    this.#leases = new Leases(this.directory, async () => opened.place.ground);
    this.#use = {
      buckets: this.#buckets,
      inlineMax,
      announce: (bucket, key, incarnation) => this.#announcements.announce(bucket, key, incarnation),
      openIndex: (bucket) => this.#openIndex(bucket),
      run: (work) => this.#run(work),
    };
  }

  /** How many keys this process remembers: it does not grow with the number of keys that were put. */
  get keysInMemory(): number {
    return this.#buckets.keysInMemory;
  }

  async createBucket(
    name: string,
    options: { versioning?: Versioning | undefined; objectLock?: boolean | undefined } = {},
  ): Promise<ObjectBucket> {
    checkOptions("createBucket", options, { versioning: true, objectLock: true });
    const { objectLock = false, versioning = objectLock ? "enabled" : "off" } = options;
    if (!versionings.includes(versioning))
      throw new TypeError(`versioning is one of ${versionings.join(", ")}, not ${versioning as string}.`);
    checkSettings("createBucket", { objectLock });
    if (objectLock && versioning !== "enabled") throw new TypeError("Object lock needs versioning to be enabled.");
    await this.#run(async () => {
      await this.#buckets.create(name, { versioning, objectLock });
      // For users who may only read: they cannot make the index that a listing begins with. Whatever
      // fails here, the bucket is made, and the next process that may write makes its index.
      await this.#makeIndex(name).catch(() => undefined);
    });
    return new ObjectBucket(name, this.#use);
  }

  async #makeIndex(name: string): Promise<void> {
    const bucket = await this.#buckets.find(name);
    if (bucket !== undefined) await this.#openIndex(bucket);
  }

  /** NO_SUCH_BUCKET. */
  async bucket(name: string): Promise<ObjectBucket> {
    return await this.#run(async () => {
      await (await this.#buckets.get(name)).mustBeThere();
      return new ObjectBucket(name, this.#use);
    });
  }

  async findBucket(name: string): Promise<ObjectBucket | undefined> {
    const found = await this.#run(() => this.#buckets.findLiving(name));
    return found && new ObjectBucket(name, this.#use);
  }

  async listBuckets(): Promise<BucketInfo[]> {
    return await this.#run(() => this.#buckets.list());
  }

  /** NO_SUCH_BUCKET, BUCKET_NOT_EMPTY. */
  async deleteBucket(name: string, options: { abortUploads?: boolean | undefined } = {}): Promise<void> {
    checkOptions("deleteBucket", options, { abortUploads: true });
    const { abortUploads = false } = options;
    await this.#run(() => this.#buckets.delete(name, abortUploads));
  }

  /** Removes what is not needed any more: one process at a time, whichever asks. */
  async collect(options: Cancel = {}): Promise<Collected> {
    checkOptions("collect", options, { signal: true });
    const { signal } = options;
    return await this.#run(async () => {
      // No room for a lease, and a collection makes room. It only spares other processes the same work.
      const hold = await this.#lease(signal).catch((error: unknown) => {
        if (!isHoldfastError(error, "DISK_FULL")) throw error;
      });
      try {
        return await new Collector(this.#opened.place, this.#buckets, this.#use.openIndex).collect({ signal });
      } finally {
        // A lease that could not be released ends with this process.
        await hold?.release().catch(() => undefined);
      }
    });
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkOptions("verify", options, { signal: true, repair: true, onProgress: true });
    return await this.#run(async () => {
      // One process repairs at a time, so that none moves what another one has put in the place of damage.
      const hold = options.repair === true ? await this.#lease(options.signal) : undefined;
      try {
        return await verifyObjects(this.#opened.place, this.#buckets, options);
      } finally {
        await hold?.release().catch(() => undefined);
      }
    });
  }

  async #lease(signal: AbortSignal | undefined): Promise<PathHold> {
    return await this.#leases.acquire("collect", signal ?? new AbortController().signal);
  }

  /** Waits for what is under way, and leaves. */
  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#underWay]);
    await this.#announcements.settled();
    await this.#leases.close();
    if (this.#opened.ownsGround) await this.#opened.place.ground.close();
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

  async #run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw holdfastError("CLOSED", `${this.directory} was closed.`, {});
    const running = work();
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    this.#underWay.add(ended);
    void ended.then(() => this.#underWay.delete(ended));
    return await running;
  }
}
