// Which sealed segments share an index: decided by their count alone, so that all processes use the
// same names without asking each other.
import { indexNameOf } from "./file/index-layout.ts";
import type { SealedSegment } from "./keys/indexed-line.ts";

/**
 * A run of 6^level segments that begins at a multiple of 6^level. Once merged, it has one index.
 */
export interface MergeRange {
  readonly level: number;
  readonly segments: readonly SealedSegment[];
  readonly name: string;
  /** `last` is `first - 1` when it has no events. */
  readonly first: number;
  readonly last: number;
}

/**
 * Six and not ten: at 10 M events (333 segments of 30 000) at most 15 filters are asked instead of
 * 20, and each event is merged three times instead of twice.
 */
export const segmentsPerMerge = 6;
/** 1296 segments, about 50 M events: a larger merge would take minutes and save one filter. */
const levelMax = 4;

/** The largest ranges that cover all segments, in order. */
export function planOf(segments: readonly SealedSegment[]): readonly MergeRange[] {
  const plan: MergeRange[] = [];
  let done = 0;
  for (let level = levelMax; level >= 0; level--)
    for (const size = segmentsPerMerge ** level; segments.length - done >= size; done += size)
      plan.push(rangeOf(level, segments.slice(done, done + size)));
  return plan;
}

/** Cached: every condition asks for them until the merge is made. */
const knownChildren = new WeakMap<MergeRange, readonly MergeRange[]>();

/** The ranges that one is merged from; none for a single segment. */
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

/** The range that has the position. */
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
