// OpenBucket is a bucket as one operation sees it: its living incarnation, and the settings at that
// moment.
import { isThere } from "../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { AddedHead, AppendOptions, DecideEntry } from "../key/key-chain.ts";
import { mustBeOf, type KeyChains, type OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import type { BucketConfig } from "../model/object.ts";
import type { ConfigChain, ConfigState } from "./bucket-config.ts";
import { IncarnationLayout } from "./layout.ts";
import type { ObjectsStorage } from "./objects-storage.ts";

export interface BucketAccess {
  readonly storage: ObjectsStorage;
  readonly chains: KeyChains;
  readonly config: ConfigChain;
}

export class OpenBucket {
  readonly name: string;
  readonly storage: ObjectsStorage;
  readonly layout: IncarnationLayout;
  readonly #access: BucketAccess;
  readonly #incarnation: string;
  #state: ConfigState;

  constructor(name: string, access: BucketAccess, state: ConfigState, incarnation: string) {
    this.name = name;
    this.storage = access.storage;
    this.layout = new IncarnationLayout(access.storage.layout.bucket(name), incarnation);
    this.#access = access;
    this.#incarnation = incarnation;
    this.#state = state;
  }

  get state(): ConfigState {
    return this.#state;
  }

  get settings(): BucketConfig {
    return this.#state.settings;
  }

  /** Throws a TypeError if the bucket has no object lock. */
  mustLock(): void {
    mustLock(this.name, this.settings);
  }

  /** Reads the current configuration. Throws NO_SUCH_BUCKET if this incarnation was deleted. */
  async readAgain(): Promise<void> {
    const state = await this.#access.config.read();
    if (state.incarnation !== this.#incarnation) throw noSuchBucket(this.name);
    this.#state = state;
  }

  /** Changes the configuration; changes nothing if `change` returns undefined. */
  async changeConfig(change: Parameters<ConfigChain["change"]>[0]): Promise<void> {
    await this.#access.config.change(change);
  }

  /** Runs `work` on the chain of a key. A CORRUPT error names the object. */
  async useKey<T>(key: string, work: (key: OpenKey) => Promise<T>): Promise<T> {
    try {
      return await this.useDirectory(this.layout.key(key), work);
    } catch (error) {
      throw isHoldfastError(error, "CORRUPT") ? this.corrupt(key, error.path, error.message, error) : error;
    }
  }

  corrupt(key: string, path: string, what: string, cause?: unknown): Error {
    const message = `The object ${JSON.stringify(key)} of the bucket ${this.name} cannot be used: ${what}`;
    return holdfastError("CORRUPT", message, { path }, cause);
  }

  /** As `useKey`, for the key in this directory. */
  async useDirectory<T>(directory: string, work: (key: OpenKey) => Promise<T>): Promise<T> {
    try {
      return await this.#access.chains.use(directory, work);
    } catch (error) {
      if (hasErrno(error, "ENOENT")) await this.mustBeThere(error);
      throw error;
    }
  }

  /**
   * Appends an entry to a key, as `KeyChain.append`. `decide` gets settings that are at least as
   * new as those under which the newest entry was written. So the settings along a chain never go
   * back: otherwise a writer that slept could destroy the null version, which must be kept once
   * versioning is enabled.
   */
  async append(
    key: string,
    open: OpenKey,
    decide: DecideEntry,
    options?: AppendOptions,
  ): Promise<AddedHead | undefined> {
    return await open.chain.append(async (newest) => {
      if (newest !== undefined) mustBeOf(key, newest, open);
      if (configOf(newest) > this.#state.number) await this.readAgain();
      return await decide(newest);
    }, options);
  }

  /**
   * Returns a new file name for the body of a version. The record that names the file must be
   * staged in `temp`: then it can be linked only as long as the body's holder is not swept.
   */
  async newBodyFile(): Promise<{ readonly file: string; readonly temp: string }> {
    const { holder, temp } = await this.storage.ground.session();
    try {
      await this.storage.makeOwn(this.layout.bodiesOf(holder.id));
    } catch (error) {
      if (hasErrno(error, "ENOENT")) await this.mustBeThere(error);
      throw error;
    }
    return { file: `bodies/${holder.id}/${this.storage.newId()}`, temp };
  }

  bodyPath(file: string): string {
    return `${this.layout.directory}/${file}`;
  }

  /**
   * Throws NO_SUCH_BUCKET if the directory of keys is gone: removing it deletes the bucket. The
   * configuration may still name the bucket, because the process that removed the directory may
   * have died before it updated the configuration.
   */
  async mustBeThere(cause?: unknown): Promise<void> {
    if (await isThere(this.storage.disk, this.layout.keys)) return;
    await retire(this.#access.config, this.#incarnation);
    throw noSuchBucket(this.name, cause);
  }
}

/** The configuration of a damaged entry is unknown, so the bucket's current one is read. */
function configOf(newest: KeyHead | undefined): number {
  if (newest?.entry.kind !== "damaged") return newest?.entry.config ?? 0;
  // A newer release wrote this entry, and may have other rules for the entries after it.
  if (isHoldfastError(newest.entry.error, "NEWER_FORMAT")) throw newest.entry.error;
  return Infinity;
}

/** Records in the configuration that an incarnation was deleted. */
export async function retire(config: ConfigChain, incarnation: string): Promise<void> {
  await config.change((state) => {
    if (state.incarnation !== incarnation) return undefined;
    const { incarnation: _gone, ...rest } = state;
    return rest;
  });
}

/** Throws a TypeError if the bucket has no object lock: a put could replace a retained version. */
export function mustLock(name: string, { objectLock }: BucketConfig): void {
  if (objectLock) return;
  throw new TypeError(`The bucket ${name} was created without objectLock, so its versions cannot be retained or held.`);
}

export function noSuchBucket(bucket: string, cause?: unknown): Error {
  const message = `There is no bucket ${bucket}. Create it with createBucket, or correct the name.`;
  return holdfastError("NO_SUCH_BUCKET", message, { bucket }, cause);
}
