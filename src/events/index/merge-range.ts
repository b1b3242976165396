// Determines which sealed segments share an index. Depends only on their count, so all processes use the same names
// without coordination.
import { indexNameOf } from "./file/index-layout.ts";
import type { SealedSegment } from "./keys/indexed-line.ts";

/** A run of 6^level segments that begins at a multiple of 6^level. Once merged, it has one index. */
export interface MergeRange {
  readonly level: number;
  readonly segments: readonly SealedSegment[];
  readonly name: string;
  /** `last` is `first - 1` if it has no events. */
  readonly first: number;
  readonly last: number;
}

/**
 * Six, not ten: at 10 M events (333 segments of 30,000) a query checks at most 15 filters instead of 20, but each
 * event is merged three times instead of twice.
 */
export const segmentsPerMerge = 6;
/** 1,296 segments, about 50 M events. A larger merge would take minutes and save one filter. */
export const levelMax = 4;

/** Returns the largest ranges that cover all segments, in order. */
export function planOf(segments: readonly SealedSegment[]): readonly MergeRange[] {
  const plan: MergeRange[] = [];
  let done = 0;
  for (let level = levelMax; level >= 0; level--)
    for (const size = segmentsPerMerge ** level; segments.length - done >= size; done += size)
      plan.push(rangeOf(level, segments.slice(done, done + size)));
  return plan;
}

/** Cached: until the merge is made, every condition needs them. */
const knownChildren = new WeakMap<MergeRange, readonly MergeRange[]>();

/** Returns the ranges that one is merged from; none for a single segment. */
export function childrenOf(range: MergeRange): readonly MergeRange[] {
  const { level, segments } = range;
  if (level === 0) return [];
  const known = knownChildren.get(range);
  if (known !== undefined) return known;
  const size = segmentsPerMerge ** (level - 1);
  const children = Array.from({ length: segmentsPerMerge }, (_, index) =>
    rangeOf(level - 1, segments.slice(index * size, (index + 1) * size)),
  );
  knownChildren.set(range, children);
  return children;
}

/** Returns the range that contains the position. */
export function getRange(ranges: readonly MergeRange[], position: number): MergeRange {
  const range = ranges.find(({ last }) => last >= position);
  if (range === undefined || position < range.first)
    throw new RangeError(`Position ${position} is in no sealed segment.`);
  return range;
}

function rangeOf(level: number, segments: readonly SealedSegment[]): MergeRange {
  const first = segments[0]?.first ?? 1;
  const last = segments.at(-1)?.last ?? 0;
  return { level, segments, name: indexNameOf({ segments }), first, last };
}
