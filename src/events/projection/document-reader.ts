// Reads documents without a lock, while others write, replace and remove them, and while generations are switched.
//
// An absence is believed only if neither the checkpoint nor the generation changed during the look: a listing may miss a document whose new file was made behind its back
// and whose old file was removed before it came there. Then a checkpoint lies between the two.
import { getRecord } from "../../durable/record-file.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Checkpoint } from "../follow/checkpoint.ts";
import type { Catalog } from "./catalog.ts";
import { documentKind, documentName, hashOf, isShard, newestOf, shardOf } from "./document.ts";
import type { Document, DocumentName } from "./document.ts";
import { listShard } from "./document-writer.ts";
import { openGeneration, type Generation, type ProjectionPlace } from "./generation.ts";

/** Something that is never still for so long is no state. */
const looksMax = 1000;

/** What was found is gone already. */
const again: unique symbol = Symbol("again");

export interface FoundNames {
  readonly generation: Generation;
  readonly names: readonly DocumentName[];
}

export class DocumentReader {
  readonly #place: ProjectionPlace;
  readonly #catalog: Catalog;
  #generation: Generation | undefined;

  constructor(place: ProjectionPlace, catalog: Catalog) {
    this.#place = place;
    this.#catalog = catalog;
  }

  /** Of the generation that is read; undefined when there is none yet. */
  async findCheckpoint(): Promise<Checkpoint | undefined> {
    return await this.#look(async (_generation, checkpoint) => checkpoint);
  }

  async find(key: string): Promise<Document | undefined> {
    const document = await this.#findHash(hashOf(key));
    if (document === undefined || document.key === key) return document;
    const message = `${this.#place.directory}: the document of ${JSON.stringify(key)} is that of ${JSON.stringify(document.key)}. Rebuild the projection.`;
    throw holdfastError("CORRUPT", message, { path: this.#place.directory });
  }

  /** Where the documents are, each the newest that counts. */
  async list(): Promise<FoundNames | undefined> {
    return await this.#look(async (generation) => {
      const names: DocumentName[] = [];
      for (const shard of (await this.#place.disk.list(generation.directory)).filter(isShard))
        names.push(...(await this.#listStill(generation, shard)));
      const { current } = await this.#catalog.read();
      return current?.number === generation.number ? { generation, names } : again;
    });
  }

  /** What a name stood for, or what has replaced it since; undefined when it was deleted. */
  async read({ directory }: Generation, name: DocumentName): Promise<Document | undefined> {
    return (await this.#findFile(directory, name)) ?? (await this.#findHash(name.hash));
  }

  async #findHash(hash: string): Promise<Document | undefined> {
    const shard = shardOf(hash);
    const found = await this.#look(async ({ directory }, checkpoint) => {
      const name = newestOf(await listShard(this.#place.disk, `${directory}/${shard}`), checkpoint).get(hash);
      if (name === undefined || name.isDeletion) return name;
      return (await this.#findFile(directory, name)) ?? again;
    });
    return found === undefined || "isDeletion" in found ? undefined : found;
  }

  async #findFile(directory: string, name: DocumentName): Promise<Document | undefined> {
    try {
      return await getRecord(
        this.#place.disk,
        documentKind,
        `${directory}/${shardOf(name.hash)}/${documentName(name)}`,
      );
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
      throw error;
    }
  }

  async #listStill({ directory, checkpoints }: Generation, shard: string): Promise<DocumentName[]> {
    let before = await checkpoints.read();
    for (let looks = 0; looks < looksMax; looks++) {
      const newest = newestOf(await listShard(this.#place.disk, `${directory}/${shard}`), before.state);
      const after = await checkpoints.read();
      if (after.number === before.number) return [...newest.values()].filter(({ isDeletion }) => !isDeletion);
      before = after;
    }
    throw this.#restless();
  }

  /** Looks until it finds something, or nothing while nothing moved. */
  async #look<T extends object>(
    look: (generation: Generation, checkpoint: Checkpoint) => Promise<T | typeof again | undefined>,
  ): Promise<T | undefined> {
    for (let looks = 0; looks < looksMax; looks++) {
      const { current } = await this.#catalog.read();
      if (current === undefined) return undefined;
      const isStill = async (): Promise<boolean> => (await this.#catalog.read()).current?.number === current.number;
      try {
        const generation = await this.#open(current.number);
        const { number, state } = await generation.checkpoints.read();
        if (!state.isBegun) continue;
        const found = await look(generation, state);
        if (found === again) continue;
        if (found !== undefined) return found;
        if ((await generation.checkpoints.read()).number === number && (await isStill())) return undefined;
      } catch (error) {
        // Removed under our eyes, if there is another one now.
        if (await isStill()) throw error;
      }
    }
    throw this.#restless();
  }

  async #open(number: number): Promise<Generation> {
    if (this.#generation?.number !== number) this.#generation = await openGeneration(this.#place, number);
    return this.#generation;
  }

  #restless(): Error {
    const path = this.#place.directory;
    const message = `${path}: what is there changed during each of ${looksMax} looks.`;
    return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }
}
