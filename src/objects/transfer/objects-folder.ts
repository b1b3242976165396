// FolderObjectsEnd: an object store in a folder as a side of a copy. A key arrives as a prepared
// directory with all its slots, by one rename.
import { ensureDirectory, isThere, parentOf } from "../../durable/publish/directory.ts";
import { renameOnce } from "../../durable/publish/publish.ts";
import { newTemp, stage } from "../../durable/publish/staging.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import { holdfastError } from "../../errors.ts";
import { makeId, randomName } from "../../format/id.ts";
import { encodeRecord } from "../../format/record.ts";
import { writeBody } from "../../part/body.ts";
import { readChunks } from "../../part/read-chunks.ts";
import { cannotCopy } from "../../part/transfer/transfer-end.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { Buckets } from "../bucket/buckets.ts";
import { hasAside } from "../bucket/lost-keys.ts";
import type { ObjectsStorage } from "../bucket/objects-storage.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { OpenedObjects } from "../bucket/open-objects.ts";
import { droppedKind } from "../key/dropped-block.ts";
import { KeyNames } from "../key/key-names.ts";
import type { KeyVersion } from "../key/key-versions.ts";
import { readKey } from "../key/read-key.ts";
import { writeAnnouncement } from "../listing/announcements.ts";
import { keyDirectories } from "../listing/walk-keys.ts";
import { encodeEntry, type BodyFile, type KeyEntry } from "../model/entry.ts";
import { uploadsInProgress } from "../multipart/object-upload.ts";
import { endKind } from "../multipart/upload-records.ts";
import { bodyFilesOf, findBodyFiles, hasBodyFiles, type BodyFiles } from "../version/body-files.ts";
import { versionIdOf } from "../version/find-version.ts";
import { openObject } from "../version/read-version.ts";
import {
  bucketItem,
  checkedPiece,
  copiedVersion,
  objectKeyItem,
  type CopiedPiece,
  type CopiedVersion,
  type ObjectItem,
  type ObjectKeyItem,
  type ObjectsEnd,
} from "./object-items.ts";
import { judgedDead } from "../../part/transfer/transfer.ts";

/** How many keys are written at once, so that they share syncs. */
const writesAtOnce = 8;

interface PlacedVersion extends CopiedVersion {
  /** The slot in this folder. */
  readonly at: number;
}

export class FolderObjectsEnd implements ObjectsEnd {
  readonly shown: string;
  readonly #storage: ObjectsStorage;
  readonly #ownsGround: boolean;
  readonly #buckets: Buckets;

  constructor({ storage, ownsGround }: OpenedObjects) {
    this.shown = storage.layout.directory;
    this.#storage = storage;
    this.#ownsGround = ownsGround;
    this.#buckets = new Buckets(storage);
  }

  /** Nothing that a dead process left counts. */
  async settle(): Promise<void> {
    for (const bucket of await this.#living()) {
      const [upload] = await uploadsInProgress(bucket);
      if (upload !== undefined)
        throw cannotCopy(`the upload ${upload.id} of ${JSON.stringify(upload.key)} in the bucket ${bucket.name}`, this.shown, "it is in progress. Complete or abort it first."); // prettier-ignore
      if (await hasAside(bucket))
        throw cannotCopy(`the bucket ${bucket.name}`, this.shown, `${bucket.layout.aside} has what a repair moved there. Restore it, or move that directory out of the store.`); // prettier-ignore
    }
  }

  async total(): Promise<number> {
    let total = 0;
    for (const bucket of await this.#living()) for await (const _ of keyDirectories(bucket)) total++;
    return total;
  }

  async *items(): AsyncGenerator<ObjectItem> {
    for (const bucket of await this.#living()) {
      const { createdAtMs, settings } = bucket.state;
      yield bucketItem(bucket.name, createdAtMs, settings);
      for await (const directory of keyDirectories(bucket)) {
        const item = await this.#keyOf(bucket, directory);
        if (item !== undefined) yield item;
      }
    }
  }

  /** Does nothing: a key appears with all its versions, so programs may use those that have arrived. */
  async begin(): Promise<() => Promise<void>> {
    return async () => undefined;
  }

  async add(items: readonly ObjectItem[], signal: AbortSignal): Promise<void> {
    for (const item of items)
      if (item.kind === "bucket") await this.#buckets.create(item.name, item.settings, item.createdAtMs);
    const keys = items.filter((item) => item.kind === "key");
    for (const name of new Set(keys.map(({ bucket }) => bucket))) {
      const bucket = await this.#buckets.get(name);
      const lives = keys
        .filter((each) => each.bucket === name)
        .map((item) => ({ item, key: item.key, incarnation: this.#newId() }));
      await writeAnnouncement(bucket, { keys: lives, ended: [] });
      await inParallel(lives, writesAtOnce, (life) => this.#putKey(bucket, life.item, life.incarnation, signal));
    }
  }

  async finish(): Promise<void> {
    // An object store has no state besides its buckets and keys.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ownsGround) await this.#storage.ground.close();
  }

  async #living(): Promise<OpenBucket[]> {
    const found: OpenBucket[] = [];
    for (const name of await this.#buckets.names()) {
      const bucket = await this.#buckets.findLiving(name);
      if (bucket !== undefined) found.push(bucket);
    }
    return found;
  }

  /** Throws CORRUPT for a key with an unreadable slot. */
  async #keyOf(bucket: OpenBucket, directory: string): Promise<ObjectKeyItem | undefined> {
    return await bucket.useDirectory(directory, async (open) => {
      const found = await readKey(open);
      const [damaged] = found?.unread ?? [];
      if (damaged !== undefined) throw damaged.entry.error;
      const key = found?.versions[0]?.entry.key;
      if (found === undefined || key === undefined) return undefined;
      const versions: CopiedVersion[] = [];
      for (const version of found.versions) versions.push(await this.#versionOf(bucket, version));
      return objectKeyItem(bucket.name, key, versions);
    });
  }

  async #versionOf(bucket: OpenBucket, version: KeyVersion): Promise<CopiedVersion> {
    const { entry } = version;
    if (entry.kind === "marker") return copiedVersion(version, [], false);
    if (!hasBodyFiles(entry)) {
      const versionId = versionIdOf(version);
      const open = async function* (): AsyncGenerator<Uint8Array> {
        yield* (await openObject(bucket, entry.key, { versionId })).stream();
      };
      return copiedVersion(version, [{ size: entry.size, sha256: entry.sha256 ?? "", open }], true);
    }
    const files = await findBodyFiles(bucket, entry);
    if (files === undefined) {
      const path = bucket.bodyPath(entry.partsIn ?? "");
      throw bucket.corrupt(entry.key, path, `${path} is missing. Restore it.`);
    }
    const { disk } = this.#storage;
    const pieces = files.map(({ file, size, sha256, sum }): CopiedPiece => {
      const open = (): AsyncIterable<Uint8Array> => readChunks(disk, bucket.bodyPath(file), { isBulk: true, size });
      return { size, sha256, ...(sum === undefined ? {} : { sum }), open };
    });
    return copiedVersion(version, pieces, false);
  }

  async #putKey(bucket: OpenBucket, item: ObjectKeyItem, incarnation: string, signal: AbortSignal): Promise<void> {
    const { staging, disk } = this.#storage;
    const versions = placed(item.versions);
    const last = versions.at(-1)?.at ?? 0;
    const bodies = new Map<number, BodyFiles>();
    for (const version of versions)
      if (!version.isInline && version.pieces.length > 0)
        bodies.set(version.at, await this.#writeBodies(bucket, item, version, incarnation, signal));
    const target = bucket.layout.key(item.key);
    const directory = newTemp(staging, await this.#storage.prepared(`${await staging.directory()}/any`));
    const names = new KeyNames(directory);
    await makeUniqueDirectory(disk, directory);
    const filled = new Set(versions.map(({ at }) => names.blockOf(at)));
    for (let block = 0; block <= names.blockOf(last); block++) {
      const path = names.blockPath(incarnation, block);
      if (block > 0) await makeUniqueDirectory(disk, path);
      if (block > 0 && !filled.has(block))
        await stage(staging, encodeRecord(droppedKind, { ids: [] }), { sync: true, path: `${path}/dropped` });
      else await this.#writeSlots(bucket, item, { names, incarnation, block, last }, versions, bodies);
      await this.#storage.sync(path);
    }
    await this.#storage.sync(directory);
    await this.#place(bucket, item, directory, target);
  }

  /** Writes every slot of a block. One without a version gets a stub, as if that version was removed. */
  async #writeSlots(
    bucket: OpenBucket,
    { key, bucket: name }: ObjectKeyItem,
    { names, incarnation, block, last }: { names: KeyNames; incarnation: string; block: number; last: number },
    versions: readonly PlacedVersion[],
    bodies: ReadonlyMap<number, BodyFiles>,
  ): Promise<void> {
    const bySlot = new Map(versions.map((version) => [version.at, version]));
    const config = bucket.state.number;
    for (let slot = names.firstOf(block); slot <= Math.min(last, names.lastOf(block)); slot++) {
      const version = bySlot.get(slot);
      let entry: KeyEntry = { kind: "stub", id: this.#newId(), key, config, atMs: 0, isNull: false };
      const chunks: Uint8Array[] = [];
      if (version !== undefined) {
        entry = { ...version.entry, config };
        const [piece] = version.pieces;
        if (entry.kind === "put" && version.isInline && piece !== undefined) {
          entry = { ...entry, sha256: piece.sha256 };
          for await (const chunk of checkedPiece(name, key, piece)) chunks.push(chunk);
        } else if (entry.kind === "put") entry = { ...entry, ...bodies.get(slot) };
      }
      const bytes = Buffer.concat([encodeEntry(entry), ...chunks]);
      await stage(this.#storage.staging, bytes, { sync: true, path: names.slotPath(incarnation, slot) });
    }
  }

  /**
   * Writes the pieces of a body, and returns the fields that name them. Many are named by the end of an upload of
   * their own.
   */
  async #writeBodies(
    bucket: OpenBucket,
    { key }: ObjectKeyItem,
    { pieces, entry, at }: PlacedVersion,
    incarnation: string,
    signal: AbortSignal,
  ): Promise<BodyFiles> {
    const { disk, ground, staging } = this.#storage;
    const upload = `uploads/${makeId(ground.ports.clock.wallMs(), ground.ports.random.bytes(16))}`;
    const isListed =
      "partsIn" in
      bodyFilesOf(
        pieces.map((piece) => ({ ...piece, file: "" })),
        upload,
      );
    if (isListed) await makeUniqueDirectory(disk, bucket.bodyPath(upload));
    const parts: BodyFile[] = [];
    for (const piece of pieces) {
      const { size, sha256, sum } = piece;
      const file = isListed ? `${upload}/b${this.#newId()}` : (await bucket.newBodyFile()).file;
      await writeBody(disk, bucket.bodyPath(file), checkedPiece(bucket.name, key, piece), { signal });
      await this.#storage.sync(parentOf(bucket.bodyPath(file)));
      parts.push({ file, size, sha256, ...(sum === undefined ? {} : { sum }) });
    }
    if (!isListed || entry.kind !== "put") return { parts };
    const { id, size, etag } = entry;
    const end = { kind: "complete", id, behind: { incarnation, number: at - 1 }, list: "", size, etag, parts } as const;
    const path = bucket.bodyPath(`${upload}/end`);
    await stage(staging, encodeRecord(endKind, end), { sync: true, path });
    await this.#storage.sync(parentOf(path), bucket.layout.uploads);
    return { partsIn: `${upload}/end` };
  }

  async #place(bucket: OpenBucket, { key }: ObjectKeyItem, directory: string, target: string): Promise<void> {
    const shard = parentOf(target);
    const { disk } = this.#storage;
    try {
      if (!(await isThere(disk, shard))) await ensureDirectory(disk, shard, (parent) => this.#storage.sync(parent));
      if (!(await renameOnce(disk, directory, target)) && !(await isThere(disk, target))) throw judgedDead(this.shown);
    } catch (error) {
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "ENOTDIR")) throw error;
      const what = `object ${JSON.stringify(key)} of the bucket ${bucket.name}`;
      const message = `${this.shown}: the ${what} was put by another process while it was copied. Nothing of it was replaced.`;
      throw holdfastError("COPY_CONFLICT", message, { path: this.shown, what });
    }
    await this.#storage.sync(shard);
  }

  #newId(): string {
    return randomName(this.#storage.ground.ports.random.bytes(16));
  }
}

/**
 * Gives each version a slot. The id of a version has its slot in it; the null version has none, and
 * follows the version before it.
 */
function placed(versions: readonly CopiedVersion[]): PlacedVersion[] {
  let at = 0;
  return versions.map((version) => {
    at = version.entry.isNull ? at + 1 : version.slot;
    return { ...version, at };
  });
}
