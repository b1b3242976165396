// Tree: an open tree with its root, ground, locks and change log, for the operations and for
// the index side.
import type { NameRule } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { listIfThere } from "../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { pathKey } from "../../format/path-key.ts";
import type { Located } from "../../locks/naming/lock-key.ts";
import { decideNames, type LockNames } from "../../locks/naming/lock-names.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import { TablePathLocks } from "../../locks/path/table-path-locks.ts";
import { Reserve } from "../../part/reserve.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import { ChangeLog } from "../change-log/change-log.ts";
import { ChangeFolder, type FoldOptions } from "../change-log/fold.ts";
import type { ChangeAuthor } from "../change-log/change-record.ts";
import { FilesLayout } from "./layout.ts";

/**
 * The name of the ground of a tree that is opened alone. No tree shows it, not even that of a tree
 * inside it.
 */
const reservedName = ".holdfast";

export class Tree {
  readonly root: string;
  readonly ground: Ground;
  readonly layout: FilesLayout;
  readonly changes: ChangeLog;
  readonly reserve: Reserve;
  /** The locks of this tree; work on derived data uses the same ones. */
  readonly locks: TablePathLocks;
  readonly #names: LockNames;

  private constructor(locks: TablePathLocks, names: LockNames) {
    const { ground } = locks.table;
    this.root = locks.root;
    this.ground = ground;
    this.locks = locks;
    this.layout = new FilesLayout(ground.layout.directory);
    this.changes = new ChangeLog(ground.staging, this.layout, {
      sign: () => sign(ground),
      onNewBlock: () => void this.foldChanges().catch(() => undefined),
    });
    this.reserve = new Reserve(ground.staging, this.layout.reserve);
    this.#names = names;
  }

  /** Opens the tree of these locks. `names`: as for them. */
  static async open(locks: TablePathLocks, names?: NameRule): Promise<Tree> {
    const { staging, layout } = locks.table.ground;
    return new Tree(locks, await decideNames(staging, layout.directory, locks.root, names));
  }

  /**
   * Folds old blocks of the change log, and returns how many. None on a share, and none in a tree
   * that older releases can use: they would take folded numbers for lost ones.
   */
  async foldChanges(options: Pick<FoldOptions, "afterMs"> = {}): Promise<number> {
    const { ports, staging } = this.ground;
    if (this.disk.volume.kind !== "local" || !(await this.locks.table.hasDeltas())) return 0;
    return await new ChangeFolder(staging, this.layout).fold({ nowMs: ports.clock.wallMs(), ...options });
  }

  /** Returns the locks for a call: those of the tree, or those that granted the hold `within`. Throws TypeError. */
  locksFor(within: PathHold | undefined): TablePathLocks {
    if (within === undefined) return this.locks;
    const locks = TablePathLocks.of(within);
    if (locks.root !== this.root)
      throw new TypeError(`within is a hold in ${locks.root}, and the files are those of ${this.root}.`);
    return locks;
  }

  /** Releases a lock that was offered and that no process receives: until the offer lapsed, it would block others. */
  async endOffer(token: string): Promise<void> {
    try {
      await (await this.locks.receive(token)).release();
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
  }

  get disk(): Disk {
    return this.ground.ports.disk;
  }

  /**
   * Resolves `path`: below the root, without symbolic links. If a name exists on the disk in
   * another Unicode form, or in another case on a disk that ignores case, the result uses the
   * spelling on the disk. Throws INVALID_PATH for a path that leads out, and for the ground.
   */
  async locate(path: string): Promise<Located> {
    const located = await this.locks.keys.locate(this.locks.keys.clean(path));
    if (located.path.toLowerCase().split("/").includes(reservedName)) throw reserved(path);
    return { ...located, path: await this.#spelledAsOnDisk(located.path) };
  }

  /** Stats a path that `locate` returned, bypassing caches; undefined if nothing exists. */
  async findLook(located: string): Promise<FileStat | undefined> {
    try {
      return await this.disk.look(this.pathOf(located));
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
      throw error;
    }
  }

  /**
   * Like `findLook`, for the entry itself: undefined also behind a symbolic link, and for a path
   * that the disk refuses.
   */
  async findEntry(path: string): Promise<FileStat | undefined> {
    try {
      if (path !== "" && (await this.disk.hasLink(this.root, path))) return undefined;
      return await this.findLook(path);
    } catch (error) {
      if (hasErrno(error, "ELOOP", "ENAMETOOLONG")) return undefined;
      throw error;
    }
  }

  /** Returns the key of a path that `locate` returned: the same for all its spellings. */
  keyOf(located: string): string {
    return located === "" ? "" : this.#keyOf(located);
  }

  /** Returns the absolute path of what `locate` returned. */
  pathOf(located: string): string {
    return located === "" ? this.root : `${this.root}/${located}`;
  }

  /** True if names that Windows refuses or changes are refused here. */
  get refusesUnportable(): boolean {
    return this.#names.portable || this.disk.volume.hasWindowsNames === true;
  }

  /** True if an entry of this name is part of the tree. */
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
    const names = await listIfThere(this.disk, this.pathOf(directory));
    if (names.includes(name)) return `${prefix}${name}`;
    const key = this.#keyOf(name);
    return `${prefix}${names.find((each) => this.#keyOf(each) === key) ?? name}`;
  }

  /** Returns the key of a name. Other programs may have made a name that no path can have. */
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

async function sign(ground: Ground): Promise<ChangeAuthor> {
  const { id, name, host, pid } = (await ground.session()).holder;
  const at = new Date(ground.ports.clock.wallMs()).toISOString();
  return { by: { id, ...(name === "" ? {} : { name }), host, pid }, at };
}

function isAscii(name: string): boolean {
  return /^[ -~]*$/.test(name);
}

function reserved(path: string): Error {
  const message = `${path} is reserved: Holdfast keeps the metadata of the tree in ${reservedName}. Use another path.`;
  return holdfastError("INVALID_PATH", message, { path });
}
