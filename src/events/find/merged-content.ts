// The content of one index for several consecutive ones: their keys side by side, their positions one after the other, in little memory.
import type { IndexContent, StoredKey, StoredLine } from "./index-writer.ts";
import { compareHashes } from "./key-hash.ts";
import type { PostingList } from "./posting-list.ts";
import type { IndexedKey, SealedIndex } from "./sealed-index.ts";

/** How many keys are given at a time. */
const batchLength = 256;

interface Part {
  readonly list: PostingList;
  /** How far the positions of its index are from those of the merged one. */
  readonly shift: number;
}

/** In order of positions. Reads all keys once, to count them: the size of the filter depends on it. */
export async function mergedContentOf(indexes: readonly SealedIndex[]): Promise<IndexContent> {
  let keyCount = 0;
  for await (const keys of mergedKeys(indexes)) keyCount += keys.length;
  return {
    keyCount,
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
      yield lines.map((line) => ({ ...line, first: line.first + shift, segment: line.segment + segments }));
    segments += index.coverage.segments.length;
  }
}

async function* mergedKeys(indexes: readonly SealedIndex[]): AsyncGenerator<StoredKey[], void> {
  const cursors = indexes.map((index) => new KeyCursor(index, index.first - originOf(indexes)));
  for (const cursor of cursors) await cursor.fill();
  let batch: StoredKey[] = [];
  for (;;) {
    const least = leastOf(cursors);
    if (least === undefined) break;
    batch.push(await takeKey(cursors, least));
    if (batch.length < batchLength) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** Also moves on the cursors that have it. */
async function takeKey(cursors: readonly KeyCursor[], { high, low }: IndexedKey): Promise<StoredKey> {
  const parts: Part[] = [];
  for (const cursor of cursors) {
    const key = cursor.current;
    if (key === undefined || key.high !== high || key.low !== low) continue;
    parts.push({ list: key.list, shift: cursor.shift });
    if (!cursor.advance()) await cursor.fill();
  }
  const count = parts.reduce((sum, { list }) => sum + list.count, 0);
  return { high, low, count, positions: positionsOf(parts) };
}

async function* positionsOf(parts: readonly Part[]): AsyncGenerator<Uint32Array, void> {
  for (const { list, shift } of parts)
    for (let index = 0; index < list.pieceCount; index++)
      yield (await list.piece(index)).map((position) => position + shift);
}

function leastOf(cursors: readonly KeyCursor[]): IndexedKey | undefined {
  let least: IndexedKey | undefined;
  for (const { current } of cursors)
    if (current !== undefined && (least === undefined || compareHashes(current, least) < 0)) least = current;
  return least;
}

function originOf(indexes: readonly SealedIndex[]): number {
  return indexes[0]?.first ?? 1;
}

/** Walks the keys of one index, a block of them in memory. */
class KeyCursor {
  readonly shift: number;
  current: IndexedKey | undefined;
  readonly #blocks: AsyncIterator<IndexedKey[]>;
  #keys: IndexedKey[] = [];
  #next = 0;

  constructor(index: SealedIndex, shift: number) {
    this.shift = shift;
    this.#blocks = index.keys();
  }

  /** False at the end of the block: then `fill` gets the next. */
  advance(): boolean {
    this.current = this.#keys[this.#next++];
    return this.current !== undefined;
  }

  async fill(): Promise<void> {
    const block = await this.#blocks.next();
    this.#keys = block.done ? [] : block.value;
    this.#next = 0;
    this.advance();
  }
}
