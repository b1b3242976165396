// Which documents have which tags: kept in memory, and brought up to date by looking which files are new.
import type { Document, DocumentName } from "./document.ts";
import { replaced, type DocumentReader, type FoundNames } from "./document-reader.ts";

interface Indexed {
  readonly generation: number;
  readonly name: DocumentName;
  readonly tags: readonly string[];
}

export class TagIndex {
  readonly #reader: DocumentReader;
  #known: ReadonlyMap<string, Indexed> = new Map();

  constructor(reader: DocumentReader) {
    this.#reader = reader;
  }

  /** The documents that have all of these tags. The first time all documents are read, later only those that have changed. */
  async *find(tags: readonly string[]): AsyncGenerator<Document, void, undefined> {
    for await (const document of this.#reader.each((found) => this.#choose(found, tags)))
      // It may have changed since it was looked up.
      if (hasAll(document.tags, tags)) yield document;
  }

  /** Undefined when another generation is read by now. */
  async #choose({ generation, names }: FoundNames, tags: readonly string[]): Promise<DocumentName[] | undefined> {
    const before = this.#known;
    const known = new Map<string, Indexed>();
    // What is found on the way is kept at once: two who ask at the same time share it.
    this.#known = known;
    const matching: DocumentName[] = [];
    for (const name of names) {
      const old = before.get(name.hash);
      const isSame =
        old?.generation === generation.number && old.name.fence === name.fence && old.name.position === name.position;
      const found = isSame ? old : await this.#reader.read(generation, name);
      if (found === replaced) return undefined;
      if (found === undefined) continue;
      known.set(name.hash, { generation: generation.number, name, tags: found.tags });
      if (hasAll(found.tags, tags)) matching.push(name);
    }
    return matching;
  }
}

function hasAll(tags: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((tag) => tags.includes(tag));
}
