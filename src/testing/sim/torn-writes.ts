// The possible results of a power cut for unsynced writes to one file: each write independently, whole or in part, or
// as zeros if only the length was kept.
export type WriteFate = "whole" | "absent" | "zeros" | "first half" | "last half";

export interface Write {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

const fates: readonly WriteFate[] = ["whole", "absent", "zeros"];
/**
 * Up to this many writes are tried in all combinations. Of more, only combinations in which one differs from the
 * rest.
 */
const combinedMax = 3;

const fatesByCount = new Map<number, readonly (readonly WriteFate[])[]>();

/** Returns one fate for each of `count` writes, for every combination that is tried. */
export function fatesOf(count: number): readonly (readonly WriteFate[])[] {
  const known = fatesByCount.get(count) ?? newFates(count);
  fatesByCount.set(count, known);
  return known;
}

function newFates(count: number): readonly (readonly WriteFate[])[] {
  const all = [...(count <= combinedMax ? combinations(count) : oddOnes(count)), ...torn(count)];
  return [...new Map(all.map((each) => [each.join(), each])).values()];
}

/** Returns the content after each write has met its fate, on top of the durable content. */
export function contentAfter(durable: Uint8Array, writes: readonly Write[], each: readonly WriteFate[]): Uint8Array {
  return writes.reduce((bytes, write, index) => afterOne(bytes, write, each[index] ?? "whole"), durable);
}

function afterOne(bytes: Uint8Array, { offset, bytes: part }: Write, fate: WriteFate): Uint8Array {
  const half = Math.ceil(part.length / 2);
  // Bytes that are on the disk already stay there whatever the fate: a block has its old bytes or its new ones, and
  // every append rewrites the block before it.
  const isThere = Buffer.compare(bytes.subarray(offset, offset + part.length), part) === 0;
  if (fate === "absent" || isThere) return bytes;
  if (fate === "zeros") return written(bytes, offset, new Uint8Array(part.length));
  if (fate === "first half") return written(bytes, offset, part.subarray(0, half));
  if (fate === "last half") return written(bytes, offset + half, part.subarray(half));
  return written(bytes, offset, part);
}

function combinations(count: number): WriteFate[][] {
  if (count === 0) return [[]];
  return combinations(count - 1).flatMap((before) => fates.map((fate) => [...before, fate]));
}

/**
 * Combinations in which the first few are written or missing, and those in which one is missing or reads as zeros.
 */
function oddOnes(count: number): WriteFate[][] {
  const filled = (fate: (index: number) => WriteFate): WriteFate[] =>
    Array.from({ length: count }, (_, index) => fate(index));
  return Array.from({ length: count + 1 }, (_, odd) => [
    filled((index) => (index < odd ? "whole" : "absent")),
    filled((index) => (index < odd ? "absent" : "whole")),
    filled((index) => (index < odd ? "whole" : "zeros")),
    filled((index) => (index === odd ? "absent" : "whole")),
    filled((index) => (index === odd ? "zeros" : "whole")),
  ]).flat();
}

/** Combinations in which one write is torn, and those before and after it are written or missing. */
function torn(count: number): WriteFate[][] {
  const ends: readonly WriteFate[] = ["whole", "absent"];
  return Array.from({ length: count }, (_, at) => at).flatMap((at) =>
    (["first half", "last half"] as const).flatMap((half) =>
      ends.flatMap((before) =>
        ends.map((after) =>
          Array.from({ length: count }, (_, index): WriteFate => (index === at ? half : index < at ? before : after)),
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
