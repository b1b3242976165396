// The documents of a tree. Each is published once, under a name made of its path and its change.
// For each path, the document of the highest change counts.
import { isUnreadable } from "../../durable/publish/record-file.ts";
import { ensureDirectory, removeTree, unlinkIfThere, listIfThere } from "../../durable/publish/directory.ts";
import { putStaged } from "../../durable/publish/publish.ts";
import { SharedSync } from "../../durable/publish/shared-sync.ts";
import { discard, stage, type Staging } from "../../durable/publish/staging.ts";
import { randomName } from "../../format/id.ts";
import { decodeRecord, encodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { documentBytesMax, documentKind, type Document } from "./document.ts";
import { findDocumentName, hashOf, type DocumentName, type DocumentsLayout } from "./layout.ts";

export class Documents {
  readonly layout: DocumentsLayout;
  readonly #staging: Staging;
  readonly #sync: SharedSync;

  constructor(staging: Staging, layout: DocumentsLayout) {
    this.#staging = staging;
    this.layout = layout;
    this.#sync = new SharedSync(staging.disk);
  }

  /**
   * Publishes a document; durable when it resolves. An existing document for this path and change
   * stays, unless it is unreadable.
   */
  async publish(document: Document): Promise<void> {
    const { disk, random } = this.#staging;
    const target = this.layout.document(document.path, document.change);
    const record = { id: randomName(random.bytes(16)), ...document };
    const bytes = encodeRecord(documentKind, record, { isChecked: true, bytesMax: documentBytesMax });
    const temp = await stage(this.#staging, bytes, { sync: true });
    const sync = (directory: string): Promise<void> => this.#sync.sync(directory);
    const put = (): Promise<boolean> => putStaged(disk, temp, target, bytes, { sync, isPermanent: false });
    const putIntoShard = async (): Promise<boolean> =>
      await put().catch(async (error: unknown) => {
        // This is the first document of its shard, or a person deleted the index meanwhile.
        if (!hasErrno(error, "ENOENT")) throw error;
        await ensureDirectory(disk, this.layout.shardOf(document.path));
        return await put();
      });
    try {
      const isPut = await putIntoShard().catch((error: unknown) => {
        // The name belongs to something that is not a file.
        if (!isUnreadable(error)) throw error;
        return false;
      });
      if (isPut || (await this.#read(target)) !== undefined) return;
      await removeTree(disk, target);
      await putIntoShard();
    } finally {
      await discard(this.#staging, temp);
    }
  }

  /**
   * Returns a document; undefined if there is none, or if it is unreadable: it can be extracted
   * again.
   */
  async find(path: string, change: number): Promise<Document | undefined> {
    const found = await this.#read(this.layout.document(path, change));
    return found?.path === path ? found : undefined;
  }

  /** Returns the document with the highest change for a path. */
  async findNewest(path: string): Promise<Document | undefined> {
    const hash = hashOf(path);
    const names = (await this.#names(this.layout.shardOf(path))).filter((name) => name.hash === hash);
    for (const { change } of names.sort((a, b) => b.change - a.change)) {
      const found = await this.find(path, change);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Yields the newest document of each path, in no order; with `change` only those of this change. */
  async *all({ change }: { readonly change?: number } = {}): AsyncGenerator<Document> {
    for (const shard of this.layout.shards) {
      const names = await this.#names(`${this.layout.directory}/${shard}`);
      for (const name of change === undefined ? newestOf(names) : names.filter((each) => each.change === change)) {
        const found = await this.#read(this.#pathOf(name));
        if (found !== undefined) yield found;
      }
    }
  }

  /** Returns the highest change that has a document; 0 if there is none. */
  async last(): Promise<number> {
    let highest = 0;
    for (const shard of this.layout.shards)
      for (const { change } of await this.#names(`${this.layout.directory}/${shard}`))
        highest = Math.max(highest, change);
    return highest;
  }

  /** Yields the files of unreadable documents. */
  async *unreadable(): AsyncGenerator<string> {
    for (const shard of this.layout.shards)
      for (const name of await this.#names(`${this.layout.directory}/${shard}`)) {
        const path = this.#pathOf(name);
        if ((await this.#read(path)) === undefined && (await this.#staging.disk.findStat(path)) !== undefined)
          yield path;
      }
  }

  /** Removes the documents of `path` up to this change. */
  async removeUpTo(path: string, change: number): Promise<void> {
    const hash = hashOf(path);
    for (const name of await this.#names(this.layout.shardOf(path)))
      if (name.hash === hash && name.change <= change) await this.#remove(name);
  }

  /**
   * Removes documents that a newer one has replaced, and unwanted ones, but none of a later change
   * than `upTo`. `isKnown` saves reading them. Returns how many it removed.
   */
  async collect(
    upTo: number,
    isKnown: (hash: string) => boolean,
    isWanted: (path: string) => Promise<boolean>,
  ): Promise<number> {
    let count = 0;
    for (const shard of this.layout.shards) {
      const names = await this.#names(`${this.layout.directory}/${shard}`);
      const newest = new Set(newestOf(names));
      for (const name of names) {
        if (name.change > upTo || (newest.has(name) && isKnown(name.hash))) continue;
        const document = newest.has(name) ? await this.#read(this.#pathOf(name)) : undefined;
        if (document !== undefined && (await isWanted(document.path))) continue;
        await this.#remove(name);
        count++;
      }
    }
    return count;
  }

  async #remove(name: DocumentName): Promise<void> {
    const { disk } = this.#staging;
    await unlinkIfThere(disk, this.#pathOf(name)).catch(async (error: unknown) => {
      // Another program put a directory there.
      if (!hasErrno(error, "EISDIR", "EPERM")) throw error;
      await removeTree(disk, this.#pathOf(name));
    });
  }

  async #read(path: string): Promise<Document | undefined> {
    try {
      const bytes = await this.#staging.disk.readFile(path, documentBytesMax);
      const { id: _id, ...document } = decodeRecord(documentKind, bytes, path);
      return document;
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE", "EFBIG") || isUnreadable(error)) return undefined;
      throw error;
    }
  }

  async #names(shard: string): Promise<DocumentName[]> {
    const names = await listIfThere(this.#staging.disk, shard);
    return names.map(findDocumentName).filter((name) => name !== undefined);
  }

  #pathOf({ hash, change }: DocumentName): string {
    return `${this.layout.directory}/${hash.slice(0, 2)}/${hash}.${String(change).padStart(10, "0")}`;
  }
}

function newestOf(names: readonly DocumentName[]): DocumentName[] {
  const newest = new Map<string, DocumentName>();
  for (const name of names) if (name.change >= (newest.get(name.hash)?.change ?? 0)) newest.set(name.hash, name);
  return [...newest.values()];
}
