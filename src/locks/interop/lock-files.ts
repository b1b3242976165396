// The lock files of all grants of this process: grants may share one, and a grant may have several.
import type { LockMode } from "../../common.ts";
import type { Claim } from "../table/claim.ts";
import type { FoundLock } from "./foreign-locks.ts";
import type { Grant } from "../path/grant.ts";
import { InteropLockFile, removeOwn, type InteropContext } from "./lock-file.ts";
import { directoryLockOf, lockFilesOf, sidecarOf } from "./names.ts";
import type { InteropTree } from "./tree.ts";

export class InteropLockFiles {
  readonly #tree: InteropTree;
  readonly #context: InteropContext;
  readonly #files = new Map<string, InteropLockFile>();
  /** What is shown of each grant, in the caller's spelling. */
  readonly #shown = new Map<Grant, readonly Claim[]>();
  /** Files change one at a time: a grant that ends and one that begins may share one. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(tree: InteropTree, context: InteropContext) {
    this.#tree = tree;
    this.#context = context;
  }

  /** The grants that are shown, or about to be. */
  get grants(): readonly Grant[] {
    return [...this.#shown.keys()];
  }

  /** Shows the grant from now on until it ends. Returns what is shown of it so far. */
  begin(grant: Grant): readonly Claim[] {
    const shown = this.#shown.get(grant) ?? [];
    this.#shown.set(grant, shown);
    return shown;
  }

  /**
   * Makes the grant's lock files those of `claims` (default: the ones shown), and refreshes them.
   * Does nothing once the grant has ended. Returns a live foreign lock that is in the place of one.
   */
  async set(grant: Grant, claims?: readonly Claim[]): Promise<FoundLock | undefined> {
    return await this.#inTurn(async () => {
      const shown = this.#shown.get(grant);
      if (shown === undefined) return undefined;
      this.#shown.set(grant, claims ?? shown);
      const wanted = new Map<string, LockMode>();
      for (const { path, mode } of await this.#tree.targetsOf(claims ?? shown)) {
        const file = (await this.#tree.isDirectory(path)) ? directoryLockOf(path) : sidecarOf(path);
        if (wanted.get(file) !== "tree") wanted.set(file, mode);
      }
      // New files first: when a missing path has become a directory, its lock file moves into it,
      // and one must exist at all times.
      for (const [path, mode] of wanted) {
        const taken = await this.#fileAt(path).putFor(grant, mode);
        if (taken !== undefined) return taken;
      }
      for (const file of this.#filesOf(grant))
        if (!wanted.has(file.path)) await this.#drop(grant, file, () => file.remove());
      return undefined;
    });
  }

  /**
   * Removes the files that are still ours. A release must not fail for one that cannot be removed:
   * it is stale after a lease.
   */
  async remove(grant: Grant): Promise<void> {
    await this.#end(grant, async (path) => await (this.#files.get(path)?.remove() ?? removeOwn(this.#context, path)));
  }

  /**
   * Leaves the files to the process that receives the grant, which replaces them. They are no
   * longer refreshed.
   */
  async leave(grant: Grant): Promise<void> {
    await this.#end(grant, async (path) => await this.#files.get(path)?.leave());
  }

  /** Resolves when pending changes are done. */
  async settle(): Promise<void> {
    await this.#turn;
  }

  async #end(grant: Grant, end: (path: string) => Promise<void>): Promise<void> {
    await this.#inTurn(async () => {
      const claims = this.#shown.get(grant);
      if (claims === undefined) return;
      this.#shown.delete(grant);
      const paths = new Set(this.#filesOf(grant).map(({ path }) => path));
      // Also where a file may be after its directory was moved. If that cannot be found out, it is
      // stale after a lease.
      const targets = await this.#tree.targetsOf(claims).catch(() => []);
      for (const path of targets.flatMap((target) => lockFilesOf(target.path))) paths.add(path);
      for (const path of paths) {
        const file = this.#files.get(path);
        await (file === undefined ? end(path) : this.#drop(grant, file, () => end(path))).catch(() => undefined);
      }
    });
  }

  /** The last grant of a file ends it. For the others the file is rewritten. */
  async #drop(grant: Grant, file: InteropLockFile, end: () => Promise<void>): Promise<void> {
    file.users.delete(grant);
    if (file.users.size > 0) await file.put();
    else await end().finally(() => this.#files.delete(file.path));
  }

  #fileAt(path: string): InteropLockFile {
    const file = this.#files.get(path) ?? new InteropLockFile(this.#context, path);
    this.#files.set(path, file);
    return file;
  }

  #filesOf(grant: Grant): InteropLockFile[] {
    return [...this.#files.values()].filter(({ users }) => users.has(grant));
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    // The caller gets the error; the next change does not depend on it.
    this.#turn = done.catch(() => undefined);
    return await done;
  }
}
