// A disk that lives in this process and ends with it, so that `memory:` runs the same code as a directory.
import { diskError, hasErrno } from "../disk-error.ts";
import type { Disk, DiskFile, FileStat } from "../disk.ts";
import { Tree, type FileNode, type TreeNode } from "./tree.ts";

export function createMemoryDisk(now: () => number): Disk {
  const tree = new Tree(now);
  return {
    volume: { kind: "local", type: "memory", mountOptions: [] },

    async createFile(path, bytes) {
      tree.write(tree.create(tree.place(path, "create"), "create"), 0, bytes);
    },
    async readFile(path, bytesMax) {
      const { bytes } = tree.file(tree.place(path, "read"), "read");
      if (bytes.length > bytesMax) throw diskError("EFBIG", "read", path);
      return bytes;
    },
    async canOpen(path) {
      try {
        tree.node(tree.place(path, "open"), "open");
        return true;
      } catch (error) {
        if (hasErrno(error, "ENOENT", "ENOTDIR")) return false;
        throw error;
      }
    },
    async open(path, mode) {
      const place = tree.place(path, "open");
      return openFile(tree, mode === "create" ? tree.create(place, "open") : tree.file(place, "open"), path);
    },
    async link(from, to) {
      tree.link(tree.place(from, "link"), tree.place(to, "link"));
    },
    async rename(from, to) {
      tree.rename(tree.place(from, "rename"), tree.place(to, "rename"));
    },
    async unlink(path) {
      tree.unlink(tree.place(path, "unlink"));
    },
    async mkdir(path) {
      tree.mkdir(tree.place(path, "mkdir"));
    },
    async rmdir(path) {
      tree.rmdir(tree.place(path, "rmdir"));
    },
    async list(path) {
      return [...tree.directory(path, "list").entries.keys()];
    },
    async stat(path) {
      return statOf(path === "/" ? tree.root : tree.node(tree.place(path, "stat"), "stat"));
    },
    async syncDirectory(path) {
      tree.directory(path, "sync");
    },
  };
}

function openFile(tree: Tree, file: FileNode, path: string): DiskFile {
  let closed = false;
  const mustBeOpen = (operation: string): void => {
    if (closed) throw diskError("EBADF", operation, path);
  };
  return {
    async read(offset, length) {
      mustBeOpen("read");
      return file.bytes.slice(offset, offset + length);
    },
    async write(offset, bytes) {
      mustBeOpen("write");
      tree.write(file, offset, bytes);
    },
    async sync() {
      mustBeOpen("sync");
    },
    async stat() {
      mustBeOpen("stat");
      return statOf(file);
    },
    async close() {
      closed = true;
    },
  };
}

export function statOf(node: TreeNode): FileStat {
  const size = node.kind === "file" ? node.bytes.length : node.entries.size;
  return { kind: node.kind, size, mtimeMs: node.mtimeMs, identity: `memory:${node.ino}` };
}
