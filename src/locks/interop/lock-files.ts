// The lock files that the grants of this process have: several grants may share one, and one grant may have several.
import type { LockMode } from "../../common.ts";
import type { Claim } from "../table/claim.ts";
import type { FoundLock } from "./foreign-locks.ts";
import type { Grant } from "../path/grant.ts";
import { InteropLockFile, removeOwn, type InteropDirectory } from "./lock-file.ts";
import { directoryLockOf, lockFilesOf, sidecarOf } from "./names.ts";
import type { InteropTree } from "./tree.ts";

export class InteropLockFiles {
  readonly #tree: InteropTree;
  readonly #place: InteropDirectory;
  readonly #files = new Map<string, InteropLockFile>();
  /** What of each grant is shown now, in the caller's spelling. */
  readonly #shown = new Map<Grant, readonly Claim[]>();
  /** Files are changed one at a time: a grant that ends and one that begins may share one. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(tree: InteropTree, place: InteropDirectory) {
    this.#tree = tree;
    this.#place = place;
  }

  /** Those that are shown, or about to be. */
  get grants(): readonly Grant[] {
    return [...this.#shown.keys()];
  }

  /** From now on until it is ended. Returns what is shown of it. */
  begin(grant: Grant): readonly Claim[] {
    const shown = this.#shown.get(grant) ?? [];
    this.#shown.set(grant, shown);
    return shown;
  }

  /**
   * Makes the lock files of a grant those of `claims` (default: those that it has), and fresh. Nothing once it is ended. Returns the live foreign one that is in the
   * place of one of them.
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
      // The new ones first: when a missing path has become a directory, its lock file moves into it, and there must be one all the time.
      for (const [path, mode] of wanted) {
        const taken = await this.#fileAt(path).putFor(grant, mode);
        if (taken !== undefined) return taken;
      }
      for (const file of this.#filesOf(grant))
        if (!wanted.has(file.path)) await this.#drop(grant, file, () => file.remove());
      return undefined;
    });
  }

  /** They go, as far as they are still ours. A release must not fail for one that cannot be removed: it is stale after a lease. */
  async remove(grant: Grant): Promise<void> {
    await this.#end(grant, async (path) => await (this.#files.get(path)?.remove() ?? removeOwn(this.#place, path)));
  }

  /** They stay, for whoever receives the grant to replace them, and are refreshed no more. */
  async leave(grant: Grant): Promise<void> {
    await this.#end(grant, async (path) => await this.#files.get(path)?.leave());
  }

  /** Resolves when what was begun is done. */
  async settle(): Promise<void> {
    await this.#turn;
  }

  async #end(grant: Grant, end: (path: string) => Promise<void>): Promise<void> {
    await this.#inTurn(async () => {
      const claims = this.#shown.get(grant);
      if (claims === undefined) return;
      this.#shown.delete(grant);
      const paths = new Set(this.#filesOf(grant).map(({ path }) => path));
      // Also where one may have got by a move of the directory that it was in. If that cannot be found out, it is stale after a lease.
      const targets = await this.#tree.targetsOf(claims).catch(() => []);
      for (const path of targets.flatMap((target) => lockFilesOf(target.path))) paths.add(path);
      for (const path of paths) {
        const file = this.#files.get(path);
        await (file === undefined ? end(path) : this.#drop(grant, file, () => end(path))).catch(() => undefined);
      }
    });
  }

  /** The last one to leave a file ends it; for the others it says what is left. */
  async #drop(grant: Grant, file: InteropLockFile, end: () => Promise<void>): Promise<void> {
    file.users.delete(grant);
    if (file.users.size > 0) await file.put();
    else await end().finally(() => this.#files.delete(file.path));
  }

  #fileAt(path: string): InteropLockFile {
    const file = this.#files.get(path) ?? new InteropLockFile(this.#place, path);
    this.#files.set(path, file);
    return file;
  }

  #filesOf(grant: Grant): InteropLockFile[] {
    return [...this.#files.values()].filter(({ users }) => users.has(grant));
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    // Whoever asked for it hears of its failure; the next one has nothing to do with it.
    this.#turn = done.catch(() => undefined);
    return await done;
  }
}
