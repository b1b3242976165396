// A tree with what is derived from it: operations, index, queue, summaries and sessions in one object.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../common.ts";
import { isUnwritable } from "../ports/disk-error.ts";
import { Findings } from "../part/findings.ts";
import { FolderFiles, type FolderFilesOptions } from "./files.ts";
import { IndexSide, type IndexSideParts } from "./index-side.ts";
import { checkCall } from "./model/arguments.ts";
import type { SearchHit, SearchOptions } from "./model/derived-index.ts";
import type { FilesOptions, FileTree, RebuildOptions } from "./model/file-tree.ts";
import type { Session } from "./model/session.ts";
import type { OpenedTree } from "./tree/open-tree.ts";

export interface IndexedFilesOptions
  extends
    FilesOptions,
    Pick<FolderFilesOptions, "openFolder" | "WorkClass">,
    Pick<IndexSideParts, "retry" | "graceMs"> {
  /** Whether this process does queued work from the start. Default true. */
  readonly work?: boolean | undefined;
}

export class IndexedFiles extends FolderFiles implements FileTree {
  readonly #side: IndexSide;
  #leaving: Promise<void> | undefined;

  private constructor(opened: OpenedTree, options: IndexedFilesOptions) {
    const { timeoutMs, openFolder, WorkClass, work: _work, retry, graceMs, ...given } = options;
    const operations = (): this => this;
    const side = new IndexSide({ place: opened.place, options: given, retry, graceMs, operations });
    super(opened, { queue: side, timeoutMs, openFolder, WorkClass });
    this.#side = side;
  }

  /** Opens the index, and begins the work of this process unless `work` is false. */
  static async open(opened: OpenedTree, options: IndexedFilesOptions = {}): Promise<IndexedFiles> {
    const files = new this(opened, options);
    try {
      await files.#side.begin();
    } catch (error) {
      // Where nothing can be written, files can be read.
      if (!isUnwritable(error)) {
        await files.close();
        throw error;
      }
      return files;
    }
    // How it failed is told by `settled`.
    if (options.work !== false)
      files.work().done.catch((error: unknown) => opened.place.ground.ports.host.warn(String(error)));
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
      throw new TypeError("session: user must be a text.");
    return await this.#side.session(id, options);
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkCall("verify", options, { signal: true, repair: true, onProgress: true });
    const findings = new Findings();
    const { repair = false, signal, onProgress } = options;
    let checked = 0;
    for await (const { path, isIndexed, isUnreadable } of this.#side.compare({ signal, repair })) {
      checked++;
      onProgress?.(checked, checked);
      if (isUnreadable)
        findings.note({ path }, "This user may not read it.", "Check owner and mode, or verify as another user.");
      if (isIndexed || isUnreadable) continue;
      findings.note(
        { path },
        "Its content is not the one that is indexed: another program has changed it, without a lock.",
        repair ? "It is indexed again." : "Run `verify` with `repair`, or rebuild the index.",
        { repaired: repair },
      );
    }
    const { failure } = this.#side;
    if (failure !== undefined)
      findings.damage(
        { path: "" },
        `The work on what has changed is interrupted: ${failure}`,
        "See to the cause. The work goes on by itself, or when the tree is opened again.",
      );
    return { ok: !findings.hasDamage, checked, problems: findings.problems };
  }

  async #leave(): Promise<void> {
    try {
      await this.#side.close();
    } finally {
      await super.close();
    }
  }

  /** Stops the work first: what it has in hand still writes to the tree. */
  override async close(): Promise<void> {
    await (this.#leaving ??= this.#leave());
  }
}
