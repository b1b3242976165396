// Writes documents in batches: first the files, then the checkpoint that makes them count. After that it removes the
// replaced files.
import { syncNames, unlinkIfThere } from "../../durable/publish/directory.ts";
import { getRecord } from "../../durable/publish/record-file.ts";
import { encodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { LeasedWork } from "../../part/progress/checkpoints.ts";
import type { DocumentsWriter } from "./documents.ts";
import {
  documentKind,
  documentName,
  findDocumentName,
  hashOf,
  newestOf,
  shardOf,
  type Document,
  type DocumentName,
} from "./document.ts";

/** About as many as the thread pool and the disk's queue can process. */
const writesAtOnce = 8;
/** Maximum number of names kept in memory. Beyond that all are dropped, and listed again when needed. */
const namesMax = 200_000;

export class DocumentWriter implements DocumentsWriter {
  protected readonly disk: Disk;
  protected readonly leased: LeasedWork;
  readonly #directory: string;
  /**
   * For each shard, the newest name that counts, by hash. While the lease lasts, no other process creates one that
   * counts.
   */
  readonly #shards = new Map<string, Map<string, DocumentName>>();
  readonly #made = new Set<string>();
  /** Replaced files that could not be removed yet. */
  readonly #stuck: DocumentName[] = [];
  #isDone = true;

  /** `directory`: that of the generation. */
  constructor(disk: Disk, directory: string, leased: LeasedWork) {
    this.disk = disk;
    this.#directory = directory;
    this.leased = leased;
  }

  async find(key: string): Promise<Document | undefined> {
    const hash = hashOf(key);
    const name = (await this.#shard(shardOf(hash))).get(hash);
    return name === undefined ? undefined : await getRecord(this.disk, documentKind, this.pathOf(name));
  }

  /**
   * Makes these documents, and everything up to `position`, count at once. Returns false if another
   * process took over: then none of them counts. A crash in between leaves files that never count.
   */
  async commit(documents: readonly Document[], position: number): Promise<boolean> {
    this.#isDone = false;
    await this.write(documents);
    // Write documents before the checkpoint: in the reverse order a crash would lose them.
    const saved = await this.leased.save(position);
    if (saved) await this.#replace(documents);
    this.#isDone = true;
    return saved;
  }

  /** Marks the checkpoint as complete, unless a commit failed or is in progress: no more documents follow. */
  async end(): Promise<void> {
    if (this.#isDone) await this.leased.end();
  }

  protected async write(documents: readonly Document[]): Promise<void> {
    const shards = new Set(documents.map(({ key }) => shardOf(hashOf(key))));
    await this.#makeShards(shards);
    await atOnce(documents, async (document) => {
      const path = this.pathOf(this.#nameOf(document));
      await this.disk.createFile(path, encodeRecord(documentKind, document), { sync: true });
    });
    await atOnce([...shards], (shard) => syncNames(this.disk, `${this.#directory}/${shard}`));
  }

  #nameOf({ key, position, state }: Document): DocumentName {
    return { hash: hashOf(key), fence: this.leased.fence, position, isDeletion: state === undefined };
  }

  async #makeShards(shards: ReadonlySet<string>): Promise<void> {
    const missing = [...shards].filter((shard) => !this.#made.has(shard));
    for (const shard of missing) {
      try {
        // Never create the parent: a generation that was removed must not reappear.
        await this.disk.mkdir(`${this.#directory}/${shard}`);
      } catch (error) {
        if (!hasErrno(error, "EEXIST")) throw error;
      }
      this.#made.add(shard);
    }
    // Sync even if another process created the shard: it may have died before its sync.
    if (missing.length > 0) await syncNames(this.disk, this.#directory);
    // List before anything is written: the result is exactly the files of earlier workers.
    for (const shard of shards) await this.#shard(shard);
  }

  async #replace(documents: readonly Document[]): Promise<void> {
    const before: DocumentName[] = [];
    const deleted: DocumentName[] = [];
    for (const document of documents) {
      const name = this.#nameOf(document);
      const shard = await this.#shard(shardOf(name.hash));
      const old = shard.get(name.hash);
      if (old !== undefined) before.push(old);
      if (name.isDeletion) {
        deleted.push(name);
        shard.delete(name.hash);
      } else shard.set(name.hash, name);
    }
    await this.remove(before, deleted);
    const known = [...this.#shards.values()].reduce((sum, { size }) => sum + size, 0);
    if (known > namesMax) this.#shards.clear();
  }

  /**
   * Removes replaced files, then tombstones. A tombstone stays until the files that it overrides are permanently
   * removed: neither a power cut nor a file that could not be removed may bring the document back. No reader needs
   * these files, so a failed removal is retried with the next batch, or by the next worker in that shard.
   */
  protected async remove(old: readonly DocumentName[], deleted: readonly DocumentName[]): Promise<void> {
    const wanted = [...this.#stuck.splice(0), ...old];
    await atOnce(wanted, (name) => this.#removeOrKeep(name));
    const stuck = new Set(this.#stuck.map(({ hash }) => hash));
    const over = deleted.filter(({ hash }) => !stuck.has(hash));
    try {
      for (const shard of new Set(over.map(({ hash }) => shardOf(hash))))
        await syncNames(this.disk, `${this.#directory}/${shard}`);
    } catch (error) {
      if (isHindered(error)) return;
      throw error;
    }
    await atOnce(over, (name) => this.#removeOrKeep(name));
  }

  async #removeOrKeep(name: DocumentName): Promise<void> {
    try {
      await unlinkIfThere(this.disk, this.pathOf(name));
    } catch (error) {
      if (!isHindered(error)) throw error;
      this.#stuck.push(name);
    }
  }

  async #shard(shard: string): Promise<Map<string, DocumentName>> {
    const known = this.#shards.get(shard);
    if (known !== undefined) return known;
    const names = await listShard(this.disk, `${this.#directory}/${shard}`);
    const { saved, fence } = this.leased;
    const newest = newestOf(names, saved);
    const deleted = [...newest.values()].filter(({ isDeletion }) => isDeletion);
    // Select files of earlier workers that were replaced or never counted. Files of a later worker are left alone.
    const old = names.filter((name) => name.fence < fence && newest.get(name.hash) !== name);
    await this.remove(old, deleted);
    for (const { hash } of deleted) newest.delete(hash);
    this.#shards.set(shard, newest);
    return newest;
  }

  protected pathOf(name: DocumentName): string {
    return `${this.#directory}/${shardOf(name.hash)}/${documentName(name)}`;
  }
}

function isHindered(error: unknown): boolean {
  return hasErrno(error, "EBUSY", "EPERM", "EACCES", "EIO", "ESTALE");
}

/** A shard that does not exist yet is empty. */
export async function listShard(disk: Disk, path: string): Promise<DocumentName[]> {
  try {
    return (await disk.list(path)).map(findDocumentName).filter((name) => name !== undefined);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return [];
    throw error;
  }
}

async function atOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let start = 0; start < items.length; start += writesAtOnce)
    await Promise.all(items.slice(start, start + writesAtOnce).map(work));
}
