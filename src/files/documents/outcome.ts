// The outcome of a change: what the work on it came to, for the engines of all processes and for waiting callers.
import { countOf, flagOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";

/** With more documents than this an outcome only says that there are many. */
export const documentsListedMax = 1000;

export interface Outcome {
  readonly change: number;
  /** At and below them only what this change or a later one has brought is found. */
  readonly paths: readonly string[];
  /** Paths that have a document of this change. */
  readonly documents: readonly string[];
  /** There are more of them than are listed. */
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
