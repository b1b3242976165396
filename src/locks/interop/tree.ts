// The tree as foreign programs see it: real paths, directories, and the lock files in them.
import type { LockMode } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Claim } from "../table/conflict.ts";
import { followLinks } from "../naming/follow-path.ts";
import { isLockFileName } from "./names.ts";

/** The largest number of entries in one search. Beyond it the search cannot prove that nothing is locked. */
const entriesMax = 200_000;
/** After this many entries, the search yields to other work of this process. */
const entriesPerTurn = 500;

/** A path on the disk, absolute and without symbolic links, and the mode of the lock on it. */
export interface LockedPath {
  readonly path: string;
  readonly mode: LockMode;
}

export class InteropTree {
  /** The root of the tree, without symbolic links. */
  readonly root: string;
  readonly #ports: Pick<Ports, "clock" | "disk">;
  /** Holdfast's own directory. Foreign programs have no locks in it. */
  readonly #skipped: string;

  private constructor(ports: Pick<Ports, "clock" | "disk">, root: string, skipped: string) {
    this.#ports = ports;
    this.root = root;
    this.#skipped = skipped;
  }

  static async open(
    ports: Pick<Ports, "clock" | "disk">,
    options: { readonly root: string; readonly skipped: string },
  ): Promise<InteropTree> {
    const { disk } = ports;
    return new InteropTree(ports, await disk.realPath(options.root), await disk.realPath(options.skipped));
  }

  async targetsOf(claims: readonly Claim[]): Promise<LockedPath[]> {
    const targets: LockedPath[] = [];
    for (const claim of claims) {
      // The part that does not exist keeps the caller's spelling, as a foreign program would write it.
      const { path } = await followLinks(
        this.#ports.disk,
        claim.path === "" ? this.root : inside(this.root, claim.path),
      );
      targets.push({ path, mode: claim.mode });
    }
    return targets;
  }

  /** Returns false for a symbolic link: it leads to another path, or back into this tree. */
  async isDirectory(path: string): Promise<boolean> {
    if ((await this.findStat(path))?.kind !== "directory") return false;
    try {
      return (await this.#ports.disk.realPath(path)) === path;
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ELOOP", "ESTALE")) return false;
      throw error;
    }
  }

  async findStat(path: string): Promise<FileStat | undefined> {
    try {
      return await this.#ports.disk.stat(path);
    } catch (error) {
      // A dangling or circular link is neither a directory nor a lock, and neither is a name that is too long.
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ELOOP", "ESTALE", "ENAMETOOLONG")) return undefined;
      throw error;
    }
  }

  /**
   * Yields every lock file in `path` and below. Costs one listing per directory and one stat per entry. Throws
   * TOO_LARGE.
   */
  async *lockFilesBelow(path: string): AsyncGenerator<string> {
    const directories = [path];
    let count = 0;
    for (let directory = directories.pop(); directory !== undefined; directory = directories.pop())
      for (const name of await this.#names(directory)) {
        if (++count > entriesMax) throw tooMany(path);
        if (count % entriesPerTurn === 0) await this.#ports.clock.sleep(0);
        const entry = inside(directory, name);
        if (isLockFileName(name)) yield entry;
        else if (entry !== this.#skipped && (await this.isDirectory(entry))) directories.push(entry);
      }
  }

  async #names(directory: string): Promise<readonly string[]> {
    try {
      return await this.#ports.disk.list(directory);
    } catch (error) {
      // The directory is missing, is a file, or was removed. Any other error is thrown: a directory that cannot be
      // listed may contain locks.
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return [];
      throw error;
    }
  }
}

function inside(directory: string, name: string): string {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}

function tooMany(path: string): Error {
  const message = `${path} has more than ${entriesMax} entries below it, too many to look for foreign locks (option interop). Lock a smaller tree.`;
  return holdfastError("TOO_LARGE", message, { limit: entriesMax, actual: entriesMax + 1 });
}
