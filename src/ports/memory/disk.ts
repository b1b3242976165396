// A disk in the memory of this process, so that `memory:` runs the same code as a directory.
import { diskError, findIfThere, hasErrno } from "../disk-error.ts";
import type { Disk } from "../disk.ts";
import { MemoryFile } from "./file.ts";
import { statOf, Tree, type DirectoryEntry } from "./tree.ts";

/** `onChange` is called with the parent directory of each name that is created, moved or removed. */
export function createMemoryDisk(now: () => number, onChange: (directory: string) => void = () => undefined): Disk {
  const tree = new Tree(now);
  const change = <T>(path: string, operation: string, action: (entry: DirectoryEntry) => T): T => {
    const result = action(tree.entry(path, operation));
    onChange(parentOf(path));
    return result;
  };
  return {
    volume: { kind: "local", type: "memory", mountOptions: [] },

    async createFile(path, bytes) {
      change(path, "create", (entry) => tree.write(tree.create(entry, "create"), 0, bytes));
    },
    async readFile(path, bytesMax) {
      const { bytes } = tree.file(tree.entry(path, "read"), "read");
      if (bytes.length > bytesMax) throw diskError("EFBIG", "read", path);
      // The caller may modify the result.
      return bytes.slice();
    },
    async canOpen(path) {
      try {
        tree.nodeAt(path, "open");
        return true;
      } catch (error) {
        if (hasErrno(error, "ENOENT", "ENOTDIR")) return false;
        throw error;
      }
    },
    async open(path, mode) {
      const node =
        mode === "create"
          ? change(path, "open", (entry) => tree.create(entry, "open"))
          : tree.file(tree.entry(path, "open"), "open");
      return new MemoryFile(tree, node, path, mode !== "read");
    },
    async link(from, to) {
      change(to, "link", (entry) => tree.link(tree.entry(from, "link"), entry));
    },
    async rename(from, to) {
      change(to, "rename", (entry) => tree.rename(tree.entry(from, "rename"), entry));
      onChange(parentOf(from));
    },
    async unlink(path) {
      change(path, "unlink", (entry) => tree.unlink(entry));
    },
    async mkdir(path) {
      change(path, "mkdir", (entry) => tree.mkdir(entry));
    },
    async rmdir(path) {
      change(path, "rmdir", (entry) => tree.rmdir(entry));
    },
    async list(path) {
      return [...tree.directory(path, "list").entries.keys()];
    },
    async listSome(path, count) {
      return [...tree.directory(path, "list").entries.keys()].slice(0, count);
    },
    async stat(path) {
      return statOf(tree.nodeAt(path, "stat"));
    },
    findStat(path) {
      return findIfThere(this.stat(path));
    },
    async look(path) {
      return statOf(tree.nodeAt(path, "look"));
    },
    // This disk has no symbolic links.
    async realPath(path) {
      tree.nodeAt(path, "resolve");
      return path;
    },
    async hasLink() {
      return false;
    },
    async readLink(path) {
      tree.nodeAt(path, "read link");
      throw diskError("EINVAL", "read link", path);
    },
    async syncDirectory(path) {
      return String(tree.directory(path, "sync").ino);
    },
  };
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}
