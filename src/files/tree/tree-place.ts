// A tree that is open: its root, its ground, its locks and its change log, for the operations and for the index side.
import type { Ground } from "../../durable/liveness/ground.ts";
import { holdfastError } from "../../errors.ts";
import { pathKey, type PathKeyOptions } from "../../format/path-key.ts";
import { LockKeys, type Keys, type Located } from "../../locks/naming/lock-key.ts";
import { decideNames } from "../../locks/naming/lock-names.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import { TablePathLocks } from "../../locks/path/table-path-locks.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import { ChangeLog } from "../change-log/change-log.ts";
import { FilesLayout } from "./layout.ts";

/** A tree that is opened alone has its ground there; no tree shows it, also not that of a tree inside of it. */
const reservedName = ".holdfast";

export interface TreePlaceOptions {
  readonly root: string;
  readonly ground: Ground;
  /** Of this tree; what is derived from it is worked on under the same ones. */
  readonly locks: () => Promise<TablePathLocks>;
  /** How paths become keys. Default: as the disk of the tree takes them. */
  readonly keys?: Keys | undefined;
}

export class TreePlace {
  readonly root: string;
  readonly ground: Ground;
  readonly layout: FilesLayout;
  readonly changes: ChangeLog;
  readonly locks: () => Promise<TablePathLocks>;
  readonly #keys: Keys;
  readonly #names: PathKeyOptions;

  private constructor({ root, ground, locks }: TreePlaceOptions, keys: Keys, names: PathKeyOptions) {
    this.root = root;
    this.ground = ground;
    this.locks = locks;
    this.layout = new FilesLayout(ground.layout.directory);
    this.changes = new ChangeLog(ground.staging, this.layout);
    this.#keys = keys;
    this.#names = names;
  }

  static async open(options: TreePlaceOptions): Promise<TreePlace> {
    const { root, ground } = options;
    const { disk } = ground.ports;
    const names = await decideNames(ground.staging, ground.layout.directory, root);
    return new TreePlace(options, options.keys ?? (await LockKeys.open(disk, root, names)), names);
  }

  /** The locks of a call: those of the tree, or those that gave out the hold that it is within. TypeError. */
  async locksFor(within: PathHold | undefined): Promise<TablePathLocks> {
    if (within === undefined) return await this.locks();
    const locks = TablePathLocks.of(within);
    if (locks.root !== this.root)
      throw new TypeError(`within is a hold in ${locks.root}, and the files are those of ${this.root}.`);
    return locks;
  }

  get disk(): Disk {
    return this.ground.ports.disk;
  }

  /**
   * Where `path` leads: below the root, without symbolic links. A name that is on the disk in another Unicode form,
   * or in other letters where the disk takes those for one, is spelled as it is there. INVALID_PATH for a path that
   * leads out, and for the ground.
   */
  async locate(path: string): Promise<Located> {
    const located = await this.#keys.locate(this.#keys.clean(path));
    if (located.path.toLowerCase().split("/").includes(reservedName)) throw reserved(path);
    return { ...located, path: await this.#spelledAsOnDisk(located.path) };
  }

  /** What is at a path that `locate` gave, as the file system itself knows; undefined for nothing. */
  async findLook(located: string): Promise<FileStat | undefined> {
    try {
      return await this.disk.look(this.pathOf(located));
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
      throw error;
    }
  }

  /** The absolute path of what `locate` gave. */
  pathOf(located: string): string {
    return located === "" ? this.root : `${this.root}/${located}`;
  }

  /** Whether an entry of this name is part of the tree. */
  isShown(name: string): boolean {
    return name.toLowerCase() !== reservedName;
  }

  /** Two spellings have one lock, so they must be one file, and one path in the index. */
  async #spelledAsOnDisk(path: string): Promise<string> {
    let spelled = "";
    for (const name of path === "" ? [] : path.split("/")) {
      const below = spelled === "" ? name : `${spelled}/${name}`;
      const isPlain = this.#names.caseSensitive && (isAscii(name) || (await this.#isThere(below)));
      spelled = isPlain ? below : await this.#findSpelling(spelled, name);
    }
    return spelled;
  }

  async #findSpelling(directory: string, name: string): Promise<string> {
    const prefix = directory === "" ? "" : `${directory}/`;
    const names = await this.disk.list(this.pathOf(directory)).catch(unlessMissing);
    if (names.includes(name)) return `${prefix}${name}`;
    const key = this.#keyOf(name);
    return `${prefix}${names.find((each) => this.#keyOf(each) === key) ?? name}`;
  }

  /** A name that other programs made may be none that a path can have. */
  #keyOf(name: string): string {
    try {
      return pathKey(name, this.#names);
    } catch {
      return name;
    }
  }

  async #isThere(path: string): Promise<boolean> {
    return (await this.disk.findStat(this.pathOf(path))) !== undefined;
  }
}

function isAscii(name: string): boolean {
  return /^[ -~]*$/.test(name);
}

function unlessMissing(error: unknown): string[] {
  if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
  throw error;
}

function reserved(path: string): Error {
  const message = `${path} is where Holdfast keeps what belongs to the tree: ${reservedName} is no part of it.`;
  return holdfastError("INVALID_PATH", message, { path });
}
