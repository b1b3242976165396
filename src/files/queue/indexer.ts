// The work on a change: looks at what is at its paths now, and makes the documents agree with that.
//
// What the change was meant to do does not matter. A change whose commit never came, and one that another process has
// completed, are worked on alike; and a second time does no harm.
import type { Documents } from "../documents/documents.ts";
import type { Document } from "../documents/document.ts";
import type { Outcome } from "../documents/outcome.ts";
import type { DerivedIndex } from "../model/derived-index.ts";
import type { Change } from "../model/file-tree.ts";
import { findContent, findStamp } from "../search/found-file.ts";
import type { Stamps } from "../tree/stamps.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import type { TreeReader } from "../tree/tree-reader.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import type { UserFunctions } from "./user-functions.ts";

/** Files of one change that are worked on at the same time. */
const parallel = 8;
/** A file that changes so often while it is extracted is tried again later. */
const roundsMax = 5;

export interface IndexerParts {
  readonly place: TreePlace;
  readonly stamps: Stamps;
  readonly reader: TreeReader;
  readonly documents: Documents;
  readonly functions: UserFunctions;
  /** False: only the directories are found out. */
  readonly isIndexing: boolean;
  /** One index for all processes: it is told by the worker, and by no other process. */
  readonly sharedIndex?: DerivedIndex | undefined;
}

export interface IndexingOptions {
  readonly signal?: AbortSignal | undefined;
  /** Extract also what was extracted from the same content before. */
  readonly isAnew?: boolean | undefined;
  readonly onFile?: ((done: number) => void) | undefined;
}

export interface Indexed {
  readonly outcome: Pick<Outcome, "change" | "paths" | "documents">;
  /** Those whose entries may have changed. */
  readonly directories: ReadonlySet<string>;
}

export class Indexer {
  readonly #parts: IndexerParts;

  constructor(parts: IndexerParts) {
    this.#parts = parts;
  }

  /** Durable when it resolves, all but the outcome. Rejects when a function of the user fails or takes too long. */
  async index(change: Change, options: IndexingOptions = {}): Promise<Indexed> {
    const paths = pathsOf(change);
    const documents: string[] = [];
    const directories = new Set<string>();
    const failures: unknown[] = [];
    for (const path of paths) {
      directories.add(directoryOf(path));
      const found = await this.#parts.place.findLook(path);
      // One that is replaced is told below.
      if (found?.kind !== "file") await this.#parts.sharedIndex?.remove(path);
      if (found?.kind === "directory") directories.add(path);
      const files = found === undefined ? [] : found.kind === "directory" ? this.#below(path, directories) : [path];
      await inParallel(files, parallel, async (file) => {
        options.signal?.throwIfAborted();
        try {
          if (!this.#parts.isIndexing || !(await this.#indexFile(file, change, options))) return;
        } catch (error) {
          // One file that cannot be extracted keeps no other from being found.
          failures.push(error);
          return;
        }
        documents.push(file);
        options.onFile?.(documents.length);
      });
    }
    options.signal?.throwIfAborted();
    if (failures.length > 0) throw failures[0];
    for (const path of paths) await this.#parts.documents.removeUpTo(path, change.number - 1);
    return { outcome: { change: change.number, paths, documents }, directories };
  }

  async *#below(directory: string, directories: Set<string>): AsyncGenerator<string> {
    for await (const info of this.#parts.reader.list(directory, { deep: true }))
      if (info.directory) directories.add(info.path);
      else yield info.path;
  }

  /** False when there is no file any more. */
  async #indexFile(path: string, change: Change, options: IndexingOptions): Promise<boolean> {
    const { documents, place, stamps } = this.#parts;
    // An earlier attempt has made it.
    let document = await documents.find(path, change.number);
    for (let round = 1; document === undefined; round++) {
      const content = await findContent(place, stamps, path);
      if (content === undefined) return false;
      const made = await this.#documentOf(path, change, content.stamp, content.bytes, options);
      options.signal?.throwIfAborted();
      // Between extraction and publication the file may have changed: then it is extracted anew.
      if ((await findStamp(place, stamps, path)) === content.stamp) document = made;
      else if (round >= roundsMax) throw new Error(`${path} has changed ${roundsMax} times while it was indexed.`);
    }
    await documents.publish(document);
    await this.#share(path, document);
    return true;
  }

  async #documentOf(
    path: string,
    change: Change,
    stamp: string,
    bytes: Uint8Array | undefined,
    { signal, isAnew = false }: IndexingOptions,
  ): Promise<Document> {
    const { functions } = this.#parts;
    const known = isAnew ? undefined : await this.#findSame(path, change, stamp);
    if (known !== undefined) return { ...known, path, change: change.number };
    const text = bytes === undefined ? undefined : await functions.extract(path, bytes, signal);
    const vector = text === undefined ? undefined : await functions.embed(text, signal);
    return {
      path,
      change: change.number,
      stamp,
      ...(text === undefined ? {} : { text }),
      ...(vector === undefined ? {} : { vector }),
    };
  }

  /** What was extracted from the same content, here or where the file was before a move. */
  async #findSame(path: string, { from, path: to }: Change, stamp: string): Promise<Document | undefined> {
    const { documents, functions } = this.#parts;
    const before = from === undefined ? [] : [from + path.slice(to.length)];
    for (const each of [path, ...before]) {
      const found = await documents.findNewest(each);
      const isWhole = found?.text === undefined || found.vector !== undefined || !functions.has("embed");
      if (found?.stamp === stamp && isWhole) return found;
    }
    return undefined;
  }

  /**
   * Two workers may have documents of one path at the same time, and the older one may come last: so the newest one is
   * told again, until it is the one that was told.
   */
  async #share(path: string, document: Document): Promise<void> {
    const { documents, sharedIndex } = this.#parts;
    if (sharedIndex === undefined) return;
    for (let told: Document | undefined = document; told !== undefined;) {
      const { text, vector, stamp, change }: Document = told;
      if (text === undefined) await sharedIndex.remove(path);
      else await sharedIndex.upsert(path, text, { vector, stamp });
      const newest: Document | undefined = await documents.findNewest(path);
      told = newest === undefined || newest.change <= change ? undefined : newest;
    }
  }
}

function pathsOf({ path, from }: Change): string[] {
  // Where it was first: a move into its own neighbourhood removes before it adds.
  return from === undefined ? [path] : [from, path];
}

export function directoryOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 0));
}
