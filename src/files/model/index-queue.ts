// IndexQueue: how the operations of a tree report changes to the index side. The tree knows nothing
// else about it. A process that neither indexes nor summarizes has none.
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { Change } from "./file-tree.ts";

export interface IndexQueue {
  /**
   * Called under the lock, after the change was announced and before it is committed. What the
   * change removes (the path of a removal, `from` of a move, the path that an add replaces) must
   * not be found from now on. A failure stops the operation, and the files are unchanged. If the
   * process dies after this and before the commit, files are not found until the announced change
   * is processed.
   */
  hide(change: Change): Promise<void>;
  /**
   * Called after the commit. The index side follows the change log, so this is only a hint. With
   * `token`, that of the tree lock for `locks.receive`, it publishes a ticket and returns its id. A
   * failure does not fail the operation.
   */
  enqueue(change: Change, options?: { readonly token?: string | undefined }): Promise<string>;
  /** Indexes at once, under the caller's hold, which cannot be transferred. Returns the id of the ticket, or "". */
  indexWithin(change: Change, hold: PathHold): Promise<string>;
  /** True if the content with this stamp can be found under this path. */
  isIndexed(path: string, stamp: string): Promise<boolean>;
}
