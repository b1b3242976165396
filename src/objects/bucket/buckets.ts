// Buckets creates, finds, lists and deletes buckets.
import { ensureDirectory, isThere, listIfThere, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { Fifo } from "../../durable/wait/fifo.ts";
import { retryOutage } from "../../durable/publish/retry-outage.ts";
import { outcomeUnknown } from "../../durable/publish/publish.ts";
import { holdfastError, isErrorLike, isHoldfastError } from "../../errors.ts";
import { hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import { checkBucketName, checkNewBucketName } from "../model/arguments.ts";
import { isSlotDamage } from "../key/entry-file.ts";
import { KeyChains } from "../key/key-chains.ts";
import type { BucketConfig } from "../model/object.ts";
import type { BucketInfo } from "../model/object-store.ts";
import { firstOpenFile } from "../listing/manifest.ts";
import { uploadsInProgress } from "../multipart/object-upload.ts";
import { ConfigChain, defaultSettings } from "./bucket-config.ts";
import { emptyShard } from "./empty-keys.ts";
import { IncarnationLayout } from "./layout.ts";
import { findLost, hasAside } from "./lost-keys.ts";
import { noSuchBucket, OpenBucket, retire } from "./open-bucket.ts";
import type { ObjectsStorage } from "./objects-storage.ts";

export class Buckets {
  readonly #storage: ObjectsStorage;
  readonly #chains: KeyChains;
  readonly #configs = new Map<string, Promise<ConfigChain>>();
  /** Each bucket's state, as this process last read it. */
  readonly #known = new Map<string, OpenBucket>();
  readonly #deletions = new Fifo();

  constructor(storage: ObjectsStorage) {
    this.#storage = storage;
    this.#chains = new KeyChains(storage);
  }

  get keysInMemory(): number {
    return this.#chains.size;
  }

  /** Reads the bucket's current state. Undefined if there is no such bucket. */
  async find(name: string): Promise<OpenBucket | undefined> {
    checkBucketName(name);
    const { layout, disk } = this.#storage;
    if (!this.#configs.has(name) && !(await isThere(disk, layout.config(name)))) return undefined;
    const config = await this.#config(name);
    const state = await config.read();
    this.#known.delete(name);
    if (state.incarnation === undefined) return undefined;
    const access = { storage: this.#storage, chains: this.#chains, config };
    const bucket = new OpenBucket(name, access, state, state.incarnation);
    this.#known.set(name, bucket);
    return bucket;
  }

  /**
   * Returns the bucket as this process last read it. The bucket may have been deleted or
   * reconfigured since.
   */
  findKnown(name: string): OpenBucket | undefined {
    return this.#known.get(name);
  }

  /** Throws NO_SUCH_BUCKET. */
  async get(name: string): Promise<OpenBucket> {
    const found = await this.find(name);
    if (found === undefined) throw noSuchBucket(name);
    return found;
  }

  /**
   * As `find`, but also checks that the directory of keys exists: a process that deletes a bucket
   * may die before it updates the configuration.
   */
  async findLiving(name: string): Promise<OpenBucket | undefined> {
    const found = await this.find(name);
    if (found === undefined || (await isThere(this.#storage.disk, found.layout.keys))) return found;
    await this.#retire(name, found);
    return undefined;
  }

  /** Throws BUCKET_EXISTS. `createdAtMs` is for a copy. Default: now. */
  async create(name: string, given: Partial<BucketConfig>, createdAtMs: number = this.#storage.nowMs()): Promise<void> {
    checkNewBucketName(name, this.#storage.disk);
    if ((await this.findLiving(name)) !== undefined) throw bucketExists(name);
    const { disk, layout } = this.#storage;
    const lost = await findLost(this, this.#storage, name);
    if (lost !== undefined) throw holdfastError("CORRUPT", `${lost.what} ${lost.remedy}`, { path: lost.path });
    await ensureDirectory(disk, layout.bucket(name));
    const config = await this.#config(name);
    const incarnation = this.#storage.newId();
    const own = new IncarnationLayout(layout.bucket(name), incarnation);
    // All directories are created before the configuration names them: an existing bucket is always
    // complete.
    await disk.mkdir(own.directory);
    for (const path of [own.keys, own.bodies, own.uploads, own.index, own.entries, own.runs]) await disk.mkdir(path);
    // The `open` file is created with the bucket: a process that does not find it knows that its
    // manifest is outdated.
    await disk.createFile(`${own.runs}/${firstOpenFile}`, new Uint8Array(), { sync: true });
    for (const path of [own.runs, own.index, own.directory]) await syncNames(disk, path);
    await syncNames(disk, layout.bucket(name));
    const settings = { ...defaultSettings, ...given };
    const state = await config.change((before) =>
      before.incarnation === undefined ? { incarnation, createdAtMs, settings } : undefined,
    );
    if (state !== undefined) return;
    await removeTree(disk, own.directory);
    throw bucketExists(name);
  }

  /** Returns the names of all buckets, and of some deleted ones. */
  async names(): Promise<string[]> {
    const { disk, layout } = this.#storage;
    return (await listIfThere(disk, layout.buckets)).filter(isBucketName).sort();
  }

  async list(): Promise<BucketInfo[]> {
    const found: BucketInfo[] = [];
    for (const name of await this.names()) {
      const info = await this.#describe(name);
      if (info !== undefined) found.push(info);
    }
    return found;
  }

  /**
   * A bucket whose configuration cannot be read is listed as damaged; the other buckets are listed
   * as usual.
   */
  async #describe(name: string): Promise<BucketInfo | undefined> {
    try {
      const state = (await this.findLiving(name))?.state;
      return state && { name, createdAt: new Date(state.createdAtMs), versioning: state.settings.versioning };
    } catch (error) {
      const isDamaged = isSlotDamage(this.#storage.disk, error) || hasErrno(error, "ENOTDIR");
      if (!isDamaged || !isErrorLike(error)) throw error;
      return { name, createdAt: new Date(0), versioning: "off", damaged: error };
    }
  }

  /**
   * Deletes a bucket. The removal of the directory of keys decides: an earlier put left a key in
   * it, so the removal fails; a later put finds no directory. Uploads are deleted with the bucket,
   * because completing an upload is such a later put. Throws NO_SUCH_BUCKET or BUCKET_NOT_EMPTY.
   */
  async delete(name: string, abortUploads = false): Promise<void> {
    // Callers in this process are serialized: the first one deletes the bucket, the others get
    // NO_SUCH_BUCKET.
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
    const { disk } = this.#storage;
    const { keys, directory } = bucket.layout;
    if (!abortUploads && (await uploadsInProgress(bucket)).length > 0) throw notEmpty(name);
    const shards = await listIfThere(disk, keys);
    for (const shard of shards) if (!(await emptyShard(bucket, `${keys}/${shard}`))) throw notEmpty(name);
    // `aside` is checked after the keys: a key that a repair moved away during the check of the
    // keys is in it by now.
    if (await hasAside(bucket)) throw asideNotEmpty(name, bucket.layout.aside);
    try {
      for (const shard of shards) await this.#removeEmpty(`${keys}/${shard}`);
      await retryOutage(disk, directory, () => disk.rmdir(keys));
    } catch (error) {
      if (hasErrno(error, "ENOTEMPTY", "EEXIST")) throw notEmpty(name, error);
      // On a local disk, another process deleted the bucket. On a share, it may have been our own
      // request whose reply was lost.
      if (hasErrno(error, "ENOENT") && disk.volume.kind === "local") throw noSuchBucket(name, error);
      const isGone = hasErrno(error, "ENOENT") || (isOutcomeUnknown(error) && !(await this.#hasKeys(keys)));
      if (!isGone) throw error;
    }
    await this.#settleDeletion(directory);
    try {
      await this.#retire(name, bucket);
      await removeTree(disk, directory);
    } catch (error) {
      // An error is ignored: the bucket is deleted, and the next process that finds its leftovers
      // updates the configuration.
      if (!isHoldfastError(error)) throw error;
    }
  }

  /** Records in the configuration that this incarnation is deleted. */
  async #retire(name: string, { state }: OpenBucket): Promise<void> {
    await this.#storage.reserve.use(async () => await retire(await this.#config(name), state.incarnation ?? ""));
  }

  /**
   * Checks whether the directory of keys exists, after the reply to its removal was lost. Throws
   * OUTCOME_UNKNOWN if the check fails too.
   */
  async #hasKeys(keys: string): Promise<boolean> {
    try {
      return await isThere(this.#storage.disk, keys);
    } catch (error) {
      throw outcomeUnknown(keys, error);
    }
  }

  /**
   * The keys are removed, so the bucket is deleted. A failure from here on must not suggest that it
   * still exists.
   */
  async #settleDeletion(directory: string): Promise<void> {
    try {
      await syncNames(this.#storage.disk, directory);
    } catch (error) {
      // Another process deleted the bucket first.
      if (!hasErrno(error, "ENOENT")) throw outcomeUnknown(directory, error);
    }
  }

  async #removeEmpty(shard: string): Promise<void> {
    try {
      await this.#storage.disk.rmdir(shard);
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
    }
  }

  async #config(name: string): Promise<ConfigChain> {
    let opening = this.#configs.get(name);
    if (opening === undefined) {
      opening = ConfigChain.open(this.#storage, this.#storage.layout.config(name));
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
    // Ignores foreign files.
    return false;
  }
}

export function bucketExists(bucket: string): Error {
  const message = `The bucket ${bucket} already exists. Open it with bucket(), or choose another name.`;
  return holdfastError("BUCKET_EXISTS", message, { bucket });
}

function asideNotEmpty(bucket: string, path: string): Error {
  const message = `The bucket ${bucket} was not deleted: ${path} has keys that could not be read and were moved there. Restore them, or move that directory out of the store.`;
  return holdfastError("BUCKET_NOT_EMPTY", message, { bucket });
}

export function notEmpty(bucket: string, cause?: unknown): Error {
  const message = `The bucket ${bucket} was not deleted: it still has objects, versions, delete markers or uploads. Delete those first.`;
  return holdfastError("BUCKET_NOT_EMPTY", message, { bucket }, cause);
}
