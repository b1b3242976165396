// The simulated disk as the server sees it: one tree, its durable state, and the promises that this file system does
// not keep.
import { diskError } from "../../ports/disk-error.ts";
import type { Volume } from "../../ports/disk.ts";
import {
  Tree,
  type DirectoryNode,
  type FileNode,
  type DirectoryEntry,
  type TreeNode,
} from "../../ports/memory/tree.ts";
import { hashOf, hashOfBytes } from "../explorer/hash.ts";
import type { Touch } from "./call.ts";
import { Persistence, type CrashProfile } from "./persistence.ts";

/** Promises that a simulated file system does not keep. Each is off by default. */
export interface ServerQuirks {
  /** A machine may get the list of a directory that it saw before. */
  readonly staleListings?: boolean;
  /** A machine may be told that a name does not exist because it did not when that machine last checked. */
  readonly staleAbsence?: boolean;
  /**
   * A machine may be told that a name which it has opened before still exists, although another
   * machine has removed it.
   */
  readonly stalePresence?: boolean;
  /**
   * A machine may use the file that it once found under a name, although another machine has
   * removed that name: read it, stat it, or link from it (ESTALE if it has no other name), until it
   * opens or lists the directory.
   */
  readonly fileHandles?: boolean;
  /**
   * The server may fail before or after it has executed a request, and be back at the next one:
   * EHOSTDOWN, as often as the scenario allows.
   */
  readonly outages?: boolean;
  /**
   * A machine may use the directory that it once found under a path, although another machine moved
   * or removed it.
   */
  readonly directoryHandles?: boolean;
  /**
   * A change may fail with ESTALE, before or after it was made, although its target exists: as
   * often as the scenario allows.
   */
  readonly staleHandles?: boolean;
  /** Writes through a handle reach the server, and so other machines, only at a sync or close, however late. */
  readonly lateWrites?: boolean;
  /** The file system has no hard links. */
  readonly noHardLinks?: boolean;
  /** A directory cannot be synced. */
  readonly noDirectorySync?: boolean;
  /** Two creators of one name both succeed; the second one truncates the file of the first. */
  readonly exclusiveCreateReplaces?: boolean;
  /** A hard link replaces an existing name instead of failing. */
  readonly linkReplaces?: boolean;
  /** A rename over an existing file fails, as on some Windows servers. */
  readonly renameRefusesToReplace?: boolean;
  /**
   * A rename over an existing file removes that name first: a machine that dies in between leaves
   * neither file there. Clients of SMB and NFS do so if the file is open.
   */
  readonly renameVacates?: boolean;
  /** An open file cannot be renamed or removed, nor can a directory above it be renamed, as on Windows. */
  readonly busyWhileOpen?: boolean;
  /**
   * A removed file that is still open keeps its name until the last handle is closed. Calls on that
   * name fail with EPERM meanwhile, and its directory is not empty.
   */
  readonly pendingDeletes?: boolean;
  /** An open file cannot be replaced by a rename, nor can a directory above it be renamed: EPERM. */
  readonly busyRenames?: boolean;
  /** A rename onto a directory fails with EPERM, even onto an empty one. */
  readonly directoriesStay?: boolean;
  /** A directory that is renamed onto a file replaces it. */
  readonly filesYield?: boolean;
  /**
   * Processes that open files without sharing them: meanwhile no process can open, rename, replace or
   * remove such a file, and they cannot open one that another process has open: EBUSY.
   */
  readonly unshared?: readonly string[];
  /** Names that differ only in case are equal. */
  readonly caseInsensitive?: boolean;
  /**
   * Names that differ only in their Unicode form are equal, as on macOS. `kept`: a name is listed as
   * it was made (APFS). `decomposed`: it is listed in the form NFD (HFS+).
   */
  readonly unicodeForms?: "kept" | "decomposed";
  /** Granularity of the time stamps of files. */
  readonly mtimeGranularityMs?: number;
  /**
   * A new file has an arbitrary time stamp until its creator sets it a moment later: an NFS server
   * stores a marker there, to recognize a repeated request.
   */
  readonly lateStamps?: boolean;
  /** How far the clock that stamps files is ahead of the true time. Default 0. */
  readonly clockOffsetMs?: number;
  /**
   * How OS locks work. `uncompared` is known to be wrong: a grant counts even if the name leads to
   * another file by now. Default `exclude`.
   */
  readonly osLocks?: "exclude" | "per machine" | "none" | "uncompared";
  /**
   * When watches report a change. `hints`: at once, once for each watch. `any time`: once for each
   * watch, at any moment, as often as the scenario allows. Default `silent`.
   */
  readonly watch?: "hints" | "any time" | "silent";
}

/** @deprecated Use `ServerQuirks`. */
export type Quirks = ServerQuirks;

export interface ServerOptions {
  readonly profile: CrashProfile;
  readonly quirks: ServerQuirks;
  readonly volume: Volume;
  /** Returns the true time in milliseconds, with which the server stamps files. */
  readonly now: () => number;
}

export interface UnsentWrite {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** An open file of a process. */
export interface ServerHandle {
  readonly process: string;
  readonly file: FileNode;
  /**
   * Writes that were not sent yet, by this or any other handle of the same machine: its kernel sends a file as a
   * whole.
   */
  readonly unsent: UnsentWrite[];
}

// Contents are never changed in place, so each is hashed only once.
const contentHashes = new WeakMap<Uint8Array, string>();

function contentHash(bytes: Uint8Array): string {
  const known = contentHashes.get(bytes);
  if (known !== undefined) return known;
  const hash = hashOfBytes(bytes);
  contentHashes.set(bytes, hash);
  return hash;
}

export class SimServer {
  readonly quirks: ServerQuirks;
  readonly volume: Volume;
  readonly tree: Tree;
  readonly handles: Set<ServerHandle> = new Set();
  readonly #options: ServerOptions;
  readonly #persistence: Persistence;
  readonly #identified = new WeakSet<TreeNode>();
  /** The names of files that were removed and are still open. */
  readonly #pending = new Map<FileNode, DirectoryEntry[]>();

  constructor(options: ServerOptions, tree?: Tree) {
    this.#options = options;
    this.quirks = options.quirks;
    this.volume = options.volume;
    this.tree = tree ?? new Tree(() => stampMsOf(this.#options));
    this.#persistence = new Persistence(options.profile, this.tree.root);
    if (tree !== undefined) this.#persistence.adopt(tree.root);
  }

  /** Returns an independent server with the same files, all of them durable. No file may be open. */
  copy(options: ServerOptions): SimServer {
    if (this.handles.size > 0) throw new Error("a server with open files cannot be copied");
    const twins = new Map<TreeNode, TreeNode>();
    const server = new SimServer(
      options,
      this.tree.copy(() => stampMsOf(options), twins),
    );
    for (const [node, twin] of twins) if (this.#identified.has(node)) server.#identified.add(twin);
    return server;
  }

  /** Returns the directory entry of `path`. The directories above it must exist. */
  entry(path: string, operation: string): DirectoryEntry {
    const entry = this.tree.entry(this.#spelled(path), operation);
    this.#mustNotBePending(entry, operation);
    return this.#foldsNames ? { ...entry, path } : entry;
  }

  node(path: string, operation: string): TreeNode {
    if (this.#pending.size > 0 && path !== "/") this.entry(path, operation);
    return this.tree.nodeAt(this.#spelled(path), operation);
  }

  directory(path: string, operation: string): DirectoryNode {
    return this.tree.directory(this.#spelled(path), operation);
  }

  find(path: string): TreeNode | undefined {
    let found: TreeNode | undefined = this.tree.root;
    for (const name of this.#spelled(path).split("/")) {
      if (name === "") continue;
      if (found?.kind !== "directory") return undefined;
      found = found.entries.get(name);
    }
    return found;
  }

  /**
   * Returns a current path of this node, one of several for a file with several names, or undefined if it has none.
   */
  nameOf(wanted: TreeNode | undefined): string | undefined {
    const search = (from: TreeNode, path: string): string | undefined => {
      if (from === wanted) return path;
      if (from.kind === "file") return undefined;
      for (const [name, node] of from.entries) {
        const found = search(node, `${path}/${name}`);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    return search(this.tree.root, "");
  }

  touch(path: string, changes: boolean): Touch {
    return { what: this.#folded(path), changes };
  }

  /**
   * An operation through a handle is visible under every name of the file. If that is not just the name by which it
   * was opened, it touches everything.
   */
  touchOfFile(file: FileNode, path: string, changes: boolean): Touch {
    const isOnlyThere = file.links === 1 && this.find(path) === file;
    return isOnlyThere ? this.touch(path, changes) : { what: "", changes };
  }

  /**
   * Returns the path with the spelling under which its names were created, as a case-insensitive file system stores
   * them.
   */
  #spelled(path: string): string {
    if (!this.#foldsNames) return path;
    let directory: TreeNode | undefined = this.tree.root;
    const names = path.split("/").map((name) => {
      const entries: [string, TreeNode][] = directory?.kind === "directory" ? [...directory.entries] : [];
      const same = entries.find(([other]) => this.#folded(other) === this.#folded(name));
      if (name !== "") directory = same?.[1];
      return same?.[0] ?? (this.quirks.unicodeForms === "decomposed" ? name.normalize("NFD") : name);
    });
    return names.join("/");
  }

  get #foldsNames(): boolean {
    return this.quirks.caseInsensitive === true || this.quirks.unicodeForms !== undefined;
  }

  #folded(path: string): string {
    const cased = this.quirks.caseInsensitive ? path.toLowerCase() : path;
    return this.quirks.unicodeForms === undefined ? cased : cased.normalize("NFD");
  }

  create(at: DirectoryEntry, operation: string): FileNode {
    const taken = at.directory.entries.get(at.name);
    if (this.quirks.exclusiveCreateReplaces && taken?.kind === "file") return this.#emptied(taken);
    const file = this.tree.create(at, operation);
    if (this.quirks.lateStamps) file.mtimeMs = 0;
    this.#persistence.changed({ directory: at.directory, name: at.name, node: file });
    return file;
  }

  /** Sets the stamp of a new file, as its creator does next if stamps are late. */
  stamp(file: FileNode): void {
    file.mtimeMs = stampMsOf(this.#options);
  }

  write(file: FileNode, offset: number, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.tree.write(file, offset, bytes);
    // Use the file's own copy, which never changes: the caller may modify its bytes.
    this.#persistence.wrote(file, offset, file.bytes.subarray(offset, offset + bytes.length));
  }

  link(from: DirectoryEntry, to: DirectoryEntry): void {
    if (this.quirks.noHardLinks) throw diskError("EPERM", "link", to.path);
    const file = this.tree.node(from, "link");
    const replaced = to.directory.entries.get(to.name);
    if (this.quirks.linkReplaces && replaced?.kind === "file" && replaced !== file) this.tree.unlink(to);
    this.tree.link(from, to);
    this.#persistence.changed({ directory: to.directory, name: to.name, node: to.directory.entries.get(to.name) });
  }

  rename(from: DirectoryEntry, to: DirectoryEntry): void {
    const moved = this.tree.node(from, "rename");
    const replaced = to.directory.entries.get(to.name);
    if (this.quirks.renameRefusesToReplace && replaced !== undefined) throw diskError("EEXIST", "rename", to.path);
    this.#mustNotBeBusy(from, "rename");
    this.#mustNotBeBusy(to, "rename");
    this.#mustBeMovable(moved, replaced, to.path);
    if (this.quirks.filesYield && moved.kind === "directory" && replaced?.kind === "file") this.tree.unlink(to);
    this.tree.rename(from, to);
    this.#persistence.changed(
      { directory: to.directory, name: to.name, node: moved },
      { directory: from.directory, name: from.name, node: from.directory.entries.get(from.name) },
    );
  }

  unlink(at: DirectoryEntry): void {
    this.#mustNotBeBusy(at, "unlink");
    const removed = at.directory.entries.get(at.name);
    this.#mustBeShared(removed, "unlink", at.path);
    if (this.quirks.pendingDeletes && removed?.kind === "file" && this.#isOpen(removed)) {
      this.#pending.set(removed, [...(this.#pending.get(removed) ?? []), at]);
      return;
    }
    this.tree.unlink(at);
    this.#persistence.changed({ directory: at.directory, name: at.name, node: undefined });
  }

  mkdir(at: DirectoryEntry): void {
    this.tree.mkdir(at);
    this.#persistence.changed({ directory: at.directory, name: at.name, node: at.directory.entries.get(at.name) });
  }

  rmdir(at: DirectoryEntry): void {
    this.tree.rmdir(at);
    this.#persistence.changed({ directory: at.directory, name: at.name, node: undefined });
  }

  sync(handle: ServerHandle): void {
    this.flush(handle);
    this.syncFile(handle.file);
  }

  syncFile(file: FileNode): void {
    this.#persistence.syncFile(file);
  }

  /** The sync fails, and its data is never written again. */
  failSync(file: FileNode, handle?: ServerHandle): void {
    handle?.unsent.splice(0);
    this.#persistence.forgetWrites(file);
  }

  /** Writes that it has not sent are lost. */
  dropHandle(handle: ServerHandle): void {
    handle.unsent.splice(0);
    this.handles.delete(handle);
    this.#removePending(handle.file);
  }

  syncDirectory(directory: DirectoryNode, path: string): void {
    if (this.quirks.noDirectorySync) throw diskError("EINVAL", "sync", path);
    this.#persistence.syncDirectory(directory);
  }

  /** Makes everything durable: the state from which a scenario starts. */
  settle(): void {
    this.#persistence.syncEverything();
  }

  /** A killed process leaves its buffers to the kernel, which sends them. Its handles are closed. */
  closeHandlesOf(process: string): void {
    for (const handle of this.handles) if (handle.process === process) this.closeHandle(handle);
  }

  flush(handle: ServerHandle): void {
    for (const { offset, bytes } of handle.unsent.splice(0)) this.write(handle.file, offset, bytes);
  }

  closeHandle(handle: ServerHandle): void {
    this.flush(handle);
    this.handles.delete(handle);
    this.#removePending(handle.file);
  }

  crashImageCount(): number {
    return this.#persistence.imageCount();
  }

  /** Returns the disk as a power cut may leave it, without processes and caches. */
  crashImage(index: number): SimServer {
    return new SimServer(
      this.#options,
      this.#persistence.image(index, () => stampMsOf(this.#options)),
    );
  }

  /**
   * Marks a node as known to a process: from now on it is not interchangeable with another of the same name and
   * content.
   */
  identify<T extends TreeNode>(node: T): T {
    this.#identified.add(node);
    return node;
  }

  /**
   * Returns a text that is equal for equal states: names, contents, hard links, open handles and, if requested, what
   * a power cut could lose.
   */
  fingerprint(withDurability: boolean): string {
    const names = new Map<TreeNode, string>();
    const walk = (node: TreeNode): string => {
      const known = names.get(node);
      if (known !== undefined) return known;
      names.set(node, `#${names.size}`);
      const identity = this.#identified.has(node) ? `=${node.ino}` : "";
      if (node.kind === "file") return `${names.get(node)}${identity}${contentHash(node.bytes)}@${node.mtimeMs}`;
      const entries = [...node.entries].sort(([a], [b]) => (a < b ? -1 : 1));
      const shown = entries.map(([name, child]) => `${name}${this.#isPending(node, name) ? "!" : ""}:${walk(child)}`);
      return `{${shown.join()}}${identity}@${node.mtimeMs}`;
    };
    const tree = walk(this.tree.root);
    // The handles of one process in the order in which it opened them, because its variables refer to them in that
    // order.
    const open = new Map<string, string>();
    for (const { process, file, unsent } of this.handles) {
      const writes = unsent.map(({ offset, bytes }) => `${offset}:${contentHash(bytes)}`);
      open.set(process, `${open.get(process) ?? process}>${walk(file)}~${writes.join("+")}`);
    }
    const pending = withDurability ? this.#persistence.describe(walk, contentHash) : "";
    return hashOf(`${tree}|${[...open.values()].sort().join()}|${pending}`);
  }

  #mustNotBeBusy(at: DirectoryEntry, operation: string): void {
    if (!this.quirks.busyWhileOpen) return;
    const node = at.directory.entries.get(at.name);
    for (const handle of this.handles)
      if (node !== undefined && isAtOrBelow(node, handle.file)) throw diskError("EBUSY", operation, at.path);
  }

  /** A process may open `file`, or read it, only if nobody keeps it for itself. */
  mustBeSharedWith(process: string, file: TreeNode, operation: string, path: string): void {
    this.#mustBeShared(file, operation, path);
    const isOpenElsewhere = [...this.handles].some((handle) => handle.file === file && handle.process !== process);
    if (this.quirks.unshared?.includes(process) && isOpenElsewhere) throw diskError("EBUSY", operation, path);
  }

  #mustBeShared(node: TreeNode | undefined, operation: string, path: string): void {
    const { unshared } = this.quirks;
    if (unshared === undefined) return;
    for (const { file, process } of this.handles)
      if (file === node && unshared.includes(process)) throw diskError("EBUSY", operation, path);
  }

  #mustBeMovable(moved: TreeNode, replaced: TreeNode | undefined, path: string): void {
    const { busyRenames, directoriesStay } = this.quirks;
    if (directoriesStay && replaced?.kind === "directory") throw diskError("EPERM", "rename", path);
    this.#mustBeShared(moved, "rename", path);
    this.#mustBeShared(replaced, "rename", path);
    if (!busyRenames || moved === replaced) return;
    const isBusy = [...this.handles].some(
      ({ file }) => file === replaced || (moved.kind === "directory" && isAtOrBelow(moved, file)),
    );
    if (isBusy) throw diskError("EPERM", "rename", path);
  }

  #isOpen(file: FileNode): boolean {
    return [...this.handles].some((handle) => handle.file === file);
  }

  #isPending(directory: DirectoryNode, name: string): boolean {
    const node = this.#pending.size > 0 ? directory.entries.get(name) : undefined;
    if (node?.kind !== "file") return false;
    return this.#pending.get(node)?.some((at) => at.directory === directory && at.name === name) ?? false;
  }

  #mustNotBePending({ directory, name, path }: DirectoryEntry, operation: string): void {
    if (this.#isPending(directory, name)) throw diskError("EPERM", operation, path);
  }

  #removePending(file: FileNode): void {
    const entries = this.#pending.get(file);
    if (entries === undefined || this.#isOpen(file)) return;
    this.#pending.delete(file);
    for (const at of entries) {
      this.tree.unlink(at);
      this.#persistence.changed({ directory: at.directory, name: at.name, node: undefined });
    }
  }

  #emptied(file: FileNode): FileNode {
    this.tree.empty(file);
    this.#persistence.emptied(file);
    return file;
  }
}

/** Returns the stamp for a file that is changed now. */
function stampMsOf({ quirks, now }: ServerOptions): number {
  const { mtimeGranularityMs = 1, clockOffsetMs = 0 } = quirks;
  return Math.floor((now() + clockOffsetMs) / mtimeGranularityMs) * mtimeGranularityMs;
}

function isAtOrBelow(node: TreeNode, file: FileNode): boolean {
  if (node.kind === "file") return node === file;
  for (const child of node.entries.values()) if (isAtOrBelow(child, file)) return true;
  return false;
}
