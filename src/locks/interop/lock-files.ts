// The lock files of all grants of this process. Several grants may share one file, and one grant may have several.
import type { LockMode } from "../../common.ts";
import type { Claim } from "../table/conflict.ts";
import type { FoundLock } from "./foreign-locks.ts";
import type { Grant } from "../path/grant.ts";
import { InteropLockFile, removeOwn, type InteropContext } from "./lock-file.ts";
import { directoryLockOf, lockFilesOf, sidecarOf } from "./names.ts";
import type { InteropTree } from "./tree.ts";

export class InteropLockFiles {
  readonly #tree: InteropTree;
  readonly #context: InteropContext;
  readonly #files = new Map<string, InteropLockFile>();
  /** The claims that are visible for each grant, in the caller's spelling. */
  readonly #shown = new Map<Grant, readonly Claim[]>();
  /** Changes of files are serialized: a grant that ends and one that begins may share a file. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(tree: InteropTree, context: InteropContext) {
    this.#tree = tree;
    this.#context = context;
  }

  /** The grants that are visible or about to be. */
  get grants(): readonly Grant[] {
    return [...this.#shown.keys()];
  }

  /** Registers the grant, which stays visible until it ends. Returns its claims that are visible so far. */
  begin(grant: Grant): readonly Claim[] {
    const shown = this.#shown.get(grant) ?? [];
    this.#shown.set(grant, shown);
    return shown;
  }

  /**
   * Creates and refreshes the grant's lock files for `claims` (default: the visible ones), and drops others. Does
   * nothing once the grant has ended. Returns a live foreign lock that has one of the names.
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
      // Write new files first: if a missing path has become a directory, its lock file moves into it, and one of the
      // two must exist at any time.
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
   * Removes the files that are still ours. A failed removal must not fail a release: the file becomes stale after a
   * lease.
   */
  async remove(grant: Grant): Promise<void> {
    await this.#end(grant, async (path) => await (this.#files.get(path)?.remove() ?? removeOwn(this.#context, path)));
  }

  /**
   * Leaves the files to the process that receives the grant, which replaces them. This process no longer refreshes
   * them.
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
      // Also consider where a file may be after its directory was moved. If that is unknown, the file becomes stale
      // after a lease.
      const targets = await this.#tree.targetsOf(claims).catch(() => []);
      for (const path of targets.flatMap((target) => lockFilesOf(target.path))) paths.add(path);
      for (const path of paths) {
        const file = this.#files.get(path);
        await (file === undefined ? end(path) : this.#drop(grant, file, () => end(path))).catch(() => undefined);
      }
    });
  }

  /** Calls `end` if this is the last grant of the file, otherwise rewrites the file for the others. */
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
    // The caller gets the error. The next change proceeds regardless.
    this.#turn = done.catch(() => undefined);
    return await done;
  }
}
