// The outcome of a change: the result of the work on it, for the engines of all processes and for
// waiting callers.
import { countOf, flagOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";

/** An outcome with more documents than this only states that there are many. */
export const documentsListedMax = 1000;

export interface Outcome {
  readonly change: number;
  /** At and below these paths, search finds only what this change or a later one brought. */
  readonly paths: readonly string[];
  /** Paths that have a document of this change. */
  readonly documents: readonly string[];
  /** True if there are more documents than listed. */
  readonly hasMore: boolean;
  /** Why the work was given up. */
  readonly failed?: string;
}

export const outcomeKind: RecordKind<Outcome & { readonly id: string }> = {
  kind: "index-outcome",
  decode: (value) => {
    const { id, change, paths, documents, hasMore, failed } = objectOf(value);
    return {
      id: textOf(id),
      change: countOf(change),
      paths: listOf(paths, textOf),
      documents: listOf(documents, textOf),
      hasMore: flagOf(hasMore),
      ...(failed === undefined ? {} : { failed: textOf(failed) }),
    };
  },
};
