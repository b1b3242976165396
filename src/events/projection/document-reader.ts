// Reads documents without a lock, while other processes write, replace and remove them, and while generations switch.
//
// Each program reads documents of its own version. A document counts as missing only if neither the checkpoint nor
// the generation changed during the read.
import { holdfastError } from "../../errors.ts";
import { findOfVersion, type GenerationEntry } from "../../part/generations.ts";
import type { Checkpoint } from "../../part/progress/checkpoint.ts";
import type { CheckedDefinition } from "./definition.ts";
import { readTriesMax, changedTooOften } from "./directory-documents.ts";
import { hashOf } from "./document.ts";
import type { Document, DocumentName } from "./document.ts";
import { documentReplaced } from "./documents.ts";
import type { Generation, ProjectionFiles } from "./generation.ts";

const gone = "were removed";

/** Returned if readers have switched to another generation. */
export const generationReplaced: unique symbol = Symbol("replaced");

export interface FoundNames {
  readonly generation: Generation;
  readonly names: readonly DocumentName[];
}

/** The versions whose documents a program can read. */
export type ReadableVersions = Pick<CheckedDefinition, "version" | "readsFrom">;

export class DocumentReader {
  readonly #files: ProjectionFiles;
  readonly #versions: ReadableVersions;
  #generation: Generation | undefined;

  constructor(files: ProjectionFiles, versions: ReadableVersions) {
    this.#files = files;
    this.#versions = versions;
  }

  /** Returns the checkpoint of the generation that this program reads, or undefined if there is none. */
  async findCheckpoint(): Promise<Checkpoint | undefined> {
    return await this.#look(async (_generation, checkpoint) => checkpoint);
  }

  /**
   * Returns the checkpoint of the documents of exactly this version, or undefined while they are
   * incomplete. Throws NEWER_FORMAT.
   */
  async findOwnCheckpoint(): Promise<Checkpoint | undefined> {
    const { version } = this.#versions;
    const state = await this.#files.generations.read();
    // Check before the read: generations only move forward.
    if (findOfVersion(state, version) !== undefined) return await this.findCheckpoint();
    this.#files.mustNotBeNewer(state.current, version, gone);
    return undefined;
  }

  async find(key: string): Promise<Document | undefined> {
    const document = await this.#findHash(hashOf(key));
    if (document === undefined || document.key === key) return document;
    const path = this.#files.directory;
    const message = `${path}: the file of the document ${JSON.stringify(key)} has the document ${JSON.stringify(document.key)}. Rebuild the projection.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  /**
   * Yields the documents that `choose` selects from all names, from one generation: two generations
   * may have different keys, so a mixture would lack documents. `choose` returns undefined if it
   * meets `replaced`. If no document was yielded yet, reading starts again in the new generation;
   * otherwise it throws RESOURCE_BUSY.
   */
  async *each(
    choose: (found: FoundNames) => Promise<readonly DocumentName[] | undefined>,
  ): AsyncGenerator<Document, void, undefined> {
    for (let looks = 0; looks < readTriesMax; looks++) {
      const found = await this.#list();
      if (found === undefined) return;
      const names = await choose(found);
      if (names === undefined) continue;
      let document: Document | typeof generationReplaced | undefined;
      let hasBegun = false;
      for (const name of names) {
        document = await this.read(found.generation, name);
        if (document === generationReplaced) break;
        if (document === undefined) continue;
        hasBegun = true;
        yield document;
      }
      if (document !== generationReplaced) return;
      if (hasBegun) throw this.#busy("the read model was rebuilt during the read. Read again.");
    }
    throw changedTooOften(this.#files.directory);
  }

  /** Returns the names of all documents, for each the newest that counts. */
  async #list(): Promise<FoundNames | undefined> {
    return await this.#look(async (generation) => {
      const names = await generation.documents.list(generation.checkpoints);
      return (await this.#isRead(generation.number)) ? { generation, names } : documentReplaced;
    });
  }

  /**
   * Returns the document of this name, or the one that replaced it in that generation. Returns undefined if it was
   * deleted.
   */
  async read(
    { number, documents }: Generation,
    name: DocumentName,
  ): Promise<Document | typeof generationReplaced | undefined> {
    const document = await documents.read(name);
    if (document !== undefined) return document;
    const newer = await this.#findHash(name.hash);
    // Check after the read: generations only move forward, so if this one is current now, it was current during the
    // read.
    return (await this.#isRead(number)) ? newer : generationReplaced;
  }

  async #findHash(hash: string): Promise<Document | undefined> {
    return await this.#look(({ documents }, checkpoint) => documents.find(hash, checkpoint));
  }

  /** Repeats `look` until it finds something, or finds nothing while nothing changed. */
  async #look<T extends object>(
    look: (generation: Generation, checkpoint: Checkpoint) => Promise<T | typeof documentReplaced | undefined>,
  ): Promise<T | undefined> {
    for (let looks = 0; looks < readTriesMax; looks++) {
      const readable = await this.#findReadable();
      if (readable === undefined) return undefined;
      try {
        const generation = await this.#open(readable.number);
        const { number, state } = await generation.checkpoints.read();
        if (!state.isBegun) continue;
        const found = await look(generation, state);
        if (found === documentReplaced) continue;
        if (found !== undefined) return found;
        const isStill = (await generation.checkpoints.read()).number === number;
        if (isStill && (await this.#isRead(readable.number))) return undefined;
      } catch (error) {
        // If readers have switched to another generation, this one was removed during the read.
        if (await this.#isRead(readable.number)) throw error;
      }
    }
    throw changedTooOften(this.#files.directory);
  }

  /**
   * Returns the generation of this version, or else the newest that this program can read. Returns undefined if there
   * are no documents of any version yet. Throws NEWER_FORMAT, RESOURCE_BUSY.
   */
  async #findReadable(): Promise<GenerationEntry | undefined> {
    const { version, readsFrom } = this.#versions;
    const state = await this.#files.generations.read();
    const { current } = state;
    const own = findOfVersion(state, version);
    if (own !== undefined || current === undefined) return own;
    this.#files.mustNotBeNewer(current, version, gone);
    if (current.version >= readsFrom) return current;
    throw this.#busy(
      `the documents of version ${version} are not complete yet, and this program cannot read those of version ` +
        `${current.version}. Wait for them with waitUntilProcessed, while a process of this version calls run or rebuild.`,
    );
  }

  async #isRead(number: number): Promise<boolean> {
    return (await this.#findReadable())?.number === number;
  }

  async #open(number: number): Promise<Generation> {
    if (this.#generation?.number !== number) this.#generation = await this.#files.openGeneration(number);
    return this.#generation;
  }

  #busy(why: string): Error {
    const path = this.#files.directory;
    return holdfastError("RESOURCE_BUSY", `${path}: ${why}`, { path, blockedBy: [], worthWaiting: true });
  }
}
