// The interface of a search index, for the built-in one and for others.
import type { Cancel } from "../../common.ts";

/** Options of `search`. */
export interface SearchOptions extends Cancel {
  /** Searches only this directory. Default: the whole tree. */
  under?: string | undefined;
  /** The largest number of hits, up to 10,000. Default 20. */
  limit?: number | undefined;
}

/** A file that matches a search. */
export interface SearchHit {
  /** Path below the root. */
  readonly path: string;
  /** A larger score is better. Scores are comparable within one answer only. */
  readonly score: number;
  /** The matching part of the text, if the index provides it. */
  readonly excerpt?: string;
}

/**
 * A search index for a tree of files: implement it to use your own. All calls must be idempotent,
 * because they are repeated after a crash.
 */
export interface DerivedIndex {
  /**
   * True: all processes share one index, as on a server; the process that works on a change updates
   * it. False: each process has its own, and updates it with the changes of all processes. Default
   * false.
   */
  readonly isShared?: boolean | undefined;
  /**
   * Adds or replaces the text of a file. `stamp` identifies the content, and must be returned with
   * its hits.
   */
  upsert(
    path: string,
    text: string,
    options?: { vector?: readonly number[] | undefined; stamp?: string | undefined },
  ): Promise<void>;
  /** Removes this path and everything below it. */
  remove(path: string): Promise<void>;
  /** Moves this path and everything below it. */
  rename(from: string, to: string): Promise<void>;
  /** Searches the texts, best hit first. */
  search(
    text: string,
    options?: { under?: string | undefined; limit?: number | undefined; vector?: readonly number[] | undefined },
  ): Promise<readonly (SearchHit & { readonly stamp?: string })[]>;
  /** Removes everything. */
  clear?(): Promise<void>;
  /** Releases the resources of the index. Called when the tree is closed. */
  close?(): Promise<void>;
}
