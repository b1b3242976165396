// The part of a bucket that is the same in every engine: it checks the arguments of a call, repeats
// updates, turns pages into iterations, and passes on what is left to do.
import type { Body, Cancel } from "../common.ts";
import { isErrorLike, isHoldfastError } from "../errors.ts";
import { isId } from "../format/id.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { orAborted } from "../part/body.ts";
import { traceMethods } from "../telemetry/trace.ts";
import type { DocumentChange } from "./bucket/change-settings.ts";
import {
  checkAcl,
  checkDeleteItem,
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
} from "./model/arguments.ts";
import type { Bucket, Upload } from "./model/bucket.ts";
import type {
  BucketConfig,
  CopyOptions,
  DamagedVersion,
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
  StoredObject,
  UploadOptions,
  Versioning,
  VersionPage,
} from "./model/object.ts";
import { tracedBucketMethods } from "./traced-methods.ts";
import { checkJoinable } from "./multipart/joined-checksum.ts";
import type { ListUploadsOptions, UploadList } from "./multipart/object-upload.ts";
import { noSuchUpload } from "./multipart/upload-files.ts";
import { mustMayRetain, type ChangeRequest } from "./version/change-version.ts";
import type { CopySource } from "./version/copy-version.ts";
import type { WriteConditions } from "./version/preconditions.ts";
import { entryIdOf } from "./version/read-version.ts";

const deletesMax = 1000;
const retriesDefault = 100;

interface OfVersion {
  versionId?: string | undefined;
}
const ofVersion: OptionNames<OfVersion> = { versionId: true };

export abstract class CheckedBucket implements Bucket {
  static {
    traceMethods(this, tracedBucketMethods);
  }

  readonly name: string;
  /** The directory of the object store, or its name in a database. */
  readonly directory: string;

  constructor(name: string, directory: string) {
    this.name = name;
    this.directory = directory;
  }

  protected abstract putChecked(
    key: string,
    body: Body,
    options: PutOptions,
    wanted: WriteConditions,
  ): Promise<ObjectVersion>;
  protected abstract getChecked(key: string, options: ReadOptions): Promise<StoredObject>;
  protected abstract headChecked(key: string, options: Omit<ReadOptions, "range">): Promise<ObjectVersion>;
  protected abstract deleteChecked(key: string, options: DeleteOptions): Promise<Deleted>;
  protected abstract copyChecked(from: CopySource, to: string, options: CopyOptions): Promise<ObjectVersion>;
  protected abstract listChecked(options: ListOptions): Promise<ListPage>;
  protected abstract listVersionsChecked(options: ListVersionsOptions): Promise<VersionPage>;
  /** All versions of a key, newest first. */
  protected abstract listKey(
    key: string,
  ): AsyncIterable<Pick<VersionPage, "versions"> & { readonly damaged?: readonly DamagedVersion[] }>;
  protected abstract tagsChecked(key: string, versionId: string | undefined): Promise<Readonly<Record<string, string>>>;
  protected abstract partsChecked(
    key: string,
    versionId: string | undefined,
  ): Promise<readonly { readonly size: number; readonly checksum?: string }[]>;
  protected abstract change(request: ChangeRequest): Promise<void>;
  protected abstract createUploadChecked(key: string, options: UploadOptions): Promise<Upload>;
  protected abstract findUpload(key: string, id: string): Promise<Upload>;
  protected abstract listUploadsChecked(options: ListUploadsOptions): Promise<UploadList>;
  protected abstract changeConfig(change: Partial<BucketConfig>, document?: DocumentChange): Promise<void>;
  abstract config(): Promise<Readonly<BucketConfig>>;
  abstract knownConfig(): Readonly<BucketConfig> | undefined;

  async put(key: string, body: Body, options: PutOptions = {}): Promise<ObjectVersion> {
    checkKey(key);
    checkPutOptions("put", options);
    return await this.putChecked(key, body, options, options);
  }

  async get(key: string, options: ReadOptions = {}): Promise<StoredObject> {
    checkKey(key);
    checkReadOptions("get", options);
    return await this.getChecked(key, options);
  }

  async head(key: string, options: Omit<ReadOptions, "range"> = {}): Promise<ObjectVersion> {
    checkKey(key);
    checkOptions("head", options, { signal: true, versionId: true });
    return await this.headChecked(key, options);
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<Deleted> {
    checkKey(key);
    checkDeleteOptions("delete", options);
    options.signal?.throwIfAborted();
    return await this.deleteChecked(key, options);
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
          return { key, error: isErrorLike(error) ? error : new Error(String(error)) };
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
    return await this.copyChecked(from, to, options);
  }

  async update(
    key: string,
    change: (current: StoredObject | undefined) => Promise<Body | undefined> | Body | undefined,
    options: Omit<PutOptions, keyof Preconditions> & { retries?: number | undefined } = {},
  ): Promise<ObjectVersion | undefined> {
    const { retries = retriesDefault, ...put } = options;
    checkKey(key);
    checkUpdateOptions("update", options);
    if (typeof change !== "function") throw new TypeError("update takes a function that returns the new body.");
    const { signal } = options;
    for (let attempt = 0; ; attempt++) {
      const current = await this.#findCurrent(key, signal);
      try {
        // Aborts even if `change` never settles.
        const body = await orAborted((async () => await change(current))(), signal);
        if (body === undefined) return undefined;
        const isUnchanged: WriteConditions =
          current === undefined ? { ifNoneMatch: "*" } : { ifEntry: entryIdOf(current) };
        return await this.putChecked(key, body, put, isUnchanged);
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
    return await this.listChecked(options);
  }

  async listVersions(options: ListVersionsOptions = {}): Promise<VersionPage> {
    const names = { prefix: true, delimiter: true, keyMarker: true, versionMarker: true, limit: true } as const;
    checkOptions("listVersions", options, names);
    checkPage("listVersions", options, ["prefix", "delimiter", "keyMarker", "versionMarker"]);
    return await this.listVersionsChecked(options);
  }

  async *objects(options: Pick<ListOptions, "prefix" | "after"> & Cancel = {}): AsyncGenerator<ObjectVersion> {
    checkOptions("objects", options, { prefix: true, after: true, signal: true });
    const { signal, ...rest } = options;
    let error: Error | undefined;
    for (let after = rest.after; ;) {
      signal?.throwIfAborted();
      const page = await this.list({ ...rest, after });
      yield* untilAborted(page.objects, signal);
      error ??= page.damaged?.[0]?.error;
      if (page.next === undefined) break;
      after = page.next;
    }
    // Damage does not withhold the readable objects, but it is not hidden: the iteration ends with
    // its error.
    if (error !== undefined) throw error;
  }

  async *versions(
    options: { key?: string | undefined; prefix?: string | undefined } & Cancel = {},
  ): AsyncGenerator<ObjectVersion> {
    checkOptions("versions", options, { key: true, prefix: true, signal: true });
    const { signal, key, prefix } = options;
    let error: Error | undefined;
    if (key !== undefined) {
      checkKey(key);
      signal?.throwIfAborted();
      for await (const { versions, damaged } of this.listKey(key)) {
        yield* untilAborted(versions, signal);
        error ??= damaged?.[0]?.error;
      }
      if (error !== undefined) throw error;
      return;
    }
    for (let markers: Pick<ListVersionsOptions, "keyMarker" | "versionMarker"> = {}; ;) {
      signal?.throwIfAborted();
      const page = await this.listVersions({ prefix, ...markers });
      yield* untilAborted(page.versions, signal);
      error ??= page.damaged?.[0]?.error;
      if (page.nextKeyMarker === undefined) break;
      markers = { keyMarker: page.nextKeyMarker, versionMarker: page.nextVersionMarker };
    }
    if (error !== undefined) throw error;
  }

  async tags(key: string, options: OfVersion = {}): Promise<Readonly<Record<string, string>>> {
    checkKey(key);
    checkOptions("tags", options, ofVersion);
    return await this.tagsChecked(key, options.versionId);
  }

  async parts(
    key: string,
    options: OfVersion = {},
  ): Promise<readonly { readonly size: number; readonly checksum?: string }[]> {
    checkKey(key);
    checkOptions("parts", options, ofVersion);
    return await this.partsChecked(key, options.versionId);
  }

  async setTags(key: string, tags: Readonly<Record<string, string>>, options: OfVersion = {}): Promise<void> {
    checkKey(key);
    checkTags("setTags", tags);
    checkOptions("setTags", options, ofVersion);
    const { versionId } = options;
    await this.change({ key, versionId, change: { tags: { ...tags } } });
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
    await this.change({
      key,
      versionId,
      change: { retention: stored ?? null },
      needsObjectLock: true,
      check: (version, nowMs) => mustMayRetain(version, stored, nowMs, bypassGovernance),
    });
  }

  async setLegalHold(key: string, on: boolean, options: OfVersion = {}): Promise<void> {
    checkKey(key);
    checkOptions("setLegalHold", options, ofVersion);
    const { versionId } = options;
    if (typeof on !== "boolean") throw new TypeError("setLegalHold: a legal hold is on (true) or off (false).");
    await this.change({
      key,
      versionId,
      change: { legalHold: on },
      needsObjectLock: true,
      check: ({ doubt }) => {
        if (!on && doubt !== undefined) throw doubt.entry.error;
      },
    });
  }

  async setAcl(key: string, acl: string, options: OfVersion = {}): Promise<void> {
    checkKey(key);
    checkAcl("setAcl", acl);
    checkOptions("setAcl", options, ofVersion);
    const { versionId } = options;
    await this.change({ key, versionId, change: { acl } });
  }

  async createUpload(key: string, options: UploadOptions = {}): Promise<Upload> {
    checkKey(key);
    checkUploadOptions("createUpload", options);
    const { checksum, signal } = options;
    if (checksum !== undefined) checkJoinable("createUpload", checksum);
    signal?.throwIfAborted();
    return await this.createUploadChecked(key, options);
  }

  /** Throws NO_SUCH_UPLOAD. */
  async upload(key: string, id: string): Promise<Upload> {
    checkKey(key);
    if (!isId(id)) throw noSuchUpload(id);
    return await this.findUpload(key, id);
  }

  async listUploads(options: ListUploadsOptions = {}): Promise<UploadList> {
    checkOptions("listUploads", options, { prefix: true, keyMarker: true, idMarker: true, limit: true });
    checkPage("listUploads", options, ["prefix", "keyMarker", "idMarker"]);
    return await this.listUploadsChecked(options);
  }

  async versioning(): Promise<Versioning> {
    return (await this.config()).versioning;
  }

  async setVersioning(state: "enabled" | "suspended"): Promise<void> {
    if (state !== "enabled" && state !== "suspended")
      throw new TypeError(`Versioning can be set to "enabled" or "suspended", not to ${String(state)}.`);
    await this.setConfig({ versioning: state });
  }

  async setConfig(change: Partial<BucketConfig>): Promise<void> {
    await this.changeConfig(change);
  }

  async setDocument(
    name: string,
    text: string | undefined,
    more: Omit<Partial<BucketConfig>, "documents"> = {},
  ): Promise<void> {
    if (typeof name !== "string" || (text !== undefined && typeof text !== "string"))
      throw new TypeError("setDocument: a document has a name and a text.");
    await this.changeConfig(more, { name, text });
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

/** Checks the signal before each item, because a caller may abort within a page. */
function* untilAborted(versions: readonly ObjectVersion[], signal: AbortSignal | undefined): Generator<ObjectVersion> {
  for (const version of versions) {
    signal?.throwIfAborted();
    yield version;
  }
}
