// A tree of files and directories in memory with the naming rules of POSIX. The memory disk and the
// simulated disk share it.
import { diskError } from "../disk-error.ts";
import type { FileStat } from "../disk.ts";

export interface FileNode {
  readonly kind: "file";
  readonly ino: number;
  /** Replaced on every change, never modified in place, so that a snapshot is a reference. */
  bytes: Uint8Array;
  mtimeMs: number;
  /** How many names it has. */
  links: number;
}
export interface DirectoryNode {
  readonly kind: "directory";
  readonly ino: number;
  readonly entries: Map<string, TreeNode>;
  mtimeMs: number;
  /** Set once its last name is gone: an open handle then gets ESTALE. */
  removed: boolean;
}
export type TreeNode = FileNode | DirectoryNode;

/** A name in a directory, existing or not. */
export interface DirectoryEntry {
  readonly directory: DirectoryNode;
  readonly name: string;
  readonly path: string;
}

export class Tree {
  readonly root: DirectoryNode;
  readonly #now: () => number;
  #lastIno = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.root = this.newDirectory();
  }

  /** `ino` is given for a directory that must have the same identity as one in another tree. */
  newDirectory(ino?: number): DirectoryNode {
    return { kind: "directory", ino: this.#number(ino), entries: new Map(), mtimeMs: this.#now(), removed: false };
  }

  newFile(bytes: Uint8Array, ino?: number): FileNode {
    return { kind: "file", ino: this.#number(ino), bytes, mtimeMs: this.#now(), links: 0 };
  }

  #number(ino = this.#lastIno + 1): number {
    this.#lastIno = Math.max(this.#lastIno, ino);
    return ino;
  }

  /** Returns an independent copy. `twins` receives each node and its copy. */
  copy(now: () => number, twins: Map<TreeNode, TreeNode>): Tree {
    const tree = new Tree(now);
    copyInto(tree.root, this.root, twins);
    tree.#lastIno = this.#lastIno;
    return tree;
  }

  /** Returns the location of `path`; the directories above it must exist. */
  entry(path: string, operation: string): DirectoryEntry {
    let directory = this.root;
    let last: string | undefined;
    for (const name of path.split("/")) {
      if (name === "") continue;
      if (last !== undefined) {
        const next = directory.entries.get(last);
        if (next === undefined) throw diskError("ENOENT", operation, path);
        if (next.kind !== "directory") throw diskError("ENOTDIR", operation, path);
        directory = next;
      }
      last = name;
    }
    if (last === undefined) throw diskError("EISDIR", operation, path);
    return { directory, name: last, path };
  }

  directory(path: string, operation: string): DirectoryNode {
    if (path.split("/").every((name) => name === "")) return this.root;
    const node = this.node(this.entry(path, operation), operation);
    if (node.kind !== "directory") throw diskError("ENOTDIR", operation, path);
    return node;
  }

  /** Also works for the root, which is in no directory. */
  nodeAt(path: string, operation: string): TreeNode {
    return path === "/" ? this.root : this.node(this.entry(path, operation), operation);
  }

  node(at: DirectoryEntry, operation: string): TreeNode {
    const node = at.directory.entries.get(at.name);
    if (node === undefined) throw diskError("ENOENT", operation, at.path);
    return node;
  }

  file(at: DirectoryEntry, operation: string): FileNode {
    const node = this.node(at, operation);
    if (node.kind !== "file") throw diskError("EISDIR", operation, at.path);
    return node;
  }

  create(at: DirectoryEntry, operation: string): FileNode {
    this.#mustBeFree(at, operation);
    const file = this.newFile(new Uint8Array());
    this.#enter(at, file);
    return file;
  }

  write(file: FileNode, offset: number, bytes: Uint8Array): void {
    // An empty write does nothing: it does not even extend the file.
    if (bytes.length === 0) return;
    const size = Math.max(file.bytes.length, offset + bytes.length);
    const content = new Uint8Array(size);
    content.set(file.bytes);
    content.set(bytes, offset);
    file.bytes = content;
    file.mtimeMs = this.#now();
  }

  empty(file: FileNode): void {
    file.bytes = new Uint8Array();
    file.mtimeMs = this.#now();
  }

  link(from: DirectoryEntry, to: DirectoryEntry): void {
    const file = this.node(from, "link");
    if (file.kind !== "file") throw diskError("EPERM", "link", from.path);
    this.#mustBeFree(to, "link");
    this.#enter(to, file);
  }

  rename(from: DirectoryEntry, to: DirectoryEntry): void {
    const moved = this.node(from, "rename");
    const replaced = to.directory.entries.get(to.name);
    if (to.directory.removed) throw diskError("ENOENT", "rename", to.path);
    if (replaced === moved) return;
    if (replaced !== undefined) this.#mustBeReplaceable(moved, replaced, to);
    if (moved.kind === "directory" && this.#contains(moved, to.directory)) throw diskError("EINVAL", "rename", to.path);
    if (replaced !== undefined) this.#leave(to);
    this.#leave(from);
    if (moved.kind === "directory") moved.removed = false;
    this.#enter(to, moved);
  }

  unlink(at: DirectoryEntry): void {
    if (this.node(at, "unlink").kind === "directory") throw diskError("EISDIR", "unlink", at.path);
    this.#leave(at);
  }

  mkdir(at: DirectoryEntry): void {
    this.#mustBeFree(at, "mkdir");
    this.#enter(at, this.newDirectory());
  }

  rmdir(at: DirectoryEntry): void {
    const node = this.node(at, "rmdir");
    if (node.kind !== "directory") throw diskError("ENOTDIR", "rmdir", at.path);
    if (node.entries.size > 0) throw diskError("ENOTEMPTY", "rmdir", at.path);
    this.#leave(at);
  }

  #mustBeFree(at: DirectoryEntry, operation: string): void {
    if (at.directory.removed) throw diskError("ENOENT", operation, at.path);
    if (at.directory.entries.has(at.name)) throw diskError("EEXIST", operation, at.path);
  }

  #mustBeReplaceable(moved: TreeNode, replaced: TreeNode, to: DirectoryEntry): void {
    if (replaced.kind === "file" && moved.kind === "directory") throw diskError("ENOTDIR", "rename", to.path);
    if (replaced.kind === "directory" && moved.kind === "file") throw diskError("EISDIR", "rename", to.path);
    if (replaced.kind === "directory" && replaced.entries.size > 0) throw diskError("ENOTEMPTY", "rename", to.path);
  }

  #contains(outer: DirectoryNode, inner: DirectoryNode): boolean {
    if (outer === inner) return true;
    for (const node of outer.entries.values())
      if (node.kind === "directory" && this.#contains(node, inner)) return true;
    return false;
  }

  #enter(at: DirectoryEntry, node: TreeNode): void {
    at.directory.entries.set(at.name, node);
    at.directory.mtimeMs = this.#now();
    if (node.kind === "file") node.links++;
  }

  #leave(at: DirectoryEntry): void {
    const node = at.directory.entries.get(at.name);
    at.directory.entries.delete(at.name);
    at.directory.mtimeMs = this.#now();
    if (node?.kind === "file") node.links--;
    else if (node !== undefined) node.removed = true;
  }
}

function copyInto(to: DirectoryNode, from: DirectoryNode, twins: Map<TreeNode, TreeNode>): void {
  to.mtimeMs = from.mtimeMs;
  twins.set(from, to);
  for (const [name, node] of from.entries) {
    const twin = twins.get(node) ?? (node.kind === "file" ? { ...node } : { ...node, entries: new Map() });
    // A file may have several names; a directory has one.
    if (!twins.has(node) && node.kind === "directory" && twin.kind === "directory") copyInto(twin, node, twins);
    twins.set(node, twin);
    to.entries.set(name, twin);
  }
}

export function statOf(node: TreeNode): FileStat {
  const size = node.kind === "file" ? node.bytes.length : node.entries.size;
  const { kind, mtimeMs } = node;
  // Nothing in memory sets times explicitly.
  return { kind, size, mtimeMs, ctimeMs: mtimeMs, identity: `memory:${node.ino}`, device: "memory" };
}
