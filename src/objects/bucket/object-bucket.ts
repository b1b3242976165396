// ObjectBucket is a bucket in a directory. Each call uses the bucket's current state.
import type { Body } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { makeId } from "../../format/id.ts";
import { CheckedBucket } from "../checked-bucket.ts";
import { listKey, listPage, listVersionsPage } from "../listing/list-page.ts";
import type { IndexSnapshot } from "../listing/index-snapshot.ts";
import { withKeys, type OpenedIndex } from "../listing/listed-keys.ts";
import type {
  BucketConfig,
  CopyOptions,
  DamagedVersion,
  Deleted,
  DeleteOptions,
  ListOptions,
  ListPage,
  ListVersionsOptions,
  ObjectVersion,
  PutOptions,
  ReadOptions,
  StoredObject,
  UploadOptions,
  VersionPage,
} from "../model/object.ts";
import { changeVersion, type ChangeRequest } from "../version/change-version.ts";
import { copyObject, type CopySource } from "../version/copy-version.ts";
import { deleteObject } from "../version/delete-version.ts";
import { findBodyFiles } from "../version/body-files.ts";
import { describe } from "../version/find-version.ts";
import { factsOf, putBody, type AnnounceKey } from "../version/put-version.ts";
import type { WriteConditions } from "../version/preconditions.ts";
import { getVersion, openObject } from "../version/read-version.ts";
import {
  listUploads,
  ObjectUpload,
  type ListUploadsOptions,
  type UploadList,
  type UploadUse,
} from "../multipart/object-upload.ts";
import { noSuchUpload, UploadFiles } from "../multipart/upload-files.ts";
import { uploadRecordOf } from "../multipart/upload-records.ts";
import type { Buckets } from "./buckets.ts";
import { changeSettings, type DocumentChange } from "./change-settings.ts";
import type { OpenBucket } from "./open-bucket.ts";

export interface BucketUse {
  /** The directory of the object store. */
  readonly directory: string;
  readonly buckets: Buckets;
  readonly inlineMax: number;
  readonly announce: AnnounceKey;
  readonly indexOf: (bucket: OpenBucket) => OpenedIndex;
  /** Throws CLOSED if the store is closed, and tracks the call as in progress. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T>;
}

export class ObjectBucket extends CheckedBucket {
  readonly #use: BucketUse;

  constructor(name: string, use: BucketUse) {
    super(name, use.directory);
    this.#use = use;
  }

  protected override async putChecked(
    key: string,
    body: Body,
    options: PutOptions,
    preconditions: WriteConditions,
  ): Promise<ObjectVersion> {
    const { inlineMax, announce, buckets, run } = this.#use;
    const request = { key, facts: factsOf(options), preconditions };
    return await run(() => putBody(() => buckets.get(this.name), request, body, { ...options, inlineMax }, announce));
  }

  protected override async getChecked(key: string, options: ReadOptions): Promise<StoredObject> {
    return await this.#reading((bucket) => openObject(bucket, key, options));
  }

  protected override async headChecked(
    key: string,
    { versionId, signal }: Omit<ReadOptions, "range">,
  ): Promise<ObjectVersion> {
    return await this.#reading(async (bucket) => {
      signal?.throwIfAborted();
      const { version, isLatest } = await getVersion(bucket, key, { versionId });
      return describe(version, isLatest);
    });
  }

  protected override async deleteChecked(key: string, options: DeleteOptions): Promise<Deleted> {
    return await this.#on((bucket) =>
      bucket.storage.reserve.use(() => deleteObject(bucket, key, options, this.#use.announce)),
    );
  }

  protected override async copyChecked(from: CopySource, to: string, options: CopyOptions): Promise<ObjectVersion> {
    const { inlineMax, announce, buckets } = this.#use;
    const open = (): Promise<OpenBucket> => buckets.get(this.name);
    return await this.#on(async (bucket) => {
      const source = from.bucket === undefined ? bucket : await buckets.get(from.bucket);
      return await copyObject({ source, from, open, to, inlineMax, announce }, options);
    });
  }

  protected override async listChecked(options: ListOptions): Promise<ListPage> {
    return await this.#listed((bucket, keys) => listPage(bucket, keys, options));
  }

  protected override async listVersionsChecked(options: ListVersionsOptions): Promise<VersionPage> {
    return await this.#listed((bucket, keys) => listVersionsPage(bucket, keys, options));
  }

  protected override async *listKey(
    key: string,
  ): AsyncGenerator<Pick<VersionPage, "versions"> & { readonly damaged?: readonly DamagedVersion[] }> {
    yield await this.#on((bucket) => listKey(bucket, key));
  }

  protected override async tagsChecked(
    key: string,
    versionId: string | undefined,
  ): Promise<Readonly<Record<string, string>>> {
    return await this.#reading(async (bucket) => (await getVersion(bucket, key, { versionId })).version.tags);
  }

  protected override async partsChecked(
    key: string,
    versionId: string | undefined,
  ): Promise<readonly { readonly size: number; readonly checksum?: string }[]> {
    return await this.#reading(async (bucket) => {
      const { entry } = (await getVersion(bucket, key, { versionId })).version;
      // A body in a file of its own was not uploaded in parts.
      if (entry.kind !== "put" || (entry.partRuns === undefined && entry.partsIn === undefined)) return [];
      const parts = (await findBodyFiles(bucket, entry)) ?? [];
      return parts.map(({ size, sum }) => ({ size, ...(sum === undefined ? {} : { checksum: sum }) }));
    });
  }

  protected override async change(request: ChangeRequest): Promise<void> {
    await this.#on((bucket) => changeVersion(bucket, request));
  }

  protected override async createUploadChecked(key: string, options: UploadOptions): Promise<ObjectUpload> {
    return await this.#on(async (bucket) => {
      await bucket.mustBeThere();
      const { storage } = bucket;
      const id = makeId(storage.nowMs(), storage.ground.ports.random.bytes(16));
      const record = uploadRecordOf(id, key, storage.nowMs(), options);
      await new UploadFiles(bucket, id).create(record);
      return new ObjectUpload(record, this.#uploadUse);
    });
  }

  protected override async findUpload(key: string, id: string): Promise<ObjectUpload> {
    return await this.#on(async (bucket) => {
      const found = await new UploadFiles(bucket, id).findOrDamage();
      // A damaged upload is found by its id, without its key. It can be aborted; every other call
      // throws its error.
      const record = found !== undefined && "error" in found ? { ...found, key } : found;
      if (record === undefined || record.key !== key) throw noSuchUpload(id);
      return new ObjectUpload(record, this.#uploadUse);
    });
  }

  protected override async listUploadsChecked(options: ListUploadsOptions): Promise<UploadList> {
    return await this.#on((bucket) => listUploads(bucket, options));
  }

  get #uploadUse(): UploadUse {
    const { directory, buckets, announce } = this.#use;
    return {
      directory,
      bucket: this.name,
      on: (work) => this.#on(work),
      getBucket: (name) => buckets.get(name),
      announce,
    };
  }

  override async config(): Promise<Readonly<BucketConfig>> {
    return await this.#on(async (bucket) => {
      await bucket.mustBeThere();
      return structuredClone(bucket.settings);
    });
  }

  override knownConfig(): Readonly<BucketConfig> | undefined {
    return this.#use.buckets.findKnown(this.name)?.settings;
  }

  protected override async changeConfig(change: Partial<BucketConfig>, document?: DocumentChange): Promise<void> {
    await this.#on((bucket) => changeSettings(bucket, change, document));
  }

  async #on<T>(work: (bucket: OpenBucket) => Promise<T>): Promise<T> {
    return await this.#use.run(async () => await work(await this.#use.buckets.get(this.name)));
  }

  /**
   * Reads one key with the cached state of the bucket. That is sufficient: no key of a deleted
   * incarnation has a version. If the bucket was deleted, the read throws NO_SUCH_BUCKET and is
   * repeated with fresh state.
   */
  async #reading<T>(work: (bucket: OpenBucket) => Promise<T>): Promise<T> {
    const { run, buckets } = this.#use;
    return await run(async () => {
      const known = buckets.findKnown(this.name);
      try {
        if (known !== undefined) return await work(known);
      } catch (error) {
        if (!isHoldfastError(error, "NO_SUCH_BUCKET")) throw error;
      }
      return await work(await buckets.get(this.name));
    });
  }

  async #listed<T>(work: (bucket: OpenBucket, keys: IndexSnapshot) => Promise<T>): Promise<T> {
    return await this.#on((bucket) => withKeys(bucket, this.#use.indexOf(bucket), (keys) => work(bucket, keys)));
  }
}
