// Collector applies lifecycle rules and removes leftovers of dead processes, keys without versions,
// and bodies that no version names. It never removes anything that a living process needs.
import type { Cancel } from "../../common.ts";
import { ensureDirectory, listIfThere, removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { holdfastError, isHoldfastError, type HoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Buckets } from "../bucket/buckets.ts";
import { closeIfEmpty } from "../bucket/empty-keys.ts";
import type { ObjectsStorage } from "../bucket/objects-storage.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { hasAside } from "../bucket/lost-keys.ts";
import { findDyingEntries } from "../key/dying-key.ts";
import { findSlotOrDamage } from "../key/entry-file.ts";
import type { OpenKey } from "../key/key-chains.ts";
import { readKey, type ReadKey } from "../key/read-key.ts";
import { KeyIndex } from "../listing/key-index.ts";
import { mergeKeys, type OpenedIndex } from "../listing/listed-keys.ts";
import { keyDirectories } from "../listing/walk-keys.ts";
import type { PutEntry } from "../model/entry.ts";
import type { Collected } from "../model/object-store.ts";
import { collectVersions } from "./collect-versions.ts";
import { collectUploads } from "./collect-uploads.ts";
import { forgetBlocks } from "../version/forget-blocks.ts";
import { discardBody } from "../version/stage-body.ts";

/**
 * A key without versions is kept this long: another put may follow. Removing it earlier would lose
 * no data, but such a put could get OUTCOME_UNKNOWN.
 */
const restMs = 60_000;

/** Errors that skip one key, bucket or file without stopping the collection. */
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
/** How many paths an error message lists. */
const namedMax = 10;

/**
 * Collects. The caller holds a lease so that only one process does the work; it would be safe
 * without the lease.
 */
export class Collector {
  readonly #storage: ObjectsStorage;
  readonly #buckets: Buckets;
  readonly #indexOf: (bucket: OpenBucket) => OpenedIndex;
  readonly #failures: HoldfastError[] = [];
  #objects = 0;
  #bytes = 0;

  constructor(
    storage: ObjectsStorage,
    buckets: Buckets,
    indexOf: (bucket: OpenBucket) => OpenedIndex = (bucket) => ({
      open: () => KeyIndex.open(bucket),
      openAgain: () => KeyIndex.open(bucket),
    }),
  ) {
    this.#storage = storage;
    this.#buckets = buckets;
    this.#indexOf = indexOf;
  }

  /** Collects everything that can be collected, then throws the first error that it skipped. */
  async collect({ signal }: Cancel = {}): Promise<Collected> {
    await this.#attempt(() => this.#storage.reserve.use(() => this.#collectStaging()));
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
    // Dead holders are settled before the keys are read: afterwards, they cannot name any more
    // bodies.
    const settled = await this.#settledIn(bucket);
    const named = new Set<string>();
    let isComplete = true;
    for await (const directory of keyDirectories(bucket)) {
      signal?.throwIfAborted();
      const collectKey = (key: OpenKey): Promise<boolean> => this.#collectKey(bucket, key, named);
      const isRead = await this.#attempt(() => bucket.useDirectory(directory, collectKey));
      if (isRead !== true) isComplete = false;
    }
    // Unreadable keys name bodies too, also those that a repair moved aside. `aside` is checked
    // after the keys: a key that a repair moved away during the walk is in it by now.
    const isNamed = isComplete && !(await hasAside(bucket));
    if (isNamed) for (const holder of settled) await this.#attempt(() => this.#collectBodies(bucket, holder, named));
    const attempt = (work: () => Promise<number>): Promise<number | undefined> => this.#attempt(work);
    const upkeep = { named: isNamed ? named : undefined, attempt };
    await this.#attempt(async () => (this.#objects += await collectUploads(bucket, upkeep)));
    await this.#attempt(() => this.#mergeIndex(bucket));
  }

  /**
   * An error is ignored: on a full disk the index stays as it is, which is correct. The next
   * collection or put merges it.
   */
  async #mergeIndex(bucket: OpenBucket): Promise<void> {
    try {
      await mergeKeys(bucket, this.#indexOf(bucket), 1);
    } catch (error) {
      if (!isHoldfastError(error, "DISK_FULL")) throw error;
    }
  }

  /** Runs `work`. Returns undefined if it failed with an error that must not stop the collection. */
  async #attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      // The bucket was deleted meanwhile.
      if (isHoldfastError(error, "NO_SUCH_BUCKET")) return undefined;
      if (!isHoldfastError(error, ...passedOver)) throw error;
      this.#failures.push(error);
      return undefined;
    }
  }

  /**
   * Removes directories that dead holders prepared. Each is renamed before it is emptied: a holder
   * that only slept then cannot move its directory into place after it was emptied.
   */
  async #collectStaging(): Promise<void> {
    const { disk, layout, ground } = this.#storage;
    for (const holder of await listIfThere(disk, layout.stagings))
      if (await ground.settle(holder)) await this.#takeStaged(holder);
    for (const name of await listIfThere(disk, layout.trash)) await removeTree(disk, `${layout.trash}/${name}`);
  }

  async #takeStaged(holder: string): Promise<void> {
    const { disk, layout } = this.#storage;
    const directory = layout.staging(holder);
    const names = await listIfThere(disk, directory);
    if (names.length > 0) await ensureDirectory(disk, layout.trash);
    this.#objects += await takePrepared(disk, directory, names, () => `${layout.trash}/${this.#storage.newId()}`);
    await this.#removeIfEmpty(directory);
  }

  async #settledIn({ layout }: OpenBucket): Promise<string[]> {
    const settled: string[] = [];
    for (const holder of await listIfThere(this.#storage.disk, layout.bodies))
      await this.#attempt(async () => {
        if (!(await this.#storage.ground.settle(holder))) return;
        // The holder may have prepared a key whose body is here. From now on it cannot move that
        // key into place.
        await this.#takeStaged(holder);
        settled.push(holder);
      });
    return settled;
  }

  /**
   * Removes a key without versions, and the bodies of removed versions. Adds the files of living
   * versions to `named`. Returns true if it could add all of them, even if a later step failed.
   */
  async #collectKey(bucket: OpenBucket, key: OpenKey, named: Set<string>): Promise<boolean> {
    const read = await readKey(key);
    if (read === undefined) return await this.#collectDying(bucket, key);
    const { head, versions, damaged } = read;
    const living = new Set(versions.map(({ slot }) => slot));
    for (let number = 1; number <= head.number; number++) {
      const slot = await findSlotOrDamage(this.#storage.disk, key.chain.names.slotPath(head.incarnation, number));
      if (slot?.entry.kind !== "put") continue;
      if (living.has(number)) for (const file of filesOf(slot.entry)) named.add(file);
      else await this.#removeBody(bucket, slot.entry);
    }
    for (const { entry } of damaged) await this.#attempt(() => Promise.reject(entry.error));
    await this.#attempt(() => this.#storage.reserve.use(() => this.#shorten(bucket, key, read)));
    // An unreadable version may name bodies that are then unknown.
    return damaged.length === 0;
  }

  /** Applies lifecycle rules, drops blocks without versions, and closes a key without versions. */
  async #shorten(bucket: OpenBucket, key: OpenKey, before: ReadKey): Promise<void> {
    if (before.head.entry.kind === "damaged") return;
    const { objects, bytes } = await collectVersions(bucket, before.head.entry.key, key);
    this.#objects += objects;
    this.#bytes += bytes;
    this.#objects += await forgetBlocks(bucket, key, { restMs });
    const now = objects === 0 ? before : await readKey(key);
    if (now === undefined || now.versions.length + now.damaged.length > 0 || now.head.entry.kind === "damaged") return;
    if (this.#storage.nowMs() - now.head.entry.atMs < restMs) return;
    if (await closeIfEmpty(bucket, key)) this.#objects++;
  }

  /**
   * Removes a key that another process closed but did not remove. Returns false if the key was not
   * closed: then its first slot was lost, and the bodies that it names must stay.
   */
  async #collectDying(bucket: OpenBucket, key: OpenKey): Promise<boolean> {
    const entries = (await findDyingEntries(this.#storage.disk, key.chain.names)) ?? [];
    if (entries.length > 0 && entries.every(({ kind }) => kind !== "closed")) return false;
    await closeIfEmpty(bucket, key);
    return true;
  }

  async #removeBody(bucket: OpenBucket, { parts = [], partsIn }: PutEntry): Promise<void> {
    for (const { file } of parts) await this.#unlink(bucket.bodyPath(file));
    if (partsIn !== undefined) await discardBody(bucket, { partsIn });
  }

  /** Removes bodies that a dead holder wrote and no version names. */
  async #collectBodies(bucket: OpenBucket, holder: string, named: ReadonlySet<string>): Promise<void> {
    const directory = bucket.layout.bodiesOf(holder);
    for (const name of await listIfThere(this.#storage.disk, directory))
      if (!named.has(`bodies/${holder}/${name}`)) await this.#unlink(`${directory}/${name}`);
    await this.#removeIfEmpty(directory);
  }

  async #unlink(path: string): Promise<void> {
    const stat = await this.#storage.disk.findStat(path);
    if (stat === undefined) return;
    try {
      await unlinkIfThere(this.#storage.disk, path);
      this.#objects++;
      this.#bytes += stat.size;
    } catch (error) {
      // The file is open on another machine. The next collection removes it.
      if (!hasErrno(error, "EBUSY", "EACCES", "EPERM", "ESTALE")) throw error;
    }
  }

  async #removeIfEmpty(directory: string): Promise<void> {
    try {
      await this.#storage.disk.rmdir(directory);
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY", "EACCES", "EPERM")) throw error;
    }
  }
}

function filesOf({ parts = [], partsIn }: PutEntry): string[] {
  return [...parts.map(({ file }) => file), ...(partsIn === undefined ? [] : [partsIn])];
}

/**
 * Returns the error to throw: the first damage, or else the first other error. Its message lists
 * the other damaged paths.
 */
function failureOf(failures: readonly HoldfastError[]): Error {
  const damages = failures.filter((error) => isHoldfastError(error, "CORRUPT"));
  const [first, ...others] = damages;
  if (first === undefined || others.length === 0) return first ?? failures[0] ?? new Error("Nothing has failed.");
  const named = others.slice(0, namedMax).map(({ path }) => path);
  const rest = others.length > namedMax ? ` and ${others.length - namedMax} more` : "";
  const message = `${first.message} The same applies to ${named.join(", ")}${rest}. Everything else was collected.`;
  return holdfastError("CORRUPT", message, { path: first.path }, first);
}

/**
 * Renames each of these entries of `directory`, so that no other process uses them. Returns how
 * many this process renamed.
 */
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
