// The content of one index merged from several consecutive ones: a k-way merge by key, in little
// memory.
import type { Coverage, StoredLine, WriteAt } from "../file/index-layout.ts";
import type { PostingList } from "../file/posting-list.ts";
import type { KeyBlock, SealedIndex } from "../file/sealed-index.ts";
import { writeIndex, type IndexContent, type StoredKey } from "./index-writer.ts";

/** Number of keys per list. */
const batchLength = 256;
/** Number of keys that are counted between two pauses. */
const keysPerPause = 16_384;

interface ShiftedList {
  readonly list: PostingList;
  /** Added to the positions of this index, which count from its own first one. */
  readonly shift: number;
}

/** Writes the merged index of `parts` in little memory. Throws UnusableIndex if one of them cannot be read. */
export async function mergeInto(
  write: WriteAt,
  coverage: Coverage,
  parts: readonly SealedIndex[],
  pause?: () => Promise<void>,
): Promise<void> {
  await writeIndex(coverage, await mergedContentOf(parts, pause), async (offset, bytes) => {
    await write(offset, bytes);
    await pause?.();
  });
}

/** `indexes` are in the order of positions. Reads all keys once to count them: the size of the filter depends on it. */
async function mergedContentOf(indexes: readonly SealedIndex[], pause?: () => Promise<void>): Promise<IndexContent> {
  return {
    times: indexes.flatMap(({ times }) => times),
    keyCount: await countKeys(indexes, pause),
    lineCount: indexes.reduce((sum, index) => sum + index.lineCount, 0),
    lines: () => mergedLines(indexes),
    keys: () => mergedKeys(indexes),
  };
}

async function* mergedLines(indexes: readonly SealedIndex[]): AsyncGenerator<StoredLine[], void> {
  let segments = 0;
  for (const index of indexes) {
    const shift = index.first - originOf(indexes);
    for await (const lines of index.lines())
      // Field by field: a spread costs three times the rest.
      yield lines.map(({ first, segment, offset, bytes }) => ({
        first: first + shift,
        segment: segment + segments,
        offset,
        bytes,
      }));
    segments += index.coverage.segments.length;
  }
}

async function countKeys(indexes: readonly SealedIndex[], pause?: () => Promise<void>): Promise<number> {
  const cursors = await cursorsOf(indexes);
  let count = 0;
  for (let least = leastOf(cursors); least.length > 0; least = leastOf(cursors)) {
    for (const cursor of least) if (!cursor.advance()) await cursor.fill();
    if (++count % keysPerPause === 0) await pause?.();
  }
  return count;
}

async function* mergedKeys(indexes: readonly SealedIndex[]): AsyncGenerator<StoredKey[], void> {
  const cursors = await cursorsOf(indexes);
  let batch: StoredKey[] = [];
  for (let least = leastOf(cursors); least.length > 0; least = leastOf(cursors)) {
    const { high, low } = least[0] as KeyCursor;
    const parts = least.map((cursor) => cursor.part());
    const count = parts.reduce((sum, { list }) => sum + list.count, 0);
    // Long lists are read piece by piece when the writer asks for them. Short ones are read now: their block also
    // contains the next ones.
    const isShort = parts.every(({ list }) => list.pieceCount === 1);
    const positions = isShort ? (findPositions(parts) ?? (await allOf(readPositions(parts)))) : readPositions(parts);
    batch.push({ high, low, count, positions });
    for (const cursor of least) if (!cursor.advance()) await cursor.fill();
    if (batch.length < batchLength) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

function findPositions(parts: readonly ShiftedList[]): number[] | undefined {
  const found: number[] = [];
  for (const { list, shift } of parts) {
    const piece = list.findPiece(0);
    if (piece === undefined) return undefined;
    for (const position of piece) found.push(position + shift);
  }
  return found;
}

async function* readPositions(parts: readonly ShiftedList[]): AsyncGenerator<Uint32Array, void> {
  for (const { list, shift } of parts)
    for (let index = 0; index < list.pieceCount; index++) yield shifted(await list.piece(index), shift);
}

async function allOf(lists: AsyncIterable<Uint32Array>): Promise<number[]> {
  const all: number[] = [];
  for await (const list of lists) for (const value of list) all.push(value);
  return all;
}

function shifted(positions: Uint32Array, shift: number): Uint32Array {
  for (let index = 0; index < positions.length; index++) positions[index] = (positions[index] as number) + shift;
  return positions;
}

/** Returns all cursors whose current key is the lowest; none at the end. */
function leastOf(cursors: readonly KeyCursor[]): KeyCursor[] {
  let least: KeyCursor[] = [];
  for (const cursor of cursors) {
    if (cursor.isDone) continue;
    const first = least[0] ?? cursor;
    const order = cursor.high - first.high || cursor.low - first.low;
    if (order === 0) least.push(cursor);
    else if (order < 0) least = [cursor];
  }
  return least;
}

async function cursorsOf(indexes: readonly SealedIndex[]): Promise<KeyCursor[]> {
  const cursors = indexes.map((index) => new KeyCursor(index, index.first - originOf(indexes)));
  for (const cursor of cursors) await cursor.fill();
  return cursors;
}

function originOf(indexes: readonly SealedIndex[]): number {
  return indexes[0]?.first ?? 1;
}

/** Walks the keys of one index, with one block in memory. */
class KeyCursor {
  high = 0;
  low = 0;
  isDone = false;
  readonly #shift: number;
  readonly #blocks: AsyncIterator<KeyBlock, void>;
  #keys: KeyBlock | undefined;
  #at = -1;

  constructor(index: SealedIndex, shift: number) {
    this.#shift = shift;
    this.#blocks = index.keys();
  }

  part(): ShiftedList {
    return { list: (this.#keys as KeyBlock).listOf(this.#at), shift: this.#shift };
  }

  /** Returns false at the end of a block. `fill` then loads the next. */
  advance(): boolean {
    const keys = this.#keys;
    this.#at++;
    if (keys === undefined || this.#at >= keys.length) return false;
    this.high = keys.highOf(this.#at);
    this.low = keys.lowOf(this.#at);
    return true;
  }

  async fill(): Promise<void> {
    const block = await this.#blocks.next();
    this.#keys = block.done ? undefined : block.value;
    this.#at = -1;
    this.isDone = !this.advance();
  }
}
