// A disk that lives in this process and ends with it, so that `memory:` runs the same code as a
// directory.
import { diskError, findIfThere, hasErrno } from "../disk-error.ts";
import type { Disk } from "../disk.ts";
import { MemoryFile } from "./file.ts";
import { statOf, Tree, type Place } from "./tree.ts";

/** `onChange` hears of each name that was made, moved or removed, by the path of its directory. */
export function createMemoryDisk(now: () => number, onChange: (directory: string) => void = () => undefined): Disk {
  const tree = new Tree(now);
  const change = <T>(path: string, operation: string, action: (place: Place) => T): T => {
    const result = action(tree.place(path, operation));
    onChange(parentOf(path));
    return result;
  };
  return {
    volume: { kind: "local", type: "memory", mountOptions: [] },

    async createFile(path, bytes) {
      change(path, "create", (place) => tree.write(tree.create(place, "create"), 0, bytes));
    },
    async readFile(path, bytesMax) {
      const { bytes } = tree.file(tree.place(path, "read"), "read");
      if (bytes.length > bytesMax) throw diskError("EFBIG", "read", path);
      // The caller may change what it gets.
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
          ? change(path, "open", (place) => tree.create(place, "open"))
          : tree.file(tree.place(path, "open"), "open");
      return new MemoryFile(tree, node, path, mode !== "read");
    },
    async link(from, to) {
      change(to, "link", (place) => tree.link(tree.place(from, "link"), place));
    },
    async rename(from, to) {
      change(to, "rename", (place) => tree.rename(tree.place(from, "rename"), place));
      onChange(parentOf(from));
    },
    async unlink(path) {
      change(path, "unlink", (place) => tree.unlink(place));
    },
    async mkdir(path) {
      change(path, "mkdir", (place) => tree.mkdir(place));
    },
    async rmdir(path) {
      change(path, "rmdir", (place) => tree.rmdir(place));
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
    // There are no symbolic links here.
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
      tree.directory(path, "sync");
    },
  };
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}
