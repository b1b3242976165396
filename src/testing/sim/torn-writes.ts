// What a power cut may leave of writes to one file that were not synced: each for itself, in any
// order, whole or in part, or as zeros where only the length was kept.
export type Fate = "whole" | "absent" | "zeros" | "first half" | "last half";

export interface Write {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

const fates: readonly Fate[] = ["whole", "absent", "zeros"];
/** So many are tried in all combinations; of more, those in which one is the odd one out. */
const combinedMax = 3;

const fatesByCount = new Map<number, readonly (readonly Fate[])[]>();

/** One fate for each of `count` writes, in every way that is tried. */
export function fatesOf(count: number): readonly (readonly Fate[])[] {
  const known = fatesByCount.get(count) ?? newFates(count);
  fatesByCount.set(count, known);
  return known;
}

function newFates(count: number): readonly (readonly Fate[])[] {
  const all = [...(count <= combinedMax ? combinations(count) : oddOnes(count)), ...torn(count)];
  return [...new Map(all.map((each) => [each.join(), each])).values()];
}

/** The content when each of the writes has met its fate, on top of what was durable. */
export function contentAfter(durable: Uint8Array, writes: readonly Write[], each: readonly Fate[]): Uint8Array {
  return writes.reduce((bytes, write, index) => afterOne(bytes, write, each[index] ?? "whole"), durable);
}

function afterOne(bytes: Uint8Array, { offset, bytes: part }: Write, fate: Fate): Uint8Array {
  const half = Math.ceil(part.length / 2);
  // What is on the disk already is there whatever becomes of the write: a block has its old bytes
  // or its new ones, and every append rewrites the block before it.
  const isThere = Buffer.compare(bytes.subarray(offset, offset + part.length), part) === 0;
  if (fate === "absent" || isThere) return bytes;
  if (fate === "zeros") return written(bytes, offset, new Uint8Array(part.length));
  if (fate === "first half") return written(bytes, offset, part.subarray(0, half));
  if (fate === "last half") return written(bytes, offset + half, part.subarray(half));
  return written(bytes, offset, part);
}

function combinations(count: number): Fate[][] {
  if (count === 0) return [[]];
  return combinations(count - 1).flatMap((before) => fates.map((fate) => [...before, fate]));
}

/** The first few are there, or all but the first few; one is missing, or reads as zeros. */
function oddOnes(count: number): Fate[][] {
  const filled = (fate: (index: number) => Fate): Fate[] => Array.from({ length: count }, (_, index) => fate(index));
  return Array.from({ length: count + 1 }, (_, odd) => [
    filled((index) => (index < odd ? "whole" : "absent")),
    filled((index) => (index < odd ? "absent" : "whole")),
    filled((index) => (index < odd ? "whole" : "zeros")),
    filled((index) => (index === odd ? "absent" : "whole")),
    filled((index) => (index === odd ? "zeros" : "whole")),
  ]).flat();
}

/** One is torn, and what came before it and after it is there or not. */
function torn(count: number): Fate[][] {
  const ends: readonly Fate[] = ["whole", "absent"];
  return Array.from({ length: count }, (_, at) => at).flatMap((at) =>
    (["first half", "last half"] as const).flatMap((half) =>
      ends.flatMap((before) =>
        ends.map((after) =>
          Array.from({ length: count }, (_, index): Fate => (index === at ? half : index < at ? before : after)),
        ),
      ),
    ),
  );
}

function written(bytes: Uint8Array, offset: number, part: Uint8Array): Uint8Array {
  const result = new Uint8Array(Math.max(bytes.length, offset + part.length));
  result.set(bytes);
  result.set(part, offset);
  return result;
}
