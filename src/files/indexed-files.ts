// IndexedFiles: a tree with everything derived from it. It combines operations, index, queue,
// summaries and sessions.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../common.ts";
import { isHoldfastError } from "../errors.ts";
import { isUnwritable } from "../ports/disk-error.ts";
import { Findings } from "../part/findings.ts";
import { Loop } from "../part/loop.ts";
import { traceMethods } from "../telemetry/trace.ts";
import { FolderFiles, type FolderFilesOptions } from "./files.ts";
import { IndexSide, type IndexSideOptions } from "./index-side.ts";
import { checkCall } from "./model/arguments.ts";
import type { SearchHit, SearchOptions } from "./model/derived-index.ts";
import { findNameOf } from "../format/name.ts";
import type { FilesOptions, FileTree, GivenUpWork, RebuildOptions, TreeProblem, TreeStats } from "./model/file-tree.ts";
import type { Session } from "./model/session.ts";
import { findGivenUp } from "./queue/given-up.ts";
import { waitUntilSettled } from "./queue/settled.ts";
import { Searcher } from "./search/searcher.ts";
import { checkSearch } from "./search/verified-hits.ts";
import { openSession } from "./sessions/session-archives.ts";
import { TreeSession } from "./sessions/tree-session.ts";
import type { OpenedTree } from "./tree/open-tree.ts";
import { tracedFileMethods } from "./traced-methods.ts";
import { compare } from "./verify/compare.ts";
import { findTreeStats, givenUpOf, sessionFiles } from "./verify/tree-stats.ts";
import { verifyDerived } from "./verify/verify-derived.ts";
import { verifyRecords } from "./verify/verify-records.ts";

const concurrencyDefault = 4;

export interface IndexedFilesOptions
  extends FilesOptions, Pick<FolderFilesOptions, "openFolder">, Pick<IndexSideOptions, "retry" | "graceMs"> {}

export class IndexedFiles extends FolderFiles implements FileTree {
  static {
    traceMethods(this, tracedFileMethods);
  }

  readonly #side: IndexSide;
  readonly #searcher: Searcher;
  #leaving: Promise<void> | undefined;

  private constructor(opened: OpenedTree, options: IndexedFilesOptions) {
    const { timeoutMs, openFolder } = options;
    const side = new IndexSide(opened.tree, (): this => this, options);
    super(opened, { queue: side.isOn ? side : undefined, timeoutMs, openFolder });
    this.#side = side;
    this.#searcher = new Searcher(side);
  }

  /** Opens the index, and starts the work of this process unless `work` is false. */
  static async open(opened: OpenedTree, options: IndexedFilesOptions = {}): Promise<IndexedFiles> {
    const files = new this(opened, options);
    try {
      await files.#begin();
    } catch (error) {
      // On a disk that cannot be written, files can still be read. An index of a newer release
      // blocks only the calls that need it.
      if (!isUnwritable(error) && !isHoldfastError(error, "NEWER_FORMAT")) {
        await files.close();
        throw error;
      }
      if (isHoldfastError(error, "NEWER_FORMAT"))
        opened.tree.ground.ports.host.warn(`Search is not available. ${error.message}`);
      return files;
    }
    // `settled` reports the failure.
    if (options.work !== false)
      files.work().done.catch((error: unknown) => opened.tree.ground.ports.host.warn(String(error)));
    return files;
  }

  /** Called before the first operation: an index that starts with an empty tree has nothing to do. */
  async #begin(): Promise<void> {
    const { derived, functions, work } = this.#side;
    if (!functions.has("index")) return;
    // Even in a process that does not work: it tells processes without an index to leave the
    // tickets alone.
    await work.needed.add(["index"]);
    // Before the first change of this process: an index of another log may already use its number.
    await derived.dropIndexOfAnotherLog();
    await derived.decideIndex();
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    checkSearch(text, options);
    this.#mustBeOpen();
    if (!this.#side.functions.has("index"))
      throw new TypeError("search: this tree was opened without an index. Open it without `index: false`.");
    return await this.#searcher.search(text, options);
  }

  async settled(options: Cancel & { under?: string | undefined } = {}): Promise<void> {
    checkCall("settled", options, { signal: true, under: true });
    this.#mustBeOpen();
    this.#side.work.lasting.goOn();
    const { path } = await this.#side.derived.tree.locate(options.under ?? "");
    await waitUntilSettled(this.#side, { under: path, signal: options.signal });
  }

  work(options: Cancel & { concurrency?: number | undefined } = {}): Running {
    checkCall("work", options, { signal: true, concurrency: true });
    const { concurrency = concurrencyDefault, signal } = options;
    if (!(Number.isSafeInteger(concurrency) && concurrency >= 1))
      throw new RangeError(`work: concurrency must be a whole number from 1, not ${concurrency}.`);
    const { loops, work } = this.#side;
    return new Loop(loops, (signals) => work.run(concurrency, signals), { signal });
  }

  /** Extracts everything again. If it is interrupted, finished files stay finished. */
  async rebuildIndex(options: RebuildOptions = {}): Promise<number> {
    checkCall("rebuildIndex", options, { signal: true, onProgress: true, forgetFunctions: true });
    const { signal, onProgress, forgetFunctions = false } = options;
    this.#mustBeOpen();
    signal?.throwIfAborted();
    const { derived, functions } = this.#side;
    const { needed, log, worker, keeper } = this.#side.work;
    if (forgetFunctions) await needed.forgetOthersThan(functions.names);
    await needed.mustBeOwn(functions.names);
    let total = 0;
    for await (const info of derived.reader.list("", { deep: true, signal })) if (!info.directory) total++;
    const change = await derived.tree.changes.append({ kind: "written", path: "" });
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

  async session(id: string, options: { user?: string | undefined } = {}): Promise<Session> {
    checkCall("session", options, { user: true });
    const { user } = options;
    if (user !== undefined && typeof user !== "string") throw new TypeError("session: user must be a string.");
    this.#mustBeOpen();
    return new TreeSession(await openSession(this.#side.derived.tree, id), user, this.#side, () => this.#mustBeOpen());
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkCall("verify", options, { signal: true, repair: true, onProgress: true });
    const findings = new Findings();
    const { repair = false, signal, onProgress } = options;
    let [checked, records] = [0, 0];
    const onProblem = ({ path, what }: TreeProblem): void =>
      findings.note({ path }, what, "It is neither listed nor searched. Move it away, or leave it: it does no harm.");
    const side = this.#side;
    const compareAll = async (): Promise<void> => {
      this.#mustBeOpen();
      await side.follower.refresh();
      for await (const { path, isIndexed, isForeign, problem } of compare(side, { signal, repair, onProblem })) {
        this.#mustBeOpen();
        checked++;
        onProgress?.(checked, checked);
        if (problem !== undefined)
          findings.note({ path }, problem, "Check owner, mode and disk, or verify as another user.");
        if (isIndexed || problem !== undefined) continue;
        findings.note(
          { path },
          isForeign === true
            ? "Its content is not the indexed one: another program changed it without a lock."
            : "Its content is not indexed.",
          repair ? "It is indexed again." : "Run `verify` with `repair`, or rebuild the index.",
          { repaired: repair },
        );
      }
    };
    const onRecord = (): void => onProgress?.(checked + ++records, checked + records);
    await unlessNewer(findings, compareAll);
    await unlessNewer(findings, () => this.#noteGivenUp(findings, repair));
    await verifyRecords(side.derived.tree, { findings, repair, signal, onRecord });
    await unlessNewer(findings, () => verifyDerived(side, { findings, repair, signal, onRecord }));
    const { failure } = side.work.lasting;
    if (failure !== undefined)
      findings.damage(
        { path: "" },
        `Indexing of changes is interrupted: ${String(failure.error)}`,
        "Fix the cause. The work resumes automatically, or when the tree is opened again.",
      );
    return { ok: !findings.hasDamage, checked, problems: findings.problems };
  }

  async #noteGivenUp(findings: Findings, repair: boolean): Promise<void> {
    const givenUp = await findGivenUp(this.#side).catch((error: unknown) => {
      // On a disk that cannot be written, the queue may not exist.
      if (!isUnwritable(error)) throw error;
      return [];
    });
    for (const { id, path, task, reason, isSetAside } of givenUp) {
      if (repair) await this.#side.queue.replay(id);
      const what = `The work on it (${task.task}) was given up. ${reason}`;
      const remedy = repair ? "It is tried again." : "Fix the cause, then run `verify` with `repair`.";
      if (isSetAside && !repair) findings.damage({ path }, what, remedy);
      else findings.note({ path }, what, remedy, { repaired: repair });
    }
  }

  async lastChange(): Promise<number> {
    this.#mustBeOpen();
    return await this.#side.derived.tree.changes.last();
  }

  async givenUp(): Promise<readonly GivenUpWork[]> {
    this.#mustBeOpen();
    return givenUpOf(await findGivenUp(this.#side));
  }

  async sessions(): Promise<readonly string[]> {
    this.#mustBeOpen();
    return (await sessionFiles(this.#side.derived.tree)).flatMap((file) => findNameOf(file) ?? []).sort();
  }

  async stats(options: Cancel = {}): Promise<TreeStats> {
    checkCall("stats", options, { signal: true });
    this.#mustBeOpen();
    return await findTreeStats(this.#side, options);
  }

  #mustBeOpen(): void {
    this.#side.loops.mustBeOpen();
  }

  async #leave(): Promise<void> {
    try {
      await this.#side.work.close();
    } finally {
      await super.close();
    }
  }

  /** Stops the work first: a task in progress still writes to the tree. */
  override async close(): Promise<void> {
    await (this.#leaving ??= this.#leave());
  }
}

/**
 * Runs `check`. If it meets the format of a newer release, reports that and lets the rest be
 * verified.
 */
async function unlessNewer(findings: Findings, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!isHoldfastError(error, "NEWER_FORMAT")) throw error;
    findings.damage({ path: error.path }, error.message, "Upgrade Holdfast here.");
  }
}
