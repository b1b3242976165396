// The key of a path below the root of the locks: normalized, with symbolic links resolved, and with case folded if
// the disk folds it. Each file has one key, whether or not it exists.
import { holdfastError } from "../../errors.ts";
import { cleanPath, pathKey, type PathKeyOptions } from "../../format/path-key.ts";
import { findUnportable } from "../../format/name.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { followLinks } from "./follow-path.ts";

/** The methods that the rest of the locks uses. */
export type Keys = Pick<LockKeys, "clean" | "locate" | "keyOf">;

export interface Located {
  /** Relative to the root, without symbolic links, spelled as on the disk. */
  readonly path: string;
  readonly key: string;
}

export interface NameOptions extends PathKeyOptions {
  /** Refuses names that Windows refuses or changes. On Windows they are always refused. */
  readonly portable: boolean;
}

export class LockKeys {
  readonly root: string;
  readonly #disk: Disk;
  readonly #realRoot: string;
  readonly #options: NameOptions;

  private constructor(disk: Disk, root: string, realRoot: string, options: NameOptions) {
    this.root = root;
    this.#disk = disk;
    this.#realRoot = realRoot;
    this.#options = options;
  }

  /** `names`: how all processes compare names. It was decided once. */
  static async open(disk: Disk, root: string, names: NameOptions): Promise<LockKeys> {
    return new LockKeys(disk, root, await disk.realPath(root), names);
  }

  /**
   * Returns `path` relative to the root. It may be relative already, or absolute and inside the root. Throws
   * INVALID_PATH.
   */
  clean(path: string): string {
    return this.#accepted(cleanPath(this.#isOnWindows ? this.#relativeOnWindows(path) : this.#relative(path)));
  }

  #relative(path: string): string {
    if (path === this.root) return "";
    const outer = withSlash(this.root);
    return path.startsWith(outer) ? path.slice(outer.length) : path;
  }

  /** Either slash, and a drive or server in any case: the root has forward slashes. */
  #relativeOnWindows(path: string): string {
    const given = path.replaceAll("\\", "/");
    const outer = withSlash(this.root);
    const isInside = withSlash(given).slice(0, outer.length).toLowerCase() === outer.toLowerCase();
    return isInside ? given.slice(outer.length) : given;
  }

  /** Throws INVALID_PATH, also if a symbolic link leads out of the root. */
  async keyOf(clean: string): Promise<string> {
    return (await this.locate(clean)).key;
  }

  /** Returns the path to which `clean` leads. Throws INVALID_PATH like `keyOf`. */
  async locate(clean: string): Promise<Located> {
    const isPlain = clean === "" || !(this.#mayBeShort(clean) || (await this.#disk.hasLink(this.#realRoot, clean)));
    const path = isPlain ? clean : await this.#follow(clean);
    return { path, key: pathKey(path, this.#options) };
  }

  async #follow(clean: string): Promise<string> {
    try {
      return this.#accepted(
        this.#inside((await followLinks(this.#disk, `${withSlash(this.#realRoot)}${clean}`)).path, clean),
      );
    } catch (error) {
      if (hasErrno(error, "ELOOP")) throw outside(clean, "a symbolic link in it leads in a circle", error);
      throw error;
    }
  }

  /** Windows knows an existing file by a second, short name, which `realPath` replaces by the long one. */
  #mayBeShort(clean: string): boolean {
    return this.#isOnWindows && /~\d/.test(clean);
  }

  get #isOnWindows(): boolean {
    return this.#disk.volume.hasWindowsNames === true;
  }

  #accepted(clean: string): string {
    if (clean === "" || !(this.#options.portable || this.#isOnWindows)) return clean;
    const fault = findUnportable(clean);
    if (fault === undefined) return clean;
    throw outside(clean, `the name ${JSON.stringify(fault.name)} is not valid everywhere, because ${fault.why}`);
  }

  #inside(real: string, clean: string): string {
    if (real === this.#realRoot) return "";
    const outer = withSlash(this.#realRoot);
    if (real.startsWith(outer)) return real.slice(outer.length);
    throw outside(clean, `a symbolic link in it leads to ${real}, out of the root`);
  }
}

/** The root of the file system or of a drive has one already. */
function withSlash(directory: string): string {
  return directory.endsWith("/") ? directory : `${directory}/`;
}

function outside(path: string, why: string, cause?: unknown): Error {
  return holdfastError("INVALID_PATH", `The path ${JSON.stringify(path)} cannot be used: ${why}.`, { path }, cause);
}
