// Reads documents without a lock, while other processes write, replace and remove them, and while
// generations switch.
//
// An absence is believed only if neither the checkpoint nor the current generation changed during
// the look. A listing may miss a document: its new file was made after the listing had passed that
// place, and its old file was removed before the listing came there. Then a checkpoint lies between
// the two.
import { getRecord } from "../../durable/publish/record-file.ts";
import { holdfastError } from "../../errors.ts";
import type { Checkpoint } from "../../part/progress/checkpoint.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { documentKind, documentName, hashOf, isShard, newestOf, shardOf } from "./document.ts";
import type { Document, DocumentName } from "./document.ts";
import { listShard } from "./document-writer.ts";
import type { Generation, ProjectionFiles } from "./generation.ts";

/** Documents that change during each of so many looks cannot be read. */
const looksMax = 1000;

/** The result of a look whose file is gone already. */
const again: unique symbol = Symbol("again");

/** The generation that was to be read is no longer the current one. */
export const replaced: unique symbol = Symbol("replaced");

export interface FoundNames {
  readonly generation: Generation;
  readonly names: readonly DocumentName[];
}

export class DocumentReader {
  readonly #files: ProjectionFiles;
  #generation: Generation | undefined;

  constructor(files: ProjectionFiles) {
    this.#files = files;
  }

  /**
   * Of the current generation; undefined when there is none, or when its version is below
   * `versionMin`.
   */
  async findCheckpoint(versionMin = 0): Promise<Checkpoint | undefined> {
    // Before the look: versions never go back.
    const { current } = await this.#files.generations.read();
    if (current === undefined || current.version < versionMin) return undefined;
    return await this.#look(async (_generation, checkpoint) => checkpoint);
  }

  async find(key: string): Promise<Document | undefined> {
    const document = await this.#findHash(hashOf(key));
    if (document === undefined || document.key === key) return document;
    const path = this.#files.directory;
    const message = `${path}: the file of the document ${JSON.stringify(key)} holds the document ${JSON.stringify(document.key)}. Rebuild the projection.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  /**
   * The documents that `choose` takes of all names, from one generation: two generations may have
   * different keys, so a part of each would lack documents. `choose` returns undefined when it
   * meets `replaced`. The reading begins again in the new generation if no document was given out;
   * otherwise it is RESOURCE_BUSY.
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

  /** The names of all documents, each the newest that counts. */
  async #list(): Promise<FoundNames | undefined> {
    return await this.#look(async (generation) => {
      const names: DocumentName[] = [];
      for (const shard of (await this.#files.disk.list(generation.directory)).filter(isShard))
        names.push(...(await this.#listStill(generation, shard)));
      return (await this.#isCurrent(generation.number)) ? { generation, names } : again;
    });
  }

  /**
   * The document of this name, or what has replaced it in that generation since; undefined when it
   * was deleted.
   */
  async read({ number, directory }: Generation, name: DocumentName): Promise<Document | typeof replaced | undefined> {
    const document = await this.#findFile(directory, name);
    if (document !== undefined) return document;
    const newer = await this.#findHash(name.hash);
    // Asked after the look: generations only go forward, so one that is current now was current
    // during the look.
    return (await this.#isCurrent(number)) ? newer : replaced;
  }

  async #findHash(hash: string): Promise<Document | undefined> {
    const shard = shardOf(hash);
    const found = await this.#look(async ({ directory }, checkpoint) => {
      const name = newestOf(await listShard(this.#files.disk, `${directory}/${shard}`), checkpoint).get(hash);
      if (name === undefined || name.isDeletion) return name;
      return (await this.#findFile(directory, name)) ?? again;
    });
    return found === undefined || "isDeletion" in found ? undefined : found;
  }

  async #findFile(directory: string, name: DocumentName): Promise<Document | undefined> {
    const path = `${directory}/${shardOf(name.hash)}/${documentName(name)}`;
    try {
      return await getRecord(this.#files.disk, documentKind, path);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
      throw error;
    }
  }

  async #listStill({ directory, checkpoints }: Generation, shard: string): Promise<DocumentName[]> {
    let before = await checkpoints.read();
    for (let looks = 0; looks < looksMax; looks++) {
      const newest = newestOf(await listShard(this.#files.disk, `${directory}/${shard}`), before.state);
      const after = await checkpoints.read();
      if (after.number === before.number) return [...newest.values()].filter(({ isDeletion }) => !isDeletion);
      before = after;
    }
    throw this.#restless();
  }

  /** Looks until something is found, or nothing is found while nothing changed. */
  async #look<T extends object>(
    look: (generation: Generation, checkpoint: Checkpoint) => Promise<T | typeof again | undefined>,
  ): Promise<T | undefined> {
    for (let looks = 0; looks < looksMax; looks++) {
      const { current } = await this.#files.generations.read();
      if (current === undefined) return undefined;
      try {
        const generation = await this.#open(current.number);
        const { number, state } = await generation.checkpoints.read();
        if (!state.isBegun) continue;
        const found = await look(generation, state);
        if (found === again) continue;
        if (found !== undefined) return found;
        const isStill = (await generation.checkpoints.read()).number === number;
        if (isStill && (await this.#isCurrent(current.number))) return undefined;
      } catch (error) {
        // If another generation is current now, this one was removed during the look.
        if (await this.#isCurrent(current.number)) throw error;
      }
    }
    throw this.#restless();
  }

  async #isCurrent(number: number): Promise<boolean> {
    return (await this.#files.generations.read()).current?.number === number;
  }

  async #open(number: number): Promise<Generation> {
    if (this.#generation?.number !== number) this.#generation = await this.#files.openGeneration(number);
    return this.#generation;
  }

  #restless(): Error {
    return this.#busy(`the documents changed during each of ${looksMax} looks. Try again.`);
  }

  #busy(why: string): Error {
    const path = this.#files.directory;
    return holdfastError("RESOURCE_BUSY", `${path}: ${why}`, { path, blockedBy: [], worthWaiting: true });
  }
}
