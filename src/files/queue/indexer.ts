// Indexer: processes a change. It reads what exists at the change's paths now, and makes the
// documents match.
//
// The intent of the change does not matter. A change that was never committed is processed like one
// that another process completed, and processing a change twice does no harm.
import type { Derived } from "../documents/derived.ts";
import type { Document } from "../documents/document.ts";
import type { Outcome } from "../documents/outcome.ts";
import type { DerivedIndex } from "../model/derived-index.ts";
import type { Change } from "../model/file-tree.ts";
import { findContent, findStamp } from "../tree/found-file.ts";
import type { Clock } from "../../ports/clock.ts";
import { isHoldfastError } from "../../errors.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import type { UserFunctions } from "./user-functions.ts";

/** Files of one change that are processed in parallel. */
const parallel = 8;
/** A file that changes this often while it is extracted is retried later. */
const roundsMax = 5;
/** How long to wait for a file when nothing else of its change is left to do. */
const slowMs = 2_000;

export interface IndexingOptions {
  readonly signal?: AbortSignal | undefined;
  /** Extracts even if the same content was extracted before. */
  readonly isAnew?: boolean | undefined;
  readonly onFile?: ((done: number) => void) | undefined;
  /**
   * For a change whose workers died. If it has many files, files without a document are not
   * extracted here: each gets a separate change.
   */
  readonly isEachApart?: boolean | undefined;
  /** The caller holds no lock. Throws LockRequired for an added directory, which is locked until it is indexed. */
  readonly isUnlocked?: boolean | undefined;
}

export class LockRequired extends Error {}

export interface IndexedChange {
  readonly outcome: Pick<Outcome, "change" | "paths" | "documents">;
  /** Directories whose entries may have changed. */
  readonly directories: ReadonlySet<string>;
  /** Files below the change that get a separate change: they failed, or take longer than all others. */
  readonly apart: readonly string[];
}

interface FoundFiles {
  readonly documents: string[];
  readonly apart: string[];
}

export class Indexer {
  readonly #derived: Derived;
  readonly #functions: UserFunctions;
  readonly #sharedIndex: DerivedIndex | undefined;

  /** `sharedIndex`: one index for all processes, which only the worker updates. */
  constructor(derived: Derived, functions: UserFunctions, sharedIndex?: DerivedIndex) {
    this.#derived = derived;
    this.#functions = functions;
    this.#sharedIndex = sharedIndex;
  }

  /**
   * Indexes a change. When it resolves, everything but the outcome is durable. Rejects if a user's
   * function fails or times out for the only file of a change. If the function fails for one of
   * many files, only that file is set apart.
   */
  async index(change: Change, options: IndexingOptions = {}): Promise<IndexedChange> {
    /** The paths whose current state this work has determined. */
    const paths: string[] = [];
    const directories = new Set<string>();
    const found: FoundFiles = { documents: [], apart: [] };
    for (const path of pathsOf(change)) {
      for (const directory of directoriesAbove(path)) directories.add(directory);
      const look = await this.#derived.tree.findEntry(path);
      // Nothing exists at the path. A later change removed the file and is processed too, or
      // another program removed it, perhaps only for a moment. The document stays, and no search
      // returns it meanwhile.
      if (look === undefined && path === change.path && change.kind !== "removed") continue;
      paths.push(path);
      // A file that was replaced is handled below.
      if (look?.kind === "directory" && options.isUnlocked === true && isAddable(change, path))
        throw new LockRequired(path);
      if (look?.kind !== "file") await this.#sharedIndex?.remove(path);
      if (look === undefined) continue;
      if (look.kind === "directory") directories.add(path);
      if (look.kind === "directory") await this.#indexBelow(path, change, options, directories, found);
      else if (this.#functions.has("index") && (await this.#indexFile(path, change, options))) {
        found.documents.push(path);
        options.onFile?.(found.documents.length);
      }
    }
    options.signal?.throwIfAborted();
    for (const path of paths) await this.#derived.documents.removeUpTo(path, change.number - 1);
    return { outcome: { change: change.number, paths, documents: found.documents }, directories, apart: found.apart };
  }

  async #indexBelow(
    directory: string,
    change: Change,
    options: IndexingOptions,
    directories: Set<string>,
    { documents, apart }: FoundFiles,
  ): Promise<void> {
    const { clock } = this.#derived.tree.ground.ports;
    const isIndexing = this.#functions.has("index");
    const { signal, onFile, isAnew = false, isEachApart = false } = options;
    const slow = new SlowFiles(clock);
    const files = this.#below(directory, directories, () => {
      // A rebuild waits for slow files, because its caller gets the number of indexed files.
      if (!isAnew) slow.noteLast();
    });
    await inParallel(files, parallel, async (file) => {
      signal?.throwIfAborted();
      if (!isIndexing) return;
      if (isEachApart && (await this.#derived.documents.find(file, change.number)) === undefined)
        return void apart.push(file);
      await slow.run(file, async (ending) => {
        const either = signal === undefined ? ending : AbortSignal.any([signal, ending]);
        try {
          if (!(await this.#indexFile(file, change, { ...options, signal: either }))) return;
          documents.push(file);
          onFile?.(documents.length);
        } catch (error) {
          signal?.throwIfAborted();
          if (isOfWork(error)) throw error;
          apart.push(file);
        }
      });
    });
  }

  async *#below(directory: string, directories: Set<string>, onLast: () => void): AsyncGenerator<string> {
    for await (const info of this.#derived.reader.list(directory, { deep: true }))
      if (info.directory) directories.add(info.path);
      else yield info.path;
    onLast();
  }

  /** Indexes one file. Returns false if the file no longer exists. */
  async #indexFile(path: string, change: Change, options: IndexingOptions): Promise<boolean> {
    const { documents, tree, stamps } = this.#derived;
    // An earlier attempt may have made the document.
    let document = await documents.find(path, change.number);
    for (let round = 1; document === undefined; round++) {
      const content = await findContent(tree, stamps, path);
      if (content === undefined) return false;
      const made = await this.#documentOf(path, change, content.stamp, content.bytes, options);
      options.signal?.throwIfAborted();
      // If the file has changed between extraction and publication, it is extracted again.
      if ((await findStamp(tree, stamps, path)) === content.stamp) document = made;
      else if (round >= roundsMax) throw new Error(`${path} changed ${roundsMax} times while it was being indexed.`);
    }
    // A document of another log would count until the numbers of this log are higher.
    await tree.changes.mustBeSame();
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
    const functions = this.#functions;
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

  /**
   * Returns the document of the same content, made for this path or for the file's path before a
   * move.
   */
  async #findSame(path: string, { from, path: to }: Change, stamp: string): Promise<Document | undefined> {
    const { documents } = this.#derived;
    const before = from === undefined ? [] : [from + path.slice(to.length)];
    for (const each of [path, ...before]) {
      const found = await documents.findNewest(each);
      const isWhole = found?.text === undefined || found.vector !== undefined || !this.#functions.has("embed");
      if (found?.stamp === stamp && isWhole) return found;
    }
    return undefined;
  }

  /**
   * Sends a document to the shared index. Two workers may have documents of one path at the same
   * time, and the older one may arrive last. So the newest one is sent again until it was sent
   * last.
   */
  async #share(path: string, document: Document): Promise<void> {
    const { documents } = this.#derived;
    const sharedIndex = this.#sharedIndex;
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

/** True if the error concerns the work on all files, not this one. */
export function isOfWork(error: unknown): boolean {
  return isHoldfastError(error, "DISK_FULL", "CLOSED", "LOCK_LOST", "CLAIM_LOST", "OUTCOME_UNKNOWN");
}

function isAddable({ kind, path }: Change, looked: string): boolean {
  return kind === "written" && path !== "" && looked === path;
}

function pathsOf({ path, from }: Change): string[] {
  // The old path first, so that a move to a nearby path removes before it adds.
  return from === undefined ? [path] : [from, path];
}

/** Returns all directories up to the root, which is "". A write may have created any of them. */
function directoriesAbove(path: string): string[] {
  if (path === "") return [""];
  const directory = path.slice(0, Math.max(path.lastIndexOf("/"), 0));
  return directory === "" ? [""] : [directory, ...directoriesAbove(directory)];
}

/** The abort reason for a slow file: it gets a separate change. */
class IndexedSeparately extends Error {
  constructor(path: string) {
    super(`${path} takes longer than the other files of its change: it is indexed on its own.`);
  }
}

/**
 * The files of one change in progress. When only slow ones are left, their signals abort, so that
 * the others need not wait for them.
 */
class SlowFiles {
  readonly #clock: Clock;
  readonly #running = new Map<string, { readonly sinceMs: number; readonly controller: AbortController }>();
  #isLast = false;
  #stopAlarm: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs the work on a file. Its signal aborts with IndexedSeparately when only slow files are left. */
  async run(path: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const controller = new AbortController();
    this.#running.set(path, { sinceMs: this.#clock.monotonicMs(), controller });
    try {
      await work(controller.signal);
    } finally {
      this.#running.delete(path);
      this.#watch();
    }
  }

  /** Call it when all files have been started. */
  noteLast(): void {
    this.#isLast = true;
    this.#watch();
  }

  #watch(): void {
    this.#stopAlarm?.();
    this.#stopAlarm = undefined;
    if (!this.#isLast || this.#running.size === 0) return;
    const youngestMs = Math.max(...[...this.#running.values()].map(({ sinceMs }) => sinceMs));
    const leftMs = Math.max(0, youngestMs + slowMs - this.#clock.monotonicMs());
    this.#stopAlarm = this.#clock.alarm(leftMs, () => {
      for (const [path, { controller }] of this.#running) controller.abort(new IndexedSeparately(path));
    });
  }
}
