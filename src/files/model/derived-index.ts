// What is derived from a tree and searched: the interface of an index, for the one that is built in and for others.
import type { Cancel } from "../../common.ts";

export interface SearchOptions extends Cancel {
  under?: string | undefined;
  /** Default 20. */
  limit?: number | undefined;
}

export interface SearchHit {
  readonly path: string;
  /** Larger is better; comparable within one answer only. */
  readonly score: number;
  readonly excerpt?: string;
}

/** What is derived from the tree. All calls are idempotent: after a crash they come again. */
export interface DerivedIndex {
  /**
   * True: one index for all processes, as on a server; the process that works on a change tells it. Default false: each
   * process has its own, and tells it what any process has indexed.
   */
  readonly isShared?: boolean | undefined;
  /** `stamp` is the content's identity; it comes back with the hit. */
  upsert(
    path: string,
    text: string,
    options?: { vector?: readonly number[] | undefined; stamp?: string | undefined },
  ): Promise<void>;
  /** And all below. */
  remove(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  search(
    text: string,
    options?: { under?: string | undefined; limit?: number | undefined; vector?: readonly number[] | undefined },
  ): Promise<readonly (SearchHit & { readonly stamp?: string })[]>;
  clear?(): Promise<void>;
  close?(): Promise<void>;
}
