// Buckets: making, finding, listing and deleting them.
import { ensureDirectory, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { Fifo } from "../../durable/wait/fifo.ts";
import { retryOutage } from "../../durable/publish/retry-outage.ts";
import { isThere } from "../../durable/store/store-record.ts";
import { outcomeUnknown } from "../../durable/publish/publish.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import { checkBucketName } from "../model/arguments.ts";
import { KeyChains } from "../key/key-chains.ts";
import type { BucketInfo, Versioning } from "../model/object-store.ts";
import { firstOpen } from "../listing/manifest.ts";
import { namesIn } from "../listing/walk-keys.ts";
import { uploadsUnderWay } from "../multipart/object-upload.ts";
import { ConfigChain, defaultSettings } from "./bucket-config.ts";
import { emptyShard } from "./empty-keys.ts";
import { IncarnationLayout } from "./layout.ts";
import { findLost, hasAside } from "./lost-keys.ts";
import { noSuchBucket, OpenBucket, retire } from "./open-bucket.ts";
import type { ObjectsPlace } from "./objects-place.ts";

export interface NewBucket {
  readonly versioning: Versioning;
  readonly objectLock: boolean;
}

export class Buckets {
  readonly #place: ObjectsPlace;
  readonly #chains: KeyChains;
  readonly #configs = new Map<string, Promise<ConfigChain>>();
  /** As this process has seen them last. */
  readonly #known = new Map<string, OpenBucket>();
  readonly #deletions = new Fifo();

  constructor(place: ObjectsPlace) {
    this.#place = place;
    this.#chains = new KeyChains(place);
  }

  get keysInMemory(): number {
    return this.#chains.size;
  }

  /** The bucket as it is now; undefined when there is none. */
  async find(name: string): Promise<OpenBucket | undefined> {
    checkBucketName(name);
    const { layout, disk } = this.#place;
    if (!this.#configs.has(name) && !(await isThere(disk, layout.config(name)))) return undefined;
    const config = await this.#config(name);
    const state = await config.read();
    this.#known.delete(name);
    if (state.incarnation === undefined) return undefined;
    const parts = { place: this.#place, chains: this.#chains, config };
    const bucket = new OpenBucket(name, parts, state, state.incarnation);
    this.#known.set(name, bucket);
    return bucket;
  }

  /** The bucket as this process has seen it last: it may be deleted by now, or have other settings. */
  findKnown(name: string): OpenBucket | undefined {
    return this.#known.get(name);
  }

  /** NO_SUCH_BUCKET. */
  async get(name: string): Promise<OpenBucket> {
    const found = await this.find(name);
    if (found === undefined) throw noSuchBucket(name);
    return found;
  }

  /** As `find`, and its keys are there, too: a process that deleted it may have died before it said so. */
  async findLiving(name: string): Promise<OpenBucket | undefined> {
    const found = await this.find(name);
    if (found === undefined || (await isThere(this.#place.disk, found.layout.keys))) return found;
    await retire(await this.#config(name), found.state.incarnation ?? "");
    return undefined;
  }

  /** BUCKET_EXISTS. */
  async create(name: string, { versioning, objectLock }: NewBucket): Promise<void> {
    checkBucketName(name);
    if ((await this.findLiving(name)) !== undefined) throw bucketExists(name);
    const { disk, layout } = this.#place;
    const lost = await findLost(this, this.#place, name);
    if (lost !== undefined) throw holdfastError("CORRUPT", `${lost.what} ${lost.remedy}`, { path: lost.path });
    await ensureDirectory(disk, layout.bucket(name));
    const config = await this.#config(name);
    const incarnation = this.#place.newId();
    const own = new IncarnationLayout(layout.bucket(name), incarnation);
    // All of it before it is named: a bucket that is there is there whole.
    await disk.mkdir(own.directory);
    for (const path of [own.keys, own.bodies, own.uploads, own.index, own.entries, own.runs]) await disk.mkdir(path);
    // From the start: by its absence a process learns that its manifest is an old one.
    await disk.createFile(`${own.runs}/${firstOpen}`, new Uint8Array(), { sync: true });
    for (const path of [own.runs, own.index, own.directory]) await syncNames(disk, path);
    await syncNames(disk, layout.bucket(name));
    const settings = { ...defaultSettings, versioning, objectLock };
    const createdAtMs = this.#place.nowMs();
    const state = await config.change((before) =>
      before.incarnation === undefined ? { incarnation, createdAtMs, settings } : undefined,
    );
    if (state !== undefined) return;
    await removeTree(disk, own.directory);
    throw bucketExists(name);
  }

  /** Of all buckets that are there, and of some that were. */
  async names(): Promise<string[]> {
    const { disk, layout } = this.#place;
    return (await namesIn(disk, layout.buckets)).filter(isBucketName).sort();
  }

  async list(): Promise<BucketInfo[]> {
    const found: BucketInfo[] = [];
    for (const name of await this.names()) {
      const bucket = await this.findLiving(name);
      if (bucket === undefined) continue;
      const { createdAtMs, settings } = bucket.state;
      found.push({ name, createdAt: new Date(createdAtMs), versioning: settings.versioning });
    }
    return found;
  }

  /**
   * The removal of the directory of its keys decides: a put that came before is found there, and one
   * that comes later finds nothing to put into. Uploads go with the bucket: to complete one is such a
   * put. NO_SUCH_BUCKET, BUCKET_NOT_EMPTY.
   */
  async delete(name: string, abortUploads = false): Promise<void> {
    // One of the callers of this process deletes it, and is told so; the next ones find none.
    await this.#deletions.take();
    try {
      await this.#delete(name, abortUploads);
    } finally {
      this.#deletions.give();
    }
  }

  async #delete(name: string, abortUploads: boolean): Promise<void> {
    const bucket = await this.findLiving(name);
    if (bucket === undefined) throw noSuchBucket(name);
    const { disk } = this.#place;
    const { keys, directory } = bucket.layout;
    if (!abortUploads && (await uploadsUnderWay(bucket)).length > 0) throw notEmpty(name);
    const shards = await namesIn(disk, keys);
    for (const shard of shards) if (!(await emptyShard(bucket, `${keys}/${shard}`))) throw notEmpty(name);
    // After the keys: one that was not among them because a repair has moved it is here by now.
    if (await hasAside(bucket)) throw asideNotEmpty(name, bucket.layout.aside);
    try {
      for (const shard of shards) await this.#removeEmpty(`${keys}/${shard}`);
      await retryOutage(disk, directory, () => disk.rmdir(keys));
    } catch (error) {
      if (hasErrno(error, "ENOTEMPTY", "EEXIST")) throw notEmpty(name, error);
      // Another process has deleted it. On a share it may be a request of this one whose answer was lost.
      if (hasErrno(error, "ENOENT") && disk.volume.kind === "local") throw noSuchBucket(name, error);
      const isGone = hasErrno(error, "ENOENT") || (isOutcomeUnknown(error) && !(await this.#hasKeys(keys)));
      if (!isGone) throw error;
    }
    await this.#settleDeletion(directory);
    try {
      await retire(await this.#config(name), bucket.state.incarnation ?? "");
      await removeTree(disk, directory);
    } catch (error) {
      // It is deleted: a process that meets what is left says so in the configuration.
      if (!isHoldfastError(error)) throw error;
    }
  }

  /** Asked after a removal without an answer. OUTCOME_UNKNOWN when this has none either. */
  async #hasKeys(keys: string): Promise<boolean> {
    try {
      return await isThere(this.#place.disk, keys);
    } catch (error) {
      throw outcomeUnknown(keys, error);
    }
  }

  /** The keys are gone, and with them the bucket: a failure from here on does not say that it is there. */
  async #settleDeletion(directory: string): Promise<void> {
    try {
      await syncNames(this.#place.disk, directory);
    } catch (error) {
      // Another process that has deleted it, too, was faster.
      if (!hasErrno(error, "ENOENT")) throw outcomeUnknown(directory, error);
    }
  }

  async #removeEmpty(shard: string): Promise<void> {
    try {
      await this.#place.disk.rmdir(shard);
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
    }
  }

  async #config(name: string): Promise<ConfigChain> {
    let opening = this.#configs.get(name);
    if (opening === undefined) {
      opening = ConfigChain.open(this.#place, this.#place.layout.config(name));
      this.#configs.set(name, opening);
      opening.catch(() => this.#configs.delete(name));
    }
    return await opening;
  }
}

function isBucketName(name: string): boolean {
  try {
    checkBucketName(name);
    return true;
  } catch {
    // A foreign file is left alone.
    return false;
  }
}

function bucketExists(bucket: string): Error {
  const message = `The bucket ${bucket} is there already. Open it with bucket(), or choose another name.`;
  return holdfastError("BUCKET_EXISTS", message, { bucket });
}

function asideNotEmpty(bucket: string, path: string): Error {
  const message = `The bucket ${bucket} was not deleted: ${path} has keys that could not be read and were moved there. Restore them, or move that directory out of the store.`;
  return holdfastError("BUCKET_NOT_EMPTY", message, { bucket });
}

function notEmpty(bucket: string, cause?: unknown): Error {
  const message = `The bucket ${bucket} was not deleted: it still has objects, versions, delete markers or uploads. Delete those first.`;
  return holdfastError("BUCKET_NOT_EMPTY", message, { bucket }, cause);
}
