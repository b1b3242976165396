// IndexedFiles: a tree with everything derived from it. It combines operations, index, queue,
// summaries and sessions.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../common.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { isUnwritable } from "../ports/disk-error.ts";
import { Findings } from "../part/findings.ts";
import { traceMethods } from "../telemetry/trace.ts";
import { FolderFiles, type FolderFilesOptions } from "./files.ts";
import { IndexSide } from "./index-side.ts";
import { checkCall } from "./model/arguments.ts";
import type { SearchHit, SearchOptions } from "./model/derived-index.ts";
import { findNameOf } from "../format/name.ts";
import type { FilesOptions, FileTree, GivenUpWork, RebuildOptions, TreeProblem, TreeStats } from "./model/file-tree.ts";
import type { Session } from "./model/session.ts";
import type { IndexWorkOptions } from "./queue/index-work.ts";
import type { OpenedTree } from "./tree/open-tree.ts";
import type { Tree } from "./tree/tree.ts";
import { tracedFileMethods } from "./traced-methods.ts";
import { givenUpOf, sessionFiles } from "./verify/tree-stats.ts";
import { verifyRecords } from "./verify/verify-records.ts";

export interface IndexedFilesOptions
  extends FilesOptions, Pick<FolderFilesOptions, "openFolder">, Pick<IndexWorkOptions, "retry" | "graceMs"> {}

export class IndexedFiles extends FolderFiles implements FileTree {
  static {
    traceMethods(this, tracedFileMethods);
  }

  readonly #side: IndexSide;
  readonly #tree: Tree;
  #leaving: Promise<void> | undefined;

  private constructor(opened: OpenedTree, options: IndexedFilesOptions) {
    const { timeoutMs, openFolder } = options;
    const side = new IndexSide(opened.tree, (): this => this, options);
    super(opened, { queue: side, timeoutMs, openFolder });
    this.#side = side;
    this.#tree = opened.tree;
  }

  /** Opens the index, and starts the work of this process unless `work` is false. */
  static async open(opened: OpenedTree, options: IndexedFilesOptions = {}): Promise<IndexedFiles> {
    const files = new this(opened, options);
    try {
      await files.#side.begin();
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

  async search(text: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    return await this.#side.search(text, options);
  }

  async settled(options: Cancel & { under?: string | undefined } = {}): Promise<void> {
    checkCall("settled", options, { signal: true, under: true });
    await this.#side.settled(options);
  }

  work(options: Cancel & { concurrency?: number | undefined } = {}): Running {
    checkCall("work", options, { signal: true, concurrency: true });
    return this.#side.work(options);
  }

  async rebuildIndex(options: RebuildOptions = {}): Promise<number> {
    checkCall("rebuildIndex", options, { signal: true, onProgress: true, forgetFunctions: true });
    return await this.#side.rebuildIndex(options);
  }

  async session(id: string, options: { user?: string | undefined } = {}): Promise<Session> {
    checkCall("session", options, { user: true });
    if (options.user !== undefined && typeof options.user !== "string")
      throw new TypeError("session: user must be a string.");
    return await this.#side.session(id, options);
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkCall("verify", options, { signal: true, repair: true, onProgress: true });
    const findings = new Findings();
    const { repair = false, signal, onProgress } = options;
    let [checked, records] = [0, 0];
    const onProblem = ({ path, what }: TreeProblem): void =>
      findings.note({ path }, what, "It is neither listed nor searched. Move it away, or leave it: it does no harm.");
    const compare = async (): Promise<void> => {
      for await (const { path, isIndexed, isForeign, problem } of this.#side.compare({ signal, repair, onProblem })) {
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
    await unlessNewer(findings, compare);
    await unlessNewer(findings, () => this.#noteGivenUp(findings, repair));
    await verifyRecords(this.#tree, { findings, repair, signal, onRecord });
    await unlessNewer(findings, () => this.#side.verifyDerived({ findings, repair, signal, onRecord }));
    const { failure } = this.#side;
    if (failure !== undefined)
      findings.damage(
        { path: "" },
        `Indexing of changes is interrupted: ${failure}`,
        "Fix the cause. The work resumes automatically, or when the tree is opened again.",
      );
    return { ok: !findings.hasDamage, checked, problems: findings.problems };
  }

  async #noteGivenUp(findings: Findings, repair: boolean): Promise<void> {
    const givenUp = await this.#side.givenUp().catch((error: unknown) => {
      // On a disk that cannot be written, the queue may not exist.
      if (!isUnwritable(error)) throw error;
      return [];
    });
    for (const each of givenUp) {
      const { path, task, reason, isSetAside } = each;
      if (repair) await this.#side.retry(each);
      const what = `The work on it (${task.task}) was given up. ${reason}`;
      const remedy = repair ? "It is tried again." : "Fix the cause, then run `verify` with `repair`.";
      if (isSetAside && !repair) findings.damage({ path }, what, remedy);
      else findings.note({ path }, what, remedy, { repaired: repair });
    }
  }

  async lastChange(): Promise<number> {
    this.#mustBeOpen();
    return await this.#tree.changes.last();
  }

  async givenUp(): Promise<readonly GivenUpWork[]> {
    this.#mustBeOpen();
    return givenUpOf(await this.#side.givenUp());
  }

  async sessions(): Promise<readonly string[]> {
    this.#mustBeOpen();
    return (await sessionFiles(this.#tree)).flatMap((file) => findNameOf(file) ?? []).sort();
  }

  async stats(options: Cancel = {}): Promise<TreeStats> {
    checkCall("stats", options, { signal: true });
    return await this.#side.stats(options);
  }

  #mustBeOpen(): void {
    if (this.#leaving !== undefined) throw holdfastError("CLOSED", `${this.root} was closed.`, {});
  }

  async #leave(): Promise<void> {
    try {
      await this.#side.close();
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
