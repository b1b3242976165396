// A bucket as one operation sees it: its living incarnation, and what holds in it at that moment.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { isThere } from "../../durable/store/store-record.ts";
import type { KeyChains, OpenKey } from "../key/key-chains.ts";
import type { BucketConfig } from "../model/object-store.ts";
import type { ConfigChain, ConfigState } from "./bucket-config.ts";
import { IncarnationLayout } from "./layout.ts";
import type { ObjectsPlace } from "./objects-place.ts";

export interface BucketParts {
  readonly place: ObjectsPlace;
  readonly chains: KeyChains;
  readonly config: ConfigChain;
}

export class OpenBucket {
  readonly name: string;
  readonly place: ObjectsPlace;
  readonly layout: IncarnationLayout;
  readonly #parts: BucketParts;
  readonly #incarnation: string;
  #state: ConfigState;

  constructor(name: string, parts: BucketParts, state: ConfigState, incarnation: string) {
    this.name = name;
    this.place = parts.place;
    this.layout = new IncarnationLayout(parts.place.layout.bucket(name), incarnation);
    this.#parts = parts;
    this.#incarnation = incarnation;
    this.#state = state;
  }

  get state(): ConfigState {
    return this.#state;
  }

  get settings(): BucketConfig {
    return this.#state.settings;
  }

  /** TypeError when nothing in it can be retained or held: a put could take the place of what is. */
  mustLock(): void {
    if (this.settings.objectLock) return;
    throw new TypeError(
      `The bucket ${this.name} was made without objectLock, so nothing in it can be retained or held.`,
    );
  }

  /** The configuration as it is now. NO_SUCH_BUCKET when this incarnation is over. */
  async readAgain(): Promise<void> {
    const state = await this.#parts.config.read();
    if (state.incarnation !== this.#incarnation) throw noSuchBucket(this.name);
    this.#state = state;
  }

  /** Nothing is changed when `change` gives undefined. */
  async changeConfig(change: Parameters<ConfigChain["change"]>[0]): Promise<void> {
    await this.#parts.config.change(change);
  }

  /** CORRUPT says which object it is about. */
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

  /** The same, of the key in this directory. */
  async useDirectory<T>(directory: string, work: (key: OpenKey) => Promise<T>): Promise<T> {
    try {
      return await this.#parts.chains.use(directory, work);
    } catch (error) {
      if (hasErrno(error, "ENOENT")) await this.mustBeThere(error);
      throw error;
    }
  }

  /**
   * A name for a file that has the body of a version. The record that names it must be staged in
   * `temp`: then it can be linked only for as long as the holder of the body is not swept.
   */
  async newBodyFile(): Promise<{ readonly file: string; readonly temp: string }> {
    const { holder, temp } = await this.place.ground.session();
    try {
      await this.place.makeOwn(this.layout.bodiesOf(holder.id));
    } catch (error) {
      if (hasErrno(error, "ENOENT")) await this.mustBeThere(error);
      throw error;
    }
    return { file: `bodies/${holder.id}/${this.place.newId()}`, temp };
  }

  bodyPath(file: string): string {
    return `${this.layout.directory}/${file}`;
  }

  /**
   * NO_SUCH_BUCKET when its keys are gone: the removal of that directory is what deletes a bucket.
   * The configuration may still name it, if the process that removed it died.
   */
  async mustBeThere(cause?: unknown): Promise<void> {
    if (await isThere(this.place.disk, this.layout.keys)) return;
    await retire(this.#parts.config, this.#incarnation);
    throw noSuchBucket(this.name, cause);
  }
}

/** Says in the configuration that an incarnation is over. */
export async function retire(config: ConfigChain, incarnation: string): Promise<void> {
  await config.change((state) => {
    if (state.incarnation !== incarnation) return undefined;
    const { incarnation: _gone, ...rest } = state;
    return rest;
  });
}

export function noSuchBucket(bucket: string, cause?: unknown): Error {
  const message = `There is no bucket ${bucket}. Make it with createBucket, or correct the name.`;
  return holdfastError("NO_SUCH_BUCKET", message, { bucket }, cause);
}
