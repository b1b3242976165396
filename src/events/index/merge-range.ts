// Which sealed segments share an index: decided by their count alone, so that all processes come to the same names without a word.
import { indexNameOf } from "./file/index-header.ts";
import type { SealedSegment } from "./indexed-line.ts";

/** A run of 6^level segments that begins at a multiple of 6^level, with one index for all of them when it is merged. */
export interface MergeRange {
  readonly level: number;
  readonly segments: readonly SealedSegment[];
  readonly name: string;
  /** `last` is `first - 1` when it has no events. */
  readonly first: number;
  readonly last: number;
}

/**
 * Six and not ten: at 10 M events (333 segments of 30 000) at most 15 filters are asked instead of 20, and each event is merged three times instead of
 * twice.
 */
export const segmentsPerMerge = 6;
/** 1296 segments, about 50 M events: a larger merge would take minutes and save one filter. */
const levelMax = 4;

/** The largest spans that cover all, in order. */
export function planOf(segments: readonly SealedSegment[]): readonly MergeRange[] {
  const plan: MergeRange[] = [];
  let done = 0;
  for (let level = levelMax; level >= 0; level--)
    for (const size = segmentsPerMerge ** level; segments.length - done >= size; done += size)
      plan.push(spanOf(level, segments.slice(done, done + size)));
  return plan;
}

/** Until a merge is made, each condition asks for them. */
const knownChildren = new WeakMap<MergeRange, readonly MergeRange[]>();

/** What a span is merged from; nothing for a single segment. */
export function childrenOf(span: MergeRange): readonly MergeRange[] {
  const { level, segments } = span;
  if (level === 0) return [];
  const known = knownChildren.get(span);
  if (known !== undefined) return known;
  const size = segmentsPerMerge ** (level - 1);
  const children = Array.from({ length: segmentsPerMerge }, (_, index) =>
    spanOf(level - 1, segments.slice(index * size, (index + 1) * size)),
  );
  knownChildren.set(span, children);
  return children;
}

/** The one that has the position. */
export function getSpan(spans: readonly MergeRange[], position: number): MergeRange {
  const span = spans.find(({ last }) => last >= position);
  if (span === undefined || position < span.first)
    throw new RangeError(`Position ${position} is in no sealed segment.`);
  return span;
}

function spanOf(level: number, segments: readonly SealedSegment[]): MergeRange {
  const first = segments[0]?.first ?? 1;
  const last = segments.at(-1)?.last ?? 0;
  return { level, segments, name: indexNameOf({ segments }), first, last };
}
