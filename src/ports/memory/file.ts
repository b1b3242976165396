// An open file of the memory disk.
import { diskError } from "../disk-error.ts";
import type { DiskFile, FileStat } from "../disk.ts";
import { statOf, type FileNode, type Tree } from "./tree.ts";

export class MemoryFile implements DiskFile {
  readonly #tree: Tree;
  readonly #node: FileNode;
  readonly #path: string;
  readonly #isWritable: boolean;
  readonly #users: Set<() => Promise<void>> = new Set();
  #closing: Promise<void> | undefined;

  constructor(tree: Tree, node: FileNode, path: string, isWritable: boolean) {
    this.#tree = tree;
    this.#node = node;
    this.#path = path;
    this.#isWritable = isWritable;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    this.#mustBeOpen("read");
    return this.#node.bytes.slice(offset, offset + length);
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    this.#mustBeOpen("write");
    if (!this.#isWritable) throw diskError("EBADF", "write", this.#path);
    this.#tree.write(this.#node, offset, bytes);
  }

  async sync(): Promise<void> {
    this.#mustBeOpen("sync");
    // Yield one turn of the event loop, as a real sync does. Otherwise a loop of appends would
    // never leave the promise queue, and no timer of the process would fire.
    // oxlint-disable-next-line no-restricted-globals
    await new Promise<void>((resolve) => setImmediate(resolve));
  }

  async stat(): Promise<FileStat> {
    this.#mustBeOpen("stat");
    return statOf(this.#node);
  }

  /**
   * Registers another user of the file: `close` calls `end` and waits for it. The returned function
   * removes the registration.
   */
  use(end: () => Promise<void>): () => void {
    this.#users.add(end);
    return () => this.#users.delete(end);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#users].map((end) => end()));
  }

  #mustBeOpen(operation: string): void {
    if (this.#closing !== undefined) throw diskError("EBADF", operation, this.#path);
  }
}
