// How the operations of a tree tell the index side of a change. The tree knows nothing else of it.
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { Change } from "./file-tree.ts";

export interface IndexQueue {
  /** False: nothing is indexed or summarised, and `add` releases its lock itself. */
  readonly isOn: boolean;
  /**
   * Under the lock, after the change was announced and before it is committed: what the change takes away (the path
   * of a removal, `from` of a move, the path that an add replaces) must not be found from now on. A failure stops the
   * operation, and nothing has happened to the files. A process that dies after this and before the commit leaves
   * files that are not found until the announced change is worked on.
   */
  hide(change: Change): Promise<void>;
  /**
   * After the commit. Gives the id of the ticket, whose key is `index/<number>`. A failure is no failure of the
   * operation: the dispatcher makes the ticket later. `token` is that of the tree lock, for `locks.receive`.
   */
  enqueue(change: Change, options?: { readonly token?: string | undefined }): Promise<string>;
  /** Indexes at once, under the caller's hold, which cannot be transferred. Gives the id of the ticket, or "". */
  indexWithin(change: Change, hold: PathHold): Promise<string>;
  /** Whether the content with this stamp can be found under this path. */
  isIndexed(path: string, stamp: string): Promise<boolean>;
}

/** For a tree without an index and without summaries. */
export const noIndex: IndexQueue = {
  isOn: false,
  hide: async () => undefined,
  enqueue: async () => "",
  indexWithin: async () => "",
  isIndexed: async () => false,
};
