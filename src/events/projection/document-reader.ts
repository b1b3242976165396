// Reads documents without a lock, while others write, replace and remove them, and while generations are switched.
//
// An absence is believed only if neither the checkpoint nor the generation changed during the look: a listing may miss a document whose new file was made behind its back
// and whose old file was removed before it came there. Then a checkpoint lies between the two.
import { getRecord } from "../../durable/publish/record-file.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Checkpoint } from "../follow/checkpoint.ts";
import type { Catalog } from "./catalog.ts";
import { documentKind, documentName, hashOf, isShard, newestOf, shardOf } from "./document.ts";
import type { Document, DocumentName } from "./document.ts";
import { listShard } from "./document-writer.ts";
import { openGeneration, type Generation, type ProjectionFiles } from "./generation.ts";

/** Something that is never still for so long is no state. */
const looksMax = 1000;

/** What was found is gone already. */
const again: unique symbol = Symbol("again");

/** The generation in which something was to be read is no longer the one that is read. */
export const replaced: unique symbol = Symbol("replaced");

export interface FoundNames {
  readonly generation: Generation;
  readonly names: readonly DocumentName[];
}

export class DocumentReader {
  readonly #place: ProjectionFiles;
  readonly #catalog: Catalog;
  #generation: Generation | undefined;

  constructor(place: ProjectionFiles, catalog: Catalog) {
    this.#place = place;
    this.#catalog = catalog;
  }

  /** Of the generation that is read; undefined when there is none yet, or none of this version or a newer one. */
  async findCheckpoint(versionMin = 0): Promise<Checkpoint | undefined> {
    // Before the look: versions never go back.
    const { current } = await this.#catalog.read();
    if (current === undefined || current.version < versionMin) return undefined;
    return await this.#look(async (_generation, checkpoint) => checkpoint);
  }

  async find(key: string): Promise<Document | undefined> {
    const document = await this.#findHash(hashOf(key));
    if (document === undefined || document.key === key) return document;
    const message = `${this.#place.directory}: the document of ${JSON.stringify(key)} is that of ${JSON.stringify(document.key)}. Rebuild the projection.`;
    throw holdfastError("CORRUPT", message, { path: this.#place.directory });
  }

  /**
   * The documents that `choose` takes of all that there are, from one generation: two may have different keys, so a part of each is nothing. `choose` gives undefined when it
   * meets `replaced`. As long as nobody has got anything it begins again in the new one; afterwards it is RESOURCE_BUSY.
   */
  async *each(
    choose: (found: FoundNames) => Promise<readonly DocumentName[] | undefined>,
  ): AsyncGenerator<Document, void, undefined> {
    for (let looks = 0; looks < looksMax; looks++) {
      const found = await this.#list();
      if (found === undefined) return;
      const names = await choose(found);
      if (names === undefined) continue;
      let document: Document | typeof replaced | undefined;
      let hasBegun = false;
      for (const name of names) {
        document = await this.read(found.generation, name);
        if (document === replaced) break;
        if (document === undefined) continue;
        hasBegun = true;
        yield document;
      }
      if (document !== replaced) return;
      if (hasBegun) throw this.#busy("the read model was rebuilt while you were reading: read again.");
    }
    throw this.#restless();
  }

  /** Where the documents are, each the newest that counts. */
  async #list(): Promise<FoundNames | undefined> {
    return await this.#look(async (generation) => {
      const names: DocumentName[] = [];
      for (const shard of (await this.#place.disk.list(generation.directory)).filter(isShard))
        names.push(...(await this.#listStill(generation, shard)));
      const { current } = await this.#catalog.read();
      return current?.number === generation.number ? { generation, names } : again;
    });
  }

  /** What a name stood for, or what has taken its place in that generation since; undefined when it was deleted. */
  async read({ number, directory }: Generation, name: DocumentName): Promise<Document | typeof replaced | undefined> {
    const document = await this.#findFile(directory, name);
    if (document !== undefined) return document;
    const newer = await this.#findHash(name.hash);
    // Asked after the look: generations only go forward, so if this one is read now, it was the one that was looked at.
    return (await this.#catalog.read()).current?.number === number ? newer : replaced;
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
    return this.#busy(`what is there changed during each of ${looksMax} looks.`);
  }

  #busy(why: string): Error {
    const path = this.#place.directory;
    return holdfastError("RESOURCE_BUSY", `${path}: ${why}`, { path, blockedBy: [], worthWaiting: true });
  }
}
