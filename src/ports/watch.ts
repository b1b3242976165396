// A hint that something changed. Only a check of the disk shows what did.

/** Hints that a directory has changed. A hint is never proof: check the disk. */
export interface Watch {
  /**
   * Calls `onHint` when an entry of `directory` may have changed, until the returned function is
   * called. Hints may be late, repeated, wrong or missing (a network mount reports no change by
   * another machine). Never throws, and never keeps the process alive.
   */
  start(directory: string, onHint: () => void): () => void;
}
