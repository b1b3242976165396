// The files that the client of one machine has found under their names. It continues to use them until it asks the
// server about their directory again.
import type { FileNode, TreeNode } from "../../ports/memory/tree.ts";
import { parentOf } from "./paths.ts";
import type { ServerQuirks, SimServer } from "./server.ts";

export class RememberedFiles {
  readonly #server: SimServer;
  readonly #quirks: ServerQuirks;
  readonly #files = new Map<string, FileNode>();

  constructor(server: SimServer, quirks: ServerQuirks) {
    this.#server = server;
    this.#quirks = quirks;
  }

  found(path: string, node: TreeNode | undefined): void {
    if (this.#quirks.fileHandles && node?.kind === "file") this.#files.set(path, this.#server.identify(node));
  }

  forget(path: string): void {
    this.#files.delete(path);
  }

  /** The directory was opened or listed: the client looks up its names again. */
  asked(directory: string): void {
    for (const path of this.#files.keys()) if (parentOf(path) === directory) this.#files.delete(path);
  }

  /**
   * Returns the file that this machine still believes to be under `path`, although another one is there now, or none.
   */
  findOld(path: string): FileNode | undefined {
    const remembered = this.#files.get(path);
    return remembered === undefined || remembered === this.#server.find(path) ? undefined : remembered;
  }

  /** Returns a text that is equal for caches that can give the same stale answers, now or later. */
  describe(): string {
    return [...this.#files]
      .map(([path, { ino }]) => `${path}=${ino}`)
      .sort()
      .join();
  }
}
