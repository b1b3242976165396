// Collection: applies lifecycle rules, and removes what dead processes have left, keys without
// versions, and bodies that no version names. Nothing that a living process still needs.
import type { Cancel } from "../../common.ts";
import { ensureDirectory, removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { holdfastError, isHoldfastError, type HoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Buckets } from "../bucket/buckets.ts";
import { closeIfEmpty } from "../bucket/empty-keys.ts";
import type { ObjectsPlace } from "../bucket/objects-place.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { hasAside } from "../bucket/lost-keys.ts";
import { findDyingEntries } from "../key/dying-key.ts";
import { findSlot } from "../key/entry-file.ts";
import type { OpenKey } from "../key/key-chains.ts";
import { readKey, type ReadKey } from "../key/read-key.ts";
import { KeyIndex } from "../listing/key-index.ts";
import { keyDirectories, namesIn } from "../listing/walk-keys.ts";
import type { PutEntry } from "../model/entry.ts";
import { ageKey } from "./age-key.ts";
import { collectUploads } from "./collect-uploads.ts";
import { forgetBlocks } from "../version/forget-blocks.ts";
import { discardBody } from "../version/stage-body.ts";

/**
 * A key without versions is left alone for so long, because the next put may be on its way. Only to
 * spare that put an answer that it does not know: nothing is lost either way.
 */
const restMs = 60_000;

/** What keeps a collection from one key, bucket or file, and from no other. */
const passedOver = [
  "CORRUPT",
  "NEWER_FORMAT",
  "IO_ERROR",
  "INVALID_PATH",
  "NO_PERMISSION",
  "RESOURCE_BUSY",
  "DISK_FULL",
  "OUTCOME_UNKNOWN",
] as const;
/** So many places are named by an error. */
const namedMax = 10;

export interface Collected {
  readonly objects: number;
  readonly bytes: number;
}

/** To be called under a lease, so that not every process does it. Safe without. */
export class Collector {
  readonly #place: ObjectsPlace;
  readonly #buckets: Buckets;
  readonly #openIndex: (bucket: OpenBucket) => Promise<KeyIndex>;
  readonly #failures: HoldfastError[] = [];
  #objects = 0;
  #bytes = 0;

  constructor(
    place: ObjectsPlace,
    buckets: Buckets,
    openIndex: (bucket: OpenBucket) => Promise<KeyIndex> = (bucket) => KeyIndex.open(bucket),
  ) {
    this.#place = place;
    this.#buckets = buckets;
    this.#openIndex = openIndex;
  }

  /**
   * What cannot be collected keeps nothing else from it: the first error of that kind is thrown at the
   * end.
   */
  async collect({ signal }: Cancel = {}): Promise<Collected> {
    await this.#attempt(() => this.#collectStaging());
    for (const name of await this.#buckets.names()) {
      signal?.throwIfAborted();
      await this.#attempt(() => this.#collectBucket(name, signal));
    }
    if (this.#failures.length > 0) throw failureOf(this.#failures);
    return { objects: this.#objects, bytes: this.#bytes };
  }

  async #collectBucket(name: string, signal: AbortSignal | undefined): Promise<void> {
    const bucket = await this.#buckets.findLiving(name);
    if (bucket === undefined) return;
    // Before the keys are read: what a dead holder has named by then, it has named for good.
    const settled = await this.#settledIn(bucket);
    const named = new Set<string>();
    let isComplete = true;
    for await (const directory of keyDirectories(bucket)) {
      signal?.throwIfAborted();
      const collectKey = (key: OpenKey): Promise<boolean> => this.#collectKey(bucket, key, named);
      const isRead = await this.#attempt(() => bucket.useDirectory(directory, collectKey));
      if (isRead !== true) isComplete = false;
    }
    // A key that could not be read names bodies as well. So does one that a repair has moved aside; asked
    // after the keys: one that was not among them for that reason is there by now.
    if (isComplete && !(await hasAside(bucket)))
      for (const holder of settled) await this.#attempt(() => this.#collectBodies(bucket, holder, named));
    await this.#attempt(async () => (this.#objects += (await collectUploads(bucket)).objects));
    await this.#attempt(async () => await (await this.#openIndex(bucket)).merge(1));
  }

  /** Undefined when it failed. */
  async #attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      // Deleted meanwhile.
      if (isHoldfastError(error, "NO_SUCH_BUCKET")) return undefined;
      if (!isHoldfastError(error, ...passedOver)) throw error;
      this.#failures.push(error);
      return undefined;
    }
  }

  /**
   * Directories that dead holders have prepared. Each is taken by a rename before it is emptied: a
   * process that was only asleep then finds nothing to put in place, and never puts an empty one.
   */
  async #collectStaging(): Promise<void> {
    const { disk, layout, ground } = this.#place;
    for (const holder of await namesIn(disk, layout.stagings))
      if (await ground.settle(holder)) await this.#takeStaged(holder);
    for (const name of await namesIn(disk, layout.trash)) await removeTree(disk, `${layout.trash}/${name}`);
  }

  async #takeStaged(holder: string): Promise<void> {
    const { disk, layout } = this.#place;
    const directory = layout.staging(holder);
    const names = await namesIn(disk, directory);
    if (names.length > 0) await ensureDirectory(disk, layout.trash);
    this.#objects += await takePrepared(disk, directory, names, () => `${layout.trash}/${this.#place.newId()}`);
    await this.#removeIfEmpty(directory);
  }

  async #settledIn({ layout }: OpenBucket): Promise<string[]> {
    const settled: string[] = [];
    for (const holder of await namesIn(this.#place.disk, layout.bodies))
      await this.#attempt(async () => {
        if (!(await this.#place.ground.settle(holder))) return;
        // It may have prepared a key whose body is here: from now on it cannot put it in place.
        await this.#takeStaged(holder);
        settled.push(holder);
      });
    return settled;
  }

  /**
   * Removes a key without versions, and the bodies of versions that are gone. Notes what living ones
   * name; true when all of that was noted, whatever failed afterwards.
   */
  async #collectKey(bucket: OpenBucket, key: OpenKey, named: Set<string>): Promise<boolean> {
    const read = await readKey(key);
    if (read === undefined) return await this.#collectDying(bucket, key);
    const { head, versions } = read;
    const living = new Set(versions.map(({ slot }) => slot));
    for (let number = 1; number <= head.number; number++) {
      const slot = await findSlot(this.#place.disk, key.chain.names.slotPath(head.incarnation, number));
      if (slot?.entry.kind !== "put") continue;
      if (living.has(number)) for (const { file } of slot.entry.parts ?? []) named.add(file);
      else await this.#removeBody(bucket, slot.entry);
    }
    // From here on room is needed on the disk.
    await this.#attempt(() => this.#shorten(bucket, key, read));
    return true;
  }

  /** Applies the rules of the bucket, drops blocks without versions, and closes a key that has none. */
  async #shorten(bucket: OpenBucket, key: OpenKey, before: ReadKey): Promise<void> {
    const { objects, bytes } = await ageKey(bucket, before.head.entry.key, key);
    this.#objects += objects;
    this.#bytes += bytes;
    this.#objects += await forgetBlocks(bucket, key, { restMs });
    const now = objects === 0 ? before : await readKey(key);
    if (now === undefined || now.versions.length > 0) return;
    if (this.#place.nowMs() - now.head.entry.atMs < restMs) return;
    if (await closeIfEmpty(bucket, key)) this.#objects++;
  }

  /**
   * What another process has closed and not removed goes. False when it was not closed: then its first
   * slot was lost, and the bodies that it names must stay.
   */
  async #collectDying(bucket: OpenBucket, key: OpenKey): Promise<boolean> {
    const entries = (await findDyingEntries(this.#place.disk, key.chain.names)) ?? [];
    if (entries.length > 0 && entries.every(({ kind }) => kind !== "closed")) return false;
    await closeIfEmpty(bucket, key);
    return true;
  }

  async #removeBody(bucket: OpenBucket, { parts = [], partsIn }: PutEntry): Promise<void> {
    for (const { file } of parts) await this.#unlink(bucket.bodyPath(file));
    if (partsIn !== undefined) await discardBody(bucket, { partsIn });
  }

  /** What a dead holder has written and no version names. */
  async #collectBodies(bucket: OpenBucket, holder: string, named: ReadonlySet<string>): Promise<void> {
    const directory = bucket.layout.bodiesOf(holder);
    for (const name of await namesIn(this.#place.disk, directory))
      if (!named.has(`bodies/${holder}/${name}`)) await this.#unlink(`${directory}/${name}`);
    await this.#removeIfEmpty(directory);
  }

  async #unlink(path: string): Promise<void> {
    const stat = await this.#place.disk.findStat(path);
    if (stat === undefined) return;
    try {
      await unlinkIfThere(this.#place.disk, path);
      this.#objects++;
      this.#bytes += stat.size;
    } catch (error) {
      // Open on another machine: the next collection removes it.
      if (!hasErrno(error, "EBUSY", "EACCES", "EPERM", "ESTALE")) throw error;
    }
  }

  async #removeIfEmpty(directory: string): Promise<void> {
    try {
      await this.#place.disk.rmdir(directory);
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY", "EACCES", "EPERM")) throw error;
    }
  }
}

/** The first failure; damage before others, with what else is damaged. */
function failureOf(failures: readonly HoldfastError[]): Error {
  const damages = failures.filter((error) => isHoldfastError(error, "CORRUPT"));
  const [first, ...others] = damages;
  if (first === undefined || others.length === 0) return first ?? failures[0] ?? new Error("Nothing has failed.");
  const named = others.slice(0, namedMax).map(({ path }) => path);
  const rest = others.length > namedMax ? ` and ${others.length - namedMax} more` : "";
  const message = `${first.message} The same holds of ${named.join(", ")}${rest}. All else was collected.`;
  return holdfastError("CORRUPT", message, { path: first.path }, first);
}

/** Takes each of these entries of `directory` under a new name; returns how many. */
export async function takePrepared(
  disk: Disk,
  directory: string,
  names: readonly string[],
  newPath: () => string,
): Promise<number> {
  let count = 0;
  for (const name of names) if (await moveOnce(disk, `${directory}/${name}`, newPath())) count++;
  return count;
}
