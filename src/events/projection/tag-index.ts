// An index of documents by tag, in memory. Each search reads only the files that are new since the last one.
import type { Document, DocumentName } from "./document.ts";
import { generationReplaced, type DocumentReader, type FoundNames } from "./document-reader.ts";

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

  /**
   * Yields the documents that have all of these tags. The first call reads all documents, a later
   * one only those that changed.
   */
  async *find(tags: readonly string[]): AsyncGenerator<Document, void, undefined> {
    for await (const document of this.#reader.each((found) => this.#choose(found, tags)))
      // Compare again: the document may have changed since it was indexed.
      if (hasAll(document.tags, tags)) yield document;
  }

  /** Returns undefined if another generation is now current. */
  async #choose({ generation, names }: FoundNames, tags: readonly string[]): Promise<DocumentName[] | undefined> {
    const before = this.#known;
    const known = new Map<string, Indexed>();
    // Shared before the reads, so that two concurrent searches read each file once.
    this.#known = known;
    const matching: DocumentName[] = [];
    for (const name of names) {
      const old = before.get(name.hash);
      const isSame =
        old?.generation === generation.number && old.name.fence === name.fence && old.name.position === name.position;
      const found = isSame ? old : await this.#reader.read(generation, name);
      if (found === generationReplaced) return undefined;
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
