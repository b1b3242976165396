// Collection: applies lifecycle rules, and removes what dead processes have left, keys without
// versions, and bodies that no version names. Nothing that a living process still needs.
import type { Cancel } from "../../common.ts";
import { ensureDirectory, removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Buckets } from "../bucket/buckets.ts";
import { closeIfEmpty } from "../bucket/empty-keys.ts";
import type { ObjectsPlace } from "../bucket/objects-place.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { findSlot } from "../key/entry-file.ts";
import type { OpenKey } from "../key/key-chains.ts";
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

export interface Collected {
  readonly objects: number;
  readonly bytes: number;
}

/** To be called under a lease, so that not every process does it. Safe without. */
export class Collector {
  readonly #place: ObjectsPlace;
  readonly #buckets: Buckets;
  readonly #openIndex: (bucket: OpenBucket) => Promise<KeyIndex>;
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

  async collect({ signal }: Cancel = {}): Promise<Collected> {
    await this.#collectStaging();
    for (const { name } of await this.#buckets.list()) {
      signal?.throwIfAborted();
      const bucket = await this.#buckets.find(name);
      if (bucket === undefined) continue;
      // Before the keys are read: what a dead holder has named by then, it has named for good.
      const settled = await this.#settledIn(bucket);
      const named = new Set<string>();
      for await (const directory of keyDirectories(bucket)) {
        signal?.throwIfAborted();
        await bucket.useDirectory(directory, (key) => this.#collectKey(bucket, key, named));
      }
      for (const holder of settled) await this.#collectBodies(bucket, holder, named);
      this.#objects += (await collectUploads(bucket)).objects;
      await (await this.#openIndex(bucket)).merge(1);
    }
    return { objects: this.#objects, bytes: this.#bytes };
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
      if (await this.#place.ground.settle(holder)) {
        // It may have prepared a key whose body is here: from now on it cannot put it in place.
        await this.#takeStaged(holder);
        settled.push(holder);
      }
    return settled;
  }

  /** Removes a key without versions, and the bodies of versions that are gone. Notes what living ones name. */
  async #collectKey(bucket: OpenBucket, key: OpenKey, named: Set<string>): Promise<void> {
    const before = bucket.settings.lifecycle.length === 0 ? undefined : await key.chain.findHead();
    if (before !== undefined) {
      const aged = await ageKey(bucket, before.entry.key, key);
      this.#objects += aged.objects;
      this.#bytes += aged.bytes;
    }
    const head = await key.chain.findHead();
    const versions = head && (await key.history.read(head));
    if (head === undefined || versions === undefined) return;
    const living = new Set(versions.map(({ slot }) => slot));
    for (let number = 1; number <= head.number; number++) {
      const slot = await findSlot(this.#place.disk, key.chain.names.slotPath(head.incarnation, number));
      if (slot?.entry.kind !== "put") continue;
      if (living.has(number)) for (const { file } of slot.entry.parts ?? []) named.add(file);
      else await this.#removeBody(bucket, slot.entry);
    }
    this.#objects += await forgetBlocks(bucket, key, { restMs });
    if (versions.length > 0 || this.#place.nowMs() - head.entry.atMs < restMs) return;
    if (await closeIfEmpty(bucket, key)) this.#objects++;
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
