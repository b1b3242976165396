// ObjectBucket: a bucket as its users have it. Each call sees the bucket as it is at that moment.
import type { Body, Cancel } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import { listPage, listVersionsPage, versionsOf } from "../listing/list-page.ts";
import type { IndexSnapshot } from "../listing/index-snapshot.ts";
import type { KeyIndex } from "../listing/key-index.ts";
import {
  checkDeleteItem,
  checkAcl,
  checkDeleteOptions,
  checkKey,
  checkPage,
  checkPutOptions,
  checkReadOptions,
  checkRetention,
  checkSource,
  checkTags,
  checkTextOptions,
  checkUpdateOptions,
  checkUploadOptions,
} from "../model/arguments.ts";
import type {
  BucketConfig,
  CopyOptions,
  Deleted,
  DeleteItem,
  DeleteOptions,
  ListOptions,
  ListPage,
  ListVersionsOptions,
  ObjectVersion,
  Preconditions,
  PutOptions,
  ReadOptions,
  Retention,
  UploadOptions,
  StoredObject,
  VersionPage,
  Versioning,
} from "../model/object-store.ts";
import { changeVersion, mustMayRetain } from "../version/change-version.ts";
import { copyObject, type CopySource } from "../version/copy-version.ts";
import { deleteObject } from "../version/delete-version.ts";
import { findParts } from "../version/body-parts.ts";
import { describe } from "../version/find-version.ts";
import { factsOf, putBody, type Announce } from "../version/put-version.ts";
import type { Wanted } from "../version/preconditions.ts";
import { entryIdOf, getVersion, openObject } from "../version/read-version.ts";
import { isId, makeId } from "../../format/id.ts";
import { orAborted } from "../../part/body.ts";
import {
  listUploads,
  ObjectUpload,
  type ListUploadsOptions,
  type UploadList,
  type UploadUse,
} from "../multipart/object-upload.ts";
import { checkJoinable } from "../multipart/joined-checksum.ts";
import { noSuchUpload, UploadFiles } from "../multipart/upload-files.ts";
import type { Buckets } from "./buckets.ts";
import { changeSettings } from "./change-settings.ts";
import type { OpenBucket } from "./open-bucket.ts";

const deletesMax = 1000;
const retriesDefault = 100;

interface OfVersion {
  versionId?: string | undefined;
}
const ofVersion: OptionNames<OfVersion> = { versionId: true };

export interface BucketUse {
  readonly buckets: Buckets;
  readonly inlineMax: number;
  readonly announce: Announce;
  readonly openIndex: (bucket: OpenBucket) => Promise<KeyIndex>;
  /** Throws CLOSED when the store was closed; counts what is under way. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T>;
}

export class ObjectBucket {
  readonly name: string;
  readonly #use: BucketUse;

  constructor(name: string, use: BucketUse) {
    this.name = name;
    this.#use = use;
  }

  async put(key: string, body: Body, options: PutOptions = {}): Promise<ObjectVersion> {
    checkKey(key);
    checkPutOptions("put", options);
    return await this.#put(key, body, options, options);
  }

  async #put(key: string, body: Body, options: PutOptions, preconditions: Wanted): Promise<ObjectVersion> {
    const { inlineMax, announce, buckets, run } = this.#use;
    const request = { key, facts: factsOf(options), preconditions };
    return await run(() => putBody(() => buckets.get(this.name), request, body, { ...options, inlineMax }, announce));
  }

  async get(key: string, options: ReadOptions = {}): Promise<StoredObject> {
    checkKey(key);
    checkReadOptions("get", options);
    return await this.#reading((bucket) => openObject(bucket, key, options));
  }

  async head(key: string, options: Omit<ReadOptions, "range"> = {}): Promise<ObjectVersion> {
    checkKey(key);
    checkOptions("head", options, { signal: true, versionId: true });
    return await this.#reading(async (bucket) => {
      options.signal?.throwIfAborted();
      const { version, isLatest } = await getVersion(bucket, key, { versionId: options.versionId });
      return describe(version, isLatest);
    });
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<Deleted> {
    checkKey(key);
    checkDeleteOptions("delete", options);
    options.signal?.throwIfAborted();
    return await this.#on((bucket) => deleteObject(bucket, key, options, this.#use.announce));
  }

  async deleteMany(
    items: readonly DeleteItem[],
    options: Cancel = {},
  ): Promise<readonly (Deleted | { readonly key: string; readonly error: Error })[]> {
    checkOptions("deleteMany", options, { signal: true });
    const { signal } = options;
    if (!Array.isArray(items)) throw new TypeError("deleteMany takes a list of { key, versionId }.");
    if (items.length > deletesMax)
      throw new RangeError(`deleteMany takes at most ${deletesMax} items, not ${items.length}.`);
    for (const item of items as readonly DeleteItem[]) checkDeleteItem("deleteMany", item);
    return await Promise.all(
      (items as readonly DeleteItem[]).map(async ({ key, ...options }) => {
        try {
          return await this.delete(key, { ...options, signal });
        } catch (error) {
          signal?.throwIfAborted();
          return { key, error: error instanceof Error ? error : new Error(String(error)) };
        }
      }),
    );
  }

  async copy(from: CopySource, to: string, options: CopyOptions = {}): Promise<ObjectVersion> {
    checkSource("copy", from);
    checkKey(to);
    checkTextOptions("copy", options, ["sourceIfMatch", "sourceIfNoneMatch"]);
    const { attributes: _attributes, sourceIfMatch: _match, sourceIfNoneMatch: _noneMatch, ...put } = options;
    checkPutOptions("copy", put);
    const { inlineMax, announce, buckets } = this.#use;
    const open = (): Promise<OpenBucket> => buckets.get(this.name);
    return await this.#on(async (bucket) => {
      const source = from.bucket === undefined ? bucket : await buckets.get(from.bucket);
      return await copyObject({ source, from, open, to, inlineMax, announce }, options);
    });
  }

  async update(
    key: string,
    change: (current: StoredObject | undefined) => Promise<Body | undefined> | Body | undefined,
    options: Omit<PutOptions, keyof Preconditions> & { retries?: number | undefined } = {},
  ): Promise<ObjectVersion | undefined> {
    const { retries = retriesDefault, ...put } = options;
    checkKey(key);
    checkUpdateOptions("update", options);
    if (typeof change !== "function") throw new TypeError("update takes a function that gives the new body.");
    const { signal } = options;
    for (let attempt = 0; ; attempt++) {
      const current = await this.#findCurrent(key, signal);
      try {
        // Also of a change that never ends.
        const body = await orAborted((async () => await change(current))(), signal);
        if (body === undefined) return undefined;
        const isUnchanged: Wanted = current === undefined ? { ifNoneMatch: "*" } : { ifEntry: entryIdOf(current) };
        return await this.#put(key, body, put, isUnchanged);
      } catch (error) {
        if (attempt >= retries || !isHoldfastError(error, "PRECONDITION_FAILED")) throw error;
      } finally {
        await current?.[Symbol.asyncDispose]();
      }
    }
  }

  async list(options: ListOptions = {}): Promise<ListPage> {
    checkOptions("list", options, { prefix: true, delimiter: true, after: true, limit: true });
    checkPage("list", options, ["prefix", "delimiter", "after"]);
    return await this.#listed((bucket, keys) => listPage(bucket, keys, options));
  }

  async listVersions(options: ListVersionsOptions = {}): Promise<VersionPage> {
    const names = { prefix: true, delimiter: true, keyMarker: true, versionMarker: true, limit: true } as const;
    checkOptions("listVersions", options, names);
    checkPage("listVersions", options, ["prefix", "delimiter", "keyMarker", "versionMarker"]);
    return await this.#listed((bucket, keys) => listVersionsPage(bucket, keys, options));
  }

  async *objects(options: Pick<ListOptions, "prefix" | "after"> & Cancel = {}): AsyncGenerator<ObjectVersion> {
    checkOptions("objects", options, { prefix: true, after: true, signal: true });
    const { signal, ...rest } = options;
    for (let after = rest.after; ;) {
      signal?.throwIfAborted();
      const page = await this.list({ ...rest, after });
      yield* untilAborted(page.objects, signal);
      if (page.next === undefined) return;
      after = page.next;
    }
  }

  async *versions(
    options: { key?: string | undefined; prefix?: string | undefined } & Cancel = {},
  ): AsyncGenerator<ObjectVersion> {
    checkOptions("versions", options, { key: true, prefix: true, signal: true });
    const { signal, key, prefix } = options;
    if (key !== undefined) {
      checkKey(key);
      signal?.throwIfAborted();
      yield* untilAborted(await this.#on((bucket) => versionsOf(bucket, key)), signal);
      return;
    }
    for (let markers: Pick<ListVersionsOptions, "keyMarker" | "versionMarker"> = {}; ;) {
      signal?.throwIfAborted();
      const page = await this.listVersions({ prefix, ...markers });
      yield* untilAborted(page.versions, signal);
      if (page.nextKeyMarker === undefined) return;
      markers = { keyMarker: page.nextKeyMarker, versionMarker: page.nextVersionMarker };
    }
  }

  async tags(key: string, options: OfVersion = {}): Promise<Readonly<Record<string, string>>> {
    checkKey(key);
    checkOptions("tags", options, ofVersion);
    const { versionId } = options;
    return await this.#reading(async (bucket) => (await getVersion(bucket, key, { versionId })).version.tags);
  }

  async parts(
    key: string,
    options: OfVersion = {},
  ): Promise<readonly { readonly size: number; readonly checksum?: string }[]> {
    checkKey(key);
    checkOptions("parts", options, ofVersion);
    const { versionId } = options;
    return await this.#reading(async (bucket) => {
      const { entry } = (await getVersion(bucket, key, { versionId })).version;
      // A body in a file of its own was not uploaded in parts.
      if (entry.kind !== "put" || entry.partRuns === undefined) return [];
      const parts = (await findParts(bucket, entry)) ?? [];
      return parts.map(({ size, sum }) => ({ size, ...(sum === undefined ? {} : { checksum: sum }) }));
    });
  }

  async setTags(key: string, tags: Readonly<Record<string, string>>, options: OfVersion = {}): Promise<void> {
    checkKey(key);
    checkTags("setTags", tags);
    checkOptions("setTags", options, ofVersion);
    const { versionId } = options;
    await this.#on((bucket) => changeVersion(bucket, { key, versionId, change: { tags: { ...tags } } }));
  }

  async setRetention(
    key: string,
    retention: Retention | undefined,
    options: OfVersion & { bypassGovernance?: boolean | undefined } = {},
  ): Promise<void> {
    checkKey(key);
    checkOptions("setRetention", options, { ...ofVersion, bypassGovernance: true });
    const { versionId, bypassGovernance = false } = options;
    if (retention !== undefined) checkRetention("setRetention", retention);
    const stored = retention && { mode: retention.mode, untilMs: retention.until.getTime() };
    await this.#on(async (bucket) => {
      bucket.mustLock();
      await changeVersion(bucket, {
        key,
        versionId,
        change: { retention: stored ?? null },
        check: (version) => mustMayRetain(version, stored, bucket.place.nowMs(), bypassGovernance),
      });
    });
  }

  async setLegalHold(key: string, on: boolean, options: OfVersion = {}): Promise<void> {
    checkKey(key);
    checkOptions("setLegalHold", options, ofVersion);
    const { versionId } = options;
    if (typeof on !== "boolean") throw new TypeError("setLegalHold: a legal hold is on (true) or off (false).");
    await this.#on(async (bucket) => {
      bucket.mustLock();
      await changeVersion(bucket, { key, versionId, change: { legalHold: on } });
    });
  }

  async setAcl(key: string, acl: string, options: OfVersion = {}): Promise<void> {
    checkKey(key);
    checkAcl("setAcl", acl);
    checkOptions("setAcl", options, ofVersion);
    const { versionId } = options;
    await this.#on((bucket) => changeVersion(bucket, { key, versionId, change: { acl } }));
  }

  async createUpload(key: string, options: UploadOptions = {}): Promise<ObjectUpload> {
    checkKey(key);
    checkUploadOptions("createUpload", options);
    const { checksum, signal } = options;
    if (checksum !== undefined) checkJoinable("createUpload", checksum);
    signal?.throwIfAborted();
    return await this.#on(async (bucket) => {
      await bucket.mustBeThere();
      const { place } = bucket;
      const record = {
        id: makeId(place.nowMs(), place.ground.ports.random.bytes(16)),
        key,
        startedAtMs: place.nowMs(),
        facts: factsOf(options),
        ...(checksum === undefined
          ? {}
          : { checksum: { algorithm: checksum.algorithm, type: checksum.type ?? "composite" } }),
      };
      await new UploadFiles(bucket, record.id).create(record);
      return new ObjectUpload(record, this.#uploadUse);
    });
  }

  /** NO_SUCH_UPLOAD. */
  async upload(key: string, id: string): Promise<ObjectUpload> {
    checkKey(key);
    if (!isId(id)) throw noSuchUpload(id);
    return await this.#on(async (bucket) => {
      const record = await new UploadFiles(bucket, id).find();
      if (record === undefined || record.key !== key) throw noSuchUpload(id);
      return new ObjectUpload(record, this.#uploadUse);
    });
  }

  async listUploads(options: ListUploadsOptions = {}): Promise<UploadList> {
    checkOptions("listUploads", options, { prefix: true, keyMarker: true, idMarker: true, limit: true });
    checkPage("listUploads", options, ["prefix", "keyMarker", "idMarker"]);
    return await this.#on((bucket) => listUploads(bucket, options));
  }

  get #uploadUse(): UploadUse {
    const { buckets, announce } = this.#use;
    return { on: (work) => this.#on(work), getBucket: (name) => buckets.get(name), announce };
  }

  async versioning(): Promise<Versioning> {
    return (await this.config()).versioning;
  }

  async setVersioning(state: "enabled" | "suspended"): Promise<void> {
    if (state !== "enabled" && state !== "suspended")
      throw new TypeError(`Versioning can be set to "enabled" or "suspended", not to ${String(state)}.`);
    await this.setConfig({ versioning: state });
  }

  async config(): Promise<Readonly<BucketConfig>> {
    return await this.#on(async (bucket) => {
      await bucket.mustBeThere();
      return structuredClone(bucket.settings);
    });
  }

  knownConfig(): Readonly<BucketConfig> | undefined {
    return this.#use.buckets.findKnown(this.name)?.settings;
  }

  async setConfig(change: Partial<BucketConfig>): Promise<void> {
    await this.#on((bucket) => changeSettings(bucket, change));
  }

  async setDocument(
    name: string,
    text: string | undefined,
    more: Omit<Partial<BucketConfig>, "documents"> = {},
  ): Promise<void> {
    if (typeof name !== "string" || (text !== undefined && typeof text !== "string"))
      throw new TypeError("setDocument: a document has a name and a text.");
    await this.#on((bucket) => changeSettings(bucket, more, { name, text }));
  }

  async #on<T>(work: (bucket: OpenBucket) => Promise<T>): Promise<T> {
    return await this.#use.run(async () => await work(await this.#use.buckets.get(this.name)));
  }

  /**
   * For looking at one key. What this process knows of the bucket will do: in an incarnation that is
   * over no key has a version, so a look there ends with NO_SUCH_BUCKET, and is done anew.
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
    return await this.#on(async (bucket) => {
      const index = await this.#use.openIndex(bucket);
      return await index.use((keys) => work(bucket, keys));
    });
  }

  async #findCurrent(key: string, signal: AbortSignal | undefined): Promise<StoredObject | undefined> {
    try {
      return await this.get(key, { signal });
    } catch (error) {
      if (isHoldfastError(error, "NO_SUCH_KEY")) return undefined;
      throw error;
    }
  }
}

/** A caller may abort while it has a page of them. */
function* untilAborted(versions: readonly ObjectVersion[], signal: AbortSignal | undefined): Generator<ObjectVersion> {
  for (const version of versions) {
    signal?.throwIfAborted();
    yield version;
  }
}
