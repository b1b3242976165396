// PgObjects: an object store in a database, with its buckets.
import type { Cancel, VerifyOptions, VerifyReport } from "../../common.ts";
import { Lifetime } from "../../durable/wait/lifetime.ts";
import { randomName } from "../../format/id.ts";
import { checkOptions } from "../../format/known-options.ts";
import { newSettings } from "../../objects/bucket/bucket-config.ts";
import type { Bucket } from "../../objects/model/bucket.ts";
import type { BucketConfig, Versioning } from "../../objects/model/object.ts";
import type { BucketInfo, Collected, ObjectStore, ObjectStoreOptions } from "../../objects/model/object-store.ts";
import { tracedObjectStoreMethods } from "../../objects/traced-methods.ts";
import { Leases, type LeaseGround } from "../../part/leases.ts";
import { traceMethods } from "../../telemetry/trace.ts";
import type { PgGround } from "../liveness/pg-ground.ts";
import type { PgPart } from "../parts.ts";
import { Blobs } from "./blobs.ts";
import { createBucket, deleteBucket, findBucket, getBucket, listBuckets } from "./bucket-rows.ts";
import { collectRows, type CollectOptions } from "./collect-rows.ts";
import { KeyCalls } from "./key-calls.ts";
import type { ObjectsContext } from "./objects-context.ts";
import { PgBucket } from "./pg-bucket.ts";
import { Turns } from "./turns.ts";
import { verifyObjects } from "./verify-objects.ts";

const inlineMaxDefault = 64 * 1024;
/**
 * Larger bodies would make the transaction of a whole batch long, so they get rows of their own.
 */
const inlineMaxMax = 1024 * 1024;

export interface PgObjectsContext {
  readonly ground: PgGround;
  readonly leases: LeaseGround;
  readonly part: PgPart;
}

export class PgObjects implements ObjectStore {
  static {
    traceMethods(this, tracedObjectStoreMethods);
  }

  readonly directory: string;
  /** No key is cached. */
  readonly keysInMemory = 0;
  readonly #context: ObjectsContext;
  readonly #leases: Leases;
  readonly #life: Lifetime;

  constructor(
    { ground, leases, part }: PgObjectsContext,
    { inlineMax = inlineMaxDefault, durability }: ObjectStoreOptions = {},
  ) {
    const { database, ports } = ground;
    const newId = (): string => randomName(ports.random.bytes(16));
    const turns = new Turns(database, { newId, isSynced: durability !== "none" });
    const known = new Map<string, BucketConfig>();
    const onSettings = (bucket: string, settings: BucketConfig): void => void known.set(bucket, settings);
    this.directory = `${ground.location}#objects`;
    this.#life = new Lifetime(this.directory);
    this.#leases = new Leases(part.path, async () => leases);
    this.#context = {
      database,
      part,
      directory: this.directory,
      turns,
      calls: new KeyCalls({ database, part: part.p, turns, onSettings }),
      blobs: new Blobs(database, part.p, newId),
      inlineMax: Math.min(inlineMax, inlineMaxMax),
      known,
      newId,
      random: () => ports.random.bytes(16),
      run: (work) => this.#life.run(work),
    };
  }

  async createBucket(
    name: string,
    options: { versioning?: Versioning | undefined; objectLock?: boolean | undefined } = {},
  ): Promise<Bucket> {
    const settings = newSettings(options);
    await this.#life.run(() => createBucket(this.#context, name, settings));
    return new PgBucket(name, this.#context);
  }

  async bucket(name: string): Promise<Bucket> {
    await this.#life.run(() => getBucket(this.#context, name));
    return new PgBucket(name, this.#context);
  }

  async findBucket(name: string): Promise<Bucket | undefined> {
    const found = await this.#life.run(() => findBucket(this.#context, name));
    return found && new PgBucket(name, this.#context);
  }

  async listBuckets(): Promise<BucketInfo[]> {
    return await this.#life.run(() => listBuckets(this.#context));
  }

  async deleteBucket(name: string, options: { abortUploads?: boolean | undefined } = {}): Promise<void> {
    checkOptions("deleteBucket", options, { abortUploads: true });
    await this.#life.run(() => deleteBucket(this.#context, name, options.abortUploads === true));
  }

  async collect(options: Cancel = {}): Promise<Collected> {
    checkOptions("collect", options, { signal: true });
    return await this.collectAs(options);
  }

  /** Collects as if at another time. */
  async collectAs(options: CollectOptions): Promise<Collected> {
    return await this.#life.run(async () => {
      const hold = await this.#leases.acquire("collect", options.signal ?? new AbortController().signal);
      try {
        return await collectRows(this.#context, options);
      } finally {
        // A lease that could not be released ends with this process.
        await hold.release().catch(() => undefined);
      }
    });
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkOptions("verify", options, { signal: true, repair: true, onProgress: true });
    return await this.#life.run(() => verifyObjects(this.#context, options));
  }

  async close(): Promise<void> {
    await this.#life.close(() => this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await this.#leases.close();
    // If a row stays, a collection removes it.
    await this.#context.turns.close().catch(() => undefined);
  }
}
