// IndexSide: the derived side of a tree, as its operations and its users call it. `IndexWork` does
// the work; `Derived` holds the results.
import type { Cancel, Running } from "../common.ts";
import type { PathHold } from "../locks/path/path-hold.ts";
import { Loop } from "../part/loop.ts";
import { Derived } from "./documents/derived.ts";
import type { DerivedIndex, SearchHit, SearchOptions } from "./model/derived-index.ts";
import type { Change, FileOperations, RebuildOptions, TreeStats } from "./model/file-tree.ts";
import type { IndexQueue } from "./model/index-queue.ts";
import type { Session } from "./model/session.ts";
import { findGivenUp, type NamedGivenUp } from "./queue/given-up.ts";
import { IndexWork, type IndexWorkOptions } from "./queue/index-work.ts";
import { waitUntilSettled } from "./queue/settled.ts";
import { ForeignChanges } from "./search/foreign-changes.ts";
import { Follower } from "./search/follower.ts";
import { checkSearch } from "./search/verified-hits.ts";
import { Searcher } from "./search/searcher.ts";
import { TreeSession } from "./sessions/tree-session.ts";
import type { Tree } from "./tree/tree.ts";
import { compare, type ComparedFile, type CompareOptions } from "./verify/compare.ts";
import { findTreeStats } from "./verify/tree-stats.ts";
import { verifyDerived } from "./verify/verify-derived.ts";
import type { RecordsOptions } from "./verify/verify-records.ts";

const concurrencyDefault = 4;

export class IndexSide implements IndexQueue {
  readonly isOn: boolean;
  readonly #isIndexing: boolean;
  readonly #givenIndex: DerivedIndex | undefined;
  readonly #derived: Derived;
  readonly #follower: Follower;
  readonly #foreign: ForeignChanges;
  readonly #searcher: Searcher;
  readonly #work: IndexWork;
  #closing: Promise<void> | undefined;

  /**
   * `operations` returns the tree's own operations: summaries and memories are written through
   * them.
   */
  constructor(tree: Tree, operations: () => Pick<FileOperations, "write">, options: IndexWorkOptions) {
    this.#givenIndex = options.index === false ? undefined : options.index;
    this.#derived = new Derived(tree);
    this.#follower = new Follower(this.#derived, this.#givenIndex);
    this.#foreign = new ForeignChanges(this.#derived, this.#follower);
    const work = (this.#work = new IndexWork(this.#derived, this.#follower, operations, options));
    this.#searcher = new Searcher(work, this.#follower);
    this.#isIndexing = work.functions.has("index");
    this.isOn = work.isOn;
  }

  /** Call it before the first operation: an index that starts with an empty tree has nothing to do. */
  async begin(): Promise<void> {
    if (!this.#isIndexing) return;
    // Even in a process that does not work: it tells processes without an index to leave the
    // tickets alone.
    await this.#work.needed.add(["index"]);
    // Before the first change of this process: an index of another log may already use its number.
    await this.#derived.dropIndexOfAnotherLog();
    await this.#derived.decideIndex();
  }

  async hide({ from, path, number }: Change): Promise<void> {
    const gone = from ?? path;
    // A shared index must be updated even by a process that has never searched.
    if (this.#givenIndex?.isShared === true) await this.#givenIndex.remove(gone);
    else await this.#follower.hide(gone, number);
  }

  /** The log worker reads the change from the log, so only the lock of an `add` needs a ticket. */
  async enqueue({ number }: Change, { token }: { readonly token?: string | undefined } = {}): Promise<string> {
    if (!this.isOn) return "";
    if (token !== undefined) return await this.#work.queue.publishChange(number, { token });
    this.#work.log.wake();
    return "";
  }

  async indexWithin(change: Change, hold: PathHold): Promise<string> {
    try {
      await this.#work.worker.index(change, { signal: hold.signal });
      return "";
    } catch {
      // The files are added, so the call must not fail: a worker retries the indexing, and gives up
      // after a few attempts.
      return await this.#work.queue.publishChange(change.number);
    }
  }

  async isIndexed(path: string, stamp: string): Promise<boolean> {
    if (!this.#isIndexing) return false;
    if (this.#follower.engine?.find(path)?.stamp === stamp) return true;
    const newest = await this.#derived.documents.findNewest(path);
    return newest?.stamp === stamp && newest.text !== undefined;
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    checkSearch(text, options);
    this.#mustBeOpen();
    if (!this.#isIndexing)
      throw new TypeError("search: this tree was opened without an index. Open it without `index: false`.");
    return await this.#searcher.search(text, options);
  }

  async settled({ under, signal }: Cancel & { under?: string | undefined } = {}): Promise<void> {
    this.#mustBeOpen();
    this.#work.lasting.goOn();
    const { path } = await this.#derived.tree.locate(under ?? "");
    await waitUntilSettled(this.#work, this.#follower, this.#foreign, { under: path, signal });
  }

  work({ concurrency = concurrencyDefault, signal }: Cancel & { concurrency?: number | undefined } = {}): Running {
    if (!(Number.isSafeInteger(concurrency) && concurrency >= 1))
      throw new RangeError(`work: concurrency must be a whole number from 1, not ${concurrency}.`);
    return new Loop(this.#work.loops, (signals) => this.#work.run(concurrency, signals), { signal });
  }

  /** Extracts everything again. If it is interrupted, finished files stay finished. */
  async rebuildIndex({ signal, onProgress, forgetFunctions = false }: RebuildOptions = {}): Promise<number> {
    this.#mustBeOpen();
    signal?.throwIfAborted();
    const { needed, functions, log, worker, keeper } = this.#work;
    if (forgetFunctions) await needed.forgetOthersThan(functions.names);
    await needed.mustBeOwn(functions.names);
    let total = 0;
    for await (const info of this.#derived.reader.list("", { deep: true, signal })) if (!info.directory) total++;
    const change = await this.#derived.tree.changes.append({ kind: "written", path: "" });
    // This call does the work: the workers of this process leave the change alone.
    log.leave(change.number);
    const onFile = (done: number): void => onProgress?.(done, Math.max(done, total));
    try {
      const count = await worker.index(change, { signal, isAnew: true, onFile });
      await keeper.keep(1);
      return count;
    } catch (error) {
      await worker.giveUp(change.number, "It was interrupted, or it failed.");
      throw error;
    }
  }

  async session(id: string, { user }: { user?: string | undefined } = {}): Promise<Session> {
    this.#mustBeOpen();
    return new TreeSession(await this.#work.archives.open(id), user, this.#work, () => this.#mustBeOpen());
  }

  /** The failure of this process's work while the work is interrupted. */
  get failure(): string | undefined {
    const { failure } = this.#work.lasting;
    return failure === undefined ? undefined : String(failure.error);
  }

  /**
   * Yields every file, and whether its content is the indexed one. With `repair`, announces those
   * that differ.
   */
  async *compare(options: CompareOptions): AsyncGenerator<ComparedFile> {
    this.#mustBeOpen();
    await this.#follower.refresh();
    for await (const each of compare(this.#work, this.#foreign, options)) {
      this.#mustBeOpen();
      yield each;
    }
  }

  /**
   * Verifies all derived data and queued tasks, and notes uncompleted changes in the lock table.
   */
  async verifyDerived(options: RecordsOptions): Promise<void> {
    await verifyDerived(this.#work, options);
  }

  /**
   * Returns tasks that no process attempts any more, because they failed too often or killed their
   * workers.
   */
  async givenUp(): Promise<NamedGivenUp[]> {
    return await findGivenUp(this.#work, this.#work.sidecars, this.#foreign);
  }

  /** Retries one of these tasks. */
  async retry({ id }: NamedGivenUp): Promise<void> {
    await this.#work.queue.replay(id);
  }

  async stats(options: Cancel = {}): Promise<TreeStats> {
    this.#mustBeOpen();
    const findBacklog = async (): Promise<number> => {
      if (!this.#isIndexing) return 0;
      await this.#follower.refresh();
      return this.#follower.pendingUpTo(await this.#derived.tree.changes.last()).length;
    };
    return await findTreeStats(this.#derived, { findBacklog, findGivenUp: () => this.givenUp() }, options);
  }

  /** Stops the work of this process, and its background tasks. */
  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await this.#work.close();
    await this.#follower.close();
  }

  #mustBeOpen(): void {
    this.#work.loops.mustBeOpen();
  }
}
