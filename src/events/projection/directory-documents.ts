// Documents as files in the directory of their generation.
//
// A listing may miss a document: its new file was created after the listing had passed that name,
// and its old file was removed before the listing reached it. Then a checkpoint lies between the
// two.
import { getRecord } from "../../durable/publish/record-file.ts";
import { holdfastError } from "../../errors.ts";
import type { Checkpoint } from "../../part/progress/checkpoint.ts";
import type { Checkpoints, LeasedWork } from "../../part/progress/checkpoints.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import {
  documentKind,
  documentName,
  isShard,
  newestOf,
  shardOf,
  type Document,
  type DocumentName,
} from "./document.ts";
import { DocumentWriter, listShard } from "./document-writer.ts";
import { documentReplaced, type Documents } from "./documents.ts";

/** A read fails after this many tries, if the documents changed during each of them. */
export const readTriesMax = 1000;

export class DirectoryDocuments implements Documents {
  readonly #disk: Disk;
  readonly #directory: string;

  constructor(disk: Disk, directory: string) {
    this.#disk = disk;
    this.#directory = directory;
  }

  async find(hash: string, checkpoint: Checkpoint): Promise<Document | typeof documentReplaced | undefined> {
    const name = newestOf(await this.#listShard(shardOf(hash)), checkpoint).get(hash);
    if (name === undefined || name.isDeletion) return undefined;
    return (await this.read(name)) ?? documentReplaced;
  }

  async read(name: DocumentName): Promise<Document | undefined> {
    const path = `${this.#directory}/${shardOf(name.hash)}/${documentName(name)}`;
    try {
      return await getRecord(this.#disk, documentKind, path);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
      throw error;
    }
  }

  async list(checkpoints: Pick<Checkpoints, "read">): Promise<DocumentName[]> {
    const names: DocumentName[] = [];
    for (const shard of (await this.#disk.list(this.#directory)).filter(isShard))
      names.push(...(await this.#listStill(shard, checkpoints)));
    return names;
  }

  openWriter(leased: LeasedWork): DocumentWriter {
    return new DocumentWriter(this.#disk, this.#directory, leased);
  }

  async #listStill(shard: string, checkpoints: Pick<Checkpoints, "read">): Promise<DocumentName[]> {
    let before = await checkpoints.read();
    for (let looks = 0; looks < readTriesMax; looks++) {
      const newest = newestOf(await this.#listShard(shard), before.state);
      const after = await checkpoints.read();
      if (after.number === before.number) return [...newest.values()].filter(({ isDeletion }) => !isDeletion);
      before = after;
    }
    throw changedTooOften(this.#directory);
  }

  async #listShard(shard: string): Promise<DocumentName[]> {
    return await listShard(this.#disk, `${this.#directory}/${shard}`);
  }
}

/** Returns RESOURCE_BUSY. */
export function changedTooOften(path: string): Error {
  const message = `${path}: the documents changed during each of ${readTriesMax} attempts to read them. Try again.`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}
