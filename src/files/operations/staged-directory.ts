// A caller's directory that is added to the tree. Its files are linked one by one, and it is
// removed only after the commit. It is never renamed into the draft: a refused commit deletes the
// draft, and would delete the only copy.
import { isLink, parentOf, syncNames, unlinkIfThere } from "../../durable/publish/directory.ts";
import { retryOutage } from "../../durable/publish/retry-outage.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { getFolderStat, type OpenFolder } from "../../handoff/foreign/folder.ts";
import { writeBody } from "../../part/body.ts";
import { readChunks } from "../../part/read-chunks.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import { findUnusableName } from "../tree/unusable-entry.ts";
import type { Tree } from "../tree/tree.ts";

/** Files synced in parallel. */
const syncsMax = 8;

interface StagedEntry {
  /** Relative to the staged directory. */
  readonly path: string;
  readonly stat: FileStat;
}

export class StagedDirectory {
  readonly #path: string;
  readonly #disk: Disk;
  /** The disk of the tree. */
  readonly #target: Disk;
  readonly #isOnOneDevice: boolean;
  readonly #entries: readonly StagedEntry[];

  private constructor(
    { path, disk, target }: { readonly path: string; readonly disk: Disk; readonly target: Disk },
    entries: readonly StagedEntry[],
    isOnOneDevice: boolean,
  ) {
    this.#path = path;
    this.#disk = disk;
    this.#target = target;
    this.#entries = entries;
    this.#isOnOneDevice = isOnOneDevice;
  }

  /**
   * Opens a staged directory. Throws INVALID_PATH if it is not a directory, lies inside the tree or
   * around it, or has symbolic links.
   */
  static async open(tree: Tree, staged: string, openFolder: OpenFolder): Promise<StagedDirectory> {
    const { path: given, disk } = await openFolder(staged);
    const { device } = await getFolderStat(disk, given);
    const path = await disk.realPath(given);
    const apart = [await tree.disk.realPath(tree.root), await tree.disk.realPath(tree.ground.layout.directory)];
    for (const other of apart)
      if (`${path}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${path}/`))
        throw invalid(path, `it lies in ${other}, or around it. Prepare it outside of the tree`);
    const entries: StagedEntry[] = [];
    await collect({ disk, tree, root: path }, "", entries);
    const isOnOneDevice = device === (await tree.disk.stat(tree.root)).device;
    return new this({ path, disk, target: tree.disk }, entries, isOnOneDevice);
  }

  /**
   * Makes `target` with everything that is staged; durable when it resolves. The staged files stay
   * unchanged.
   */
  async fill(target: string): Promise<void> {
    const directories = this.#entries.filter(({ stat }) => stat.kind === "directory");
    const files = this.#entries.filter(({ stat }) => stat.kind === "file");
    await makeUniqueDirectory(this.#target, target);
    for (const { path } of directories) await makeUniqueDirectory(this.#target, `${target}/${path}`);
    const linked: string[] = [];
    for (const { path } of files) {
      const to = `${target}/${path}`;
      if (await this.#link(`${this.#path}/${path}`, to)) linked.push(to);
      else await writeBody(this.#target, to, readChunks(this.#disk, `${this.#path}/${path}`));
    }
    // After all links, so that one flush of the journal serves many files.
    await this.#syncFiles(linked);
    for (const { path } of directories.toReversed()) await syncNames(this.#target, `${target}/${path}`);
    await syncNames(this.#target, target);
  }

  /**
   * Removes the staged files that were added. Files that changed or appeared since stay, and so do
   * those that cannot be removed: the tree has its own names for its files.
   */
  async consume(): Promise<void> {
    for (const { path, stat } of this.#entries.toReversed()) await this.#remove(`${this.#path}/${path}`, stat);
    await this.#removeDirectory(this.#path);
  }

  async #remove(path: string, { kind, identity, size, mtimeMs }: FileStat): Promise<void> {
    if (kind === "directory") return await this.#removeDirectory(path);
    try {
      const now = await this.#disk.findStat(path);
      if (now?.identity === identity && now.size === size && now.mtimeMs === mtimeMs)
        await unlinkIfThere(this.#disk, path);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
  }

  async #removeDirectory(path: string): Promise<void> {
    try {
      await this.#disk.rmdir(path);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
  }

  /** Links a file. Returns false where linking is impossible: the file is then copied. */
  async #link(from: string, to: string): Promise<boolean> {
    if (!this.#isOnOneDevice) return false;
    try {
      await retryOutage(this.#target, parentOf(to), () => this.#target.link(from, to));
      return true;
    } catch (error) {
      // Only this call makes that name, so the answer to its first request was lost.
      if (hasErrno(error, "EEXIST")) return true;
      if (hasErrno(error, "EXDEV", "EPERM", "EACCES", "EMLINK", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) return false;
      throw error;
    }
  }

  /** Syncs the files, because the program that wrote them may not have. */
  async #syncFiles(paths: readonly string[]): Promise<void> {
    for (let start = 0; start < paths.length; start += syncsMax)
      await Promise.all(paths.slice(start, start + syncsMax).map((path) => this.#syncFile(path)));
  }

  /**
   * Windows syncs only what is open for writing. Elsewhere a file can be synced although this user may not write it.
   */
  async #syncFile(path: string): Promise<void> {
    try {
      await this.#syncOpened(path, "read");
    } catch (error) {
      if (!hasErrno(error, "EPERM")) throw error;
      await this.#syncOpened(path, "write");
    }
  }

  async #syncOpened(path: string, mode: "read" | "write"): Promise<void> {
    const file = await this.#target.open(path, mode);
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
}

/** Collects entries in the order in which directories must be made. */
async function collect(
  of: { readonly disk: Disk; readonly tree: Tree; readonly root: string },
  directory: string,
  entries: StagedEntry[],
): Promise<void> {
  const { disk, tree, root } = of;
  const absolute = directory === "" ? root : `${root}/${directory}`;
  for (const name of (await disk.list(absolute)).sort()) {
    const path = directory === "" ? name : `${directory}/${name}`;
    const why = findUnusableName(path, tree);
    if (why !== undefined) throw invalid(root, `${path} in it: ${why.slice(0, -1)}`);
    if (await isLink(disk, `${root}/${path}`))
      throw invalid(root, `${path} in it is a symbolic link. Put the file itself there`);
    const stat = await disk.findStat(`${root}/${path}`);
    // Node uses the replacement character if a name has bytes that are not UTF-8. No call accepts
    // such a name.
    if (stat === undefined && name.includes("\ufffd"))
      throw invalid(root, `${path} in it: its name has bytes that are not UTF-8. Rename it`);
    if (stat === undefined) continue;
    if (stat.kind === "other") throw invalid(root, `${path} in it is neither a file nor a directory`);
    entries.push({ path, stat });
    if (stat.kind === "directory") await collect(of, path, entries);
  }
}

function invalid(path: string, why: string): Error {
  return holdfastError("INVALID_PATH", `The staged directory ${path} cannot be taken in: ${why}.`, { path });
}
