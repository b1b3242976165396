// The files that the client of one machine has found under their names, and goes on to act on until
// it asks for their directory anew.
import type { FileNode, TreeNode } from "../../ports/memory/tree.ts";
import { parentOf } from "./paths.ts";
import type { Quirks, SimServer } from "./server.ts";

export class RememberedFiles {
  readonly #server: SimServer;
  readonly #quirks: Quirks;
  readonly #files = new Map<string, FileNode>();

  constructor(server: SimServer, quirks: Quirks) {
    this.#server = server;
    this.#quirks = quirks;
  }

  found(path: string, node: TreeNode | undefined): void {
    if (this.#quirks.fileHandles && node?.kind === "file") this.#files.set(path, this.#server.identify(node));
  }

  forget(path: string): void {
    this.#files.delete(path);
  }

  /**
   * It was opened or listed: the client compares it with what it knew, and looks the names up
   * again.
   */
  asked(directory: string): void {
    for (const path of this.#files.keys()) if (parentOf(path) === directory) this.#files.delete(path);
  }

  /**
   * The file that this machine still takes for the one under `path`, though another is there now,
   * or none.
   */
  findOld(path: string): FileNode | undefined {
    const remembered = this.#files.get(path);
    return remembered === undefined || remembered === this.#server.find(path) ? undefined : remembered;
  }

  /** Equal for those that can give the same old answers, now or later. */
  describe(): string {
    return [...this.#files]
      .map(([path, { ino }]) => `${path}=${ino}`)
      .sort()
      .join();
  }
}
