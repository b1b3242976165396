// The simulated disk as the server sees it: one tree, what of it is durable, and which promises
// this file system does not keep.
import { diskError } from "../../ports/disk-error.ts";
import type { Volume } from "../../ports/disk.ts";
import { Tree, type DirectoryNode, type FileNode, type Place, type TreeNode } from "../../ports/memory/tree.ts";
import { hashOf, hashOfBytes } from "../explorer/hash.ts";
import type { Touch } from "./call.ts";
import { Persistence, type Profile } from "./persistence.ts";

/**
 * Each is off by default; what is on is either a choice of the explorer or a defect of the file
 * system.
 */
export interface Quirks {
  /** A machine may be shown the listing of a directory that it saw before. */
  readonly staleListings?: boolean;
  /** A machine may be told that a name is absent because it was when that machine last looked. */
  readonly staleAbsence?: boolean;
  /**
   * A machine may be told that a name which it has opened before is still there, though another
   * machine has removed it.
   */
  readonly stalePresence?: boolean;
  /**
   * A machine may act on the file that it once found under a name, although another machine has
   * removed that name: read it, or link from it (ESTALE when it has no other name), or say what it
   * was. Until it opens or lists the directory.
   */
  readonly fileHandles?: boolean;
  /**
   * The server may go away, before or after it has done what it was asked for, and be back at the
   * next request: EHOSTDOWN, as many times as the scenario allows.
   */
  readonly outages?: boolean;
  /**
   * A machine may act through the directory that it once found under a path, although another
   * machine moved or removed it.
   */
  readonly directoryHandles?: boolean;
  /**
   * A change may say ESTALE, before or after it was done, although what it is about is there: as
   * many times as the scenario allows.
   */
  readonly staleHandles?: boolean;
  /**
   * What is written through a handle reaches the server, and with it other machines, at a sync or
   * close, however late.
   */
  readonly lateWrites?: boolean;
  readonly noHardLinks?: boolean;
  readonly noDirectorySync?: boolean;
  /**
   * Two creators of one name are both told that they made it; the second one empties the file of
   * the first.
   */
  readonly exclusiveCreateReplaces?: boolean;
  /** A hard link over a taken name replaces it instead of failing. */
  readonly linkReplaces?: boolean;
  /** Renaming over an existing file fails, as on some Windows servers. */
  readonly renameRefusesToReplace?: boolean;
  /**
   * A rename over an existing file takes that name away first: a machine that dies in between leaves
   * neither the old file nor the new one there. So do clients of SMB and NFS where the file is open.
   */
  readonly renameVacates?: boolean;
  /**
   * A file that anybody has open cannot be renamed or removed, nor can a directory above it be
   * renamed, as on Windows.
   */
  readonly busyWhileOpen?: boolean;
  readonly caseInsensitive?: boolean;
  readonly mtimeGranularityMs?: number;
  /**
   * A file that was just made has any stamp, until its maker sets it a moment later: an NFS server
   * keeps there by what it knows the maker's request again.
   */
  readonly lateStamps?: boolean;
  /** How far the clock that stamps files is ahead of the true time. */
  readonly clockOffsetMs?: number;
  /** "uncompared": known to be wrong, a grant counts whatever the name leads to. */
  readonly osLocks?: "exclude" | "per machine" | "none" | "uncompared";
  /**
   * "hints": at once, once for each watch. "any time": once for each watch, whenever the explorer
   * chooses, as often as the scenario allows.
   */
  readonly watch?: "hints" | "any time" | "silent";
}

export interface ServerOptions {
  readonly profile: Profile;
  readonly quirks: Quirks;
  readonly volume: Volume;
  /** True time, in milliseconds; the server stamps files with it. */
  readonly now: () => number;
}

export interface UnsentWrite {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** An open file of some process. */
export interface Handle {
  readonly process: string;
  readonly file: FileNode;
  /**
   * Written, but not yet sent: by this or any other handle of the same machine, as its kernel sends
   * a file as a whole.
   */
  readonly unsent: UnsentWrite[];
}

// Contents are never changed in place, so each is hashed once.
const contentHashes = new WeakMap<Uint8Array, string>();

function contentHash(bytes: Uint8Array): string {
  const known = contentHashes.get(bytes);
  if (known !== undefined) return known;
  const hash = hashOfBytes(bytes);
  contentHashes.set(bytes, hash);
  return hash;
}

export class SimServer {
  readonly quirks: Quirks;
  readonly volume: Volume;
  readonly tree: Tree;
  readonly handles: Set<Handle> = new Set();
  readonly #options: ServerOptions;
  readonly #persistence: Persistence;
  readonly #identified = new WeakSet<TreeNode>();

  constructor(options: ServerOptions, tree?: Tree) {
    this.#options = options;
    this.quirks = options.quirks;
    this.volume = options.volume;
    this.tree = tree ?? new Tree(() => stampMsOf(this.#options));
    this.#persistence = new Persistence(options.profile, this.tree.root);
    if (tree !== undefined) this.#persistence.adopt(tree.root);
  }

  /**
   * A server with the same files, all of them durable, which goes its own way from now on. Open
   * files are not copied: there must be none.
   */
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

  /** Where `path` points; the directories above it must exist. */
  place(path: string, operation: string): Place {
    const place = this.tree.place(this.#spelled(path), operation);
    return this.quirks.caseInsensitive ? { ...place, path } : place;
  }

  node(path: string, operation: string): TreeNode {
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
   * Where this directory is now, or under which name, of several, this file; undefined when it is
   * nowhere.
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
    return { what: this.quirks.caseInsensitive ? path.toLowerCase() : path, changes };
  }

  /**
   * What is done through a handle is seen under every name of the file; if that is not just the one
   * it was opened by, it touches everything.
   */
  touchOfFile(file: FileNode, path: string, changes: boolean): Touch {
    const isOnlyThere = file.links === 1 && this.find(path) === file;
    return isOnlyThere ? this.touch(path, changes) : { what: "", changes };
  }

  /**
   * In the spelling in which the names were made, as a file system keeps it that does not tell
   * upper from lower case.
   */
  #spelled(path: string): string {
    if (!this.quirks.caseInsensitive) return path;
    let directory: TreeNode | undefined = this.tree.root;
    const names = path.split("/").map((name) => {
      const entries: [string, TreeNode][] = directory?.kind === "directory" ? [...directory.entries] : [];
      const same = entries.find(([other]) => other.toLowerCase() === name.toLowerCase());
      if (name !== "") directory = same?.[1];
      return same?.[0] ?? name;
    });
    return names.join("/");
  }

  create(at: Place, operation: string): FileNode {
    const taken = at.directory.entries.get(at.name);
    if (this.quirks.exclusiveCreateReplaces && taken?.kind === "file") return this.#emptied(taken);
    const file = this.tree.create(at, operation);
    if (this.quirks.lateStamps) file.mtimeMs = 0;
    this.#persistence.changed({ directory: at.directory, name: at.name, node: file });
    return file;
  }

  /** What the maker of a file does next, where stamps are late. */
  stamp(file: FileNode): void {
    file.mtimeMs = stampMsOf(this.#options);
  }

  write(file: FileNode, offset: number, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.tree.write(file, offset, bytes);
    // A part of the file's own content, which never changes; what the caller handed in may.
    this.#persistence.wrote(file, offset, file.bytes.subarray(offset, offset + bytes.length));
  }

  link(from: Place, to: Place): void {
    if (this.quirks.noHardLinks) throw diskError("EPERM", "link", to.path);
    const file = this.tree.node(from, "link");
    const replaced = to.directory.entries.get(to.name);
    if (this.quirks.linkReplaces && replaced?.kind === "file" && replaced !== file) this.tree.unlink(to);
    this.tree.link(from, to);
    this.#persistence.changed({ directory: to.directory, name: to.name, node: to.directory.entries.get(to.name) });
  }

  rename(from: Place, to: Place): void {
    const moved = this.tree.node(from, "rename");
    const replaced = to.directory.entries.get(to.name);
    if (this.quirks.renameRefusesToReplace && replaced !== undefined) throw diskError("EEXIST", "rename", to.path);
    this.#mustNotBeBusy(from, "rename");
    this.#mustNotBeBusy(to, "rename");
    this.tree.rename(from, to);
    this.#persistence.changed(
      { directory: to.directory, name: to.name, node: moved },
      { directory: from.directory, name: from.name, node: from.directory.entries.get(from.name) },
    );
  }

  unlink(at: Place): void {
    this.#mustNotBeBusy(at, "unlink");
    this.tree.unlink(at);
    this.#persistence.changed({ directory: at.directory, name: at.name, node: undefined });
  }

  mkdir(at: Place): void {
    this.tree.mkdir(at);
    this.#persistence.changed({ directory: at.directory, name: at.name, node: at.directory.entries.get(at.name) });
  }

  rmdir(at: Place): void {
    this.tree.rmdir(at);
    this.#persistence.changed({ directory: at.directory, name: at.name, node: undefined });
  }

  sync(handle: Handle): void {
    this.flush(handle);
    this.syncFile(handle.file);
  }

  syncFile(file: FileNode): void {
    this.#persistence.syncFile(file);
  }

  /** The sync fails, and what it should have written is never tried again. */
  failSync(file: FileNode, handle?: Handle): void {
    handle?.unsent.splice(0);
    this.#persistence.forgetWrites(file);
  }

  /** Whatever it had not sent is lost. */
  dropHandle(handle: Handle): void {
    handle.unsent.splice(0);
    this.handles.delete(handle);
  }

  syncDirectory(directory: DirectoryNode, path: string): void {
    if (this.quirks.noDirectorySync) throw diskError("EINVAL", "sync", path);
    this.#persistence.syncDirectory(directory);
  }

  /** Everything so far counts as durable: the ground that a scenario starts from. */
  settle(): void {
    this.#persistence.syncEverything();
  }

  /**
   * A killed process leaves its buffers to the kernel, which sends them; its handles are closed.
   */
  closeHandlesOf(process: string): void {
    for (const handle of this.handles) if (handle.process === process) this.closeHandle(handle);
  }

  flush(handle: Handle): void {
    for (const { offset, bytes } of handle.unsent.splice(0)) this.write(handle.file, offset, bytes);
  }

  closeHandle(handle: Handle): void {
    this.flush(handle);
    this.handles.delete(handle);
  }

  crashImageCount(): number {
    return this.#persistence.imageCount();
  }

  /** The disk as a power cut may leave it; no process and no cache survives. */
  crashImage(index: number): SimServer {
    return new SimServer(
      this.#options,
      this.#persistence.image(index, () => stampMsOf(this.#options)),
    );
  }

  /**
   * A process was told which file this is, or remembers it: from now on it is not the same as
   * another with the same name and content.
   */
  identify<T extends TreeNode>(node: T): T {
    this.#identified.add(node);
    return node;
  }

  /**
   * Equal for equal states: names, contents, hard links, open handles and, when asked, what a power
   * cut could lose.
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
      return `{${entries.map(([name, child]) => `${name}:${walk(child)}`).join()}}${identity}@${node.mtimeMs}`;
    };
    const tree = walk(this.tree.root);
    // Those of one process in the order in which it opened them: which of its variables is which.
    const open = new Map<string, string>();
    for (const { process, file, unsent } of this.handles) {
      const writes = unsent.map(({ offset, bytes }) => `${offset}:${contentHash(bytes)}`);
      open.set(process, `${open.get(process) ?? process}>${walk(file)}~${writes.join("+")}`);
    }
    const pending = withDurability ? this.#persistence.describe(walk, contentHash) : "";
    return hashOf(`${tree}|${[...open.values()].sort().join()}|${pending}`);
  }

  #mustNotBeBusy(at: Place, operation: string): void {
    if (!this.quirks.busyWhileOpen) return;
    const node = at.directory.entries.get(at.name);
    for (const handle of this.handles)
      if (node !== undefined && isAtOrBelow(node, handle.file)) throw diskError("EBUSY", operation, at.path);
  }

  #emptied(file: FileNode): FileNode {
    this.tree.empty(file);
    this.#persistence.emptied(file);
    return file;
  }
}

/** With what it stamps a file that is changed now. */
function stampMsOf({ quirks, now }: ServerOptions): number {
  const { mtimeGranularityMs = 1, clockOffsetMs = 0 } = quirks;
  return Math.floor((now() + clockOffsetMs) / mtimeGranularityMs) * mtimeGranularityMs;
}

function isAtOrBelow(node: TreeNode, file: FileNode): boolean {
  if (node.kind === "file") return node === file;
  for (const child of node.entries.values()) if (isAtOrBelow(child, file)) return true;
  return false;
}
