// A hint that something changed; the truth is always found by looking.

export interface Watch {
  /**
   * Calls `onHint` when something in `directory` may have changed, until the returned function is
   * called. Hints may come late, doubled, for nothing, or never (a network mount reports no change
   * by another machine). Never throws and never keeps the process alive.
   */
  start(directory: string, onHint: () => void): () => void;
}
