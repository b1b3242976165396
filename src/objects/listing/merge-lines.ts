// Merges sorted lines from several runs in batches, so that memory stays constant, and drops lives
// that have ended.
import { compareLines, type IndexLine } from "./index-line.ts";

/** How many lines a batch has. */
const batchLines = 512;

/** Sorted lines, in batches. */
export type SortedLines = AsyncIterable<readonly IndexLine[]> | Iterable<readonly IndexLine[]>;

class Cursor {
  readonly #source: AsyncIterator<readonly IndexLine[]> | Iterator<readonly IndexLine[]>;
  #lines: readonly IndexLine[] = [];
  #at = 0;

  constructor(source: SortedLines) {
    this.#source = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  }

  get line(): IndexLine | undefined {
    return this.#lines[this.#at];
  }

  /** Advances by one line. Returns false if more lines must be read first. */
  step(): boolean {
    return ++this.#at < this.#lines.length;
  }

  /** Returns false at the end. */
  async fill(): Promise<boolean> {
    this.#at = 0;
    do {
      const next = await this.#source.next();
      if (next.done === true) return false;
      this.#lines = next.value;
    } while (this.#lines.length === 0);
    return true;
  }
}

/** Yields all lines of all sources in order, each once. */
export async function* mergeLines(sources: readonly SortedLines[]): AsyncGenerator<readonly IndexLine[]> {
  const cursors: Cursor[] = [];
  for (const source of sources) {
    const cursor = new Cursor(source);
    if (await cursor.fill()) cursors.push(cursor);
  }
  let batch: IndexLine[] = [];
  let last: IndexLine | undefined;
  while (cursors.length > 0) {
    const least = leastOf(cursors);
    const { line } = least;
    if (line !== undefined && (last === undefined || compareLines(last, line) !== 0)) {
      batch.push(line);
      last = line;
    }
    if (!least.step() && !(await least.fill())) cursors.splice(cursors.indexOf(least), 1);
    if (batch.length < batchLines) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function leastOf(cursors: readonly Cursor[]): Cursor {
  let [least] = cursors as readonly [Cursor];
  for (const cursor of cursors)
    if (cursor !== least && cursor.line && least.line && compareLines(cursor.line, least.line) < 0) least = cursor;
  return least;
}

export interface ForgetOptions {
  /** True if the merge includes all runs. */
  readonly isComplete: boolean;
  /** True if this life, which was about to end, has ended. */
  readonly isOver: (line: IndexLine) => Promise<boolean>;
}

/**
 * Drops the lines of lives that have ended. Keeps the end line of such a life as long as its
 * announcement may be in a run outside the merge.
 */
export async function* withoutEnded(
  lines: AsyncIterable<readonly IndexLine[]>,
  { isComplete, isOver }: ForgetOptions,
): AsyncGenerator<readonly IndexLine[]> {
  let announced: IndexLine | undefined;
  for await (const some of lines) {
    const kept: IndexLine[] = [];
    for (const line of some) {
      const isItsEnd = line.isEnded && announced?.key === line.key && announced.incarnation === line.incarnation;
      const isGone = line.isEnded && (await isOver(line));
      if (announced !== undefined && !(isItsEnd && isGone)) kept.push(announced);
      announced = line.isEnded ? undefined : line;
      if (line.isEnded && (!isGone || !(isItsEnd || isComplete))) kept.push(line);
    }
    yield kept;
  }
  if (announced !== undefined) yield [announced];
}
