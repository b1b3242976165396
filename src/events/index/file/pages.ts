// Sorted pages of positions, and the union of several sources of them.

export interface Page {
  /** Ascending, or descending if the source runs backwards. May be empty. */
  readonly positions: Uint32Array;
  /** True if this is the last page. The union then no longer waits for this source. */
  readonly isLast: boolean;
}

/** Yields the positions of all sources, each once, in order. */
export async function* unionOf(
  sources: readonly AsyncIterable<Page>[],
  backwards: boolean,
): AsyncGenerator<Page, void> {
  const [only] = sources;
  if (sources.length === 1 && only !== undefined) return yield* only;
  const sign = backwards ? -1 : 1;
  let cursors = sources.map((source) => new PageCursor(source));
  while (cursors.length > 0) {
    for (const cursor of cursors) await cursor.fill();
    cursors = cursors.filter((cursor) => cursor.rest.length > 0);
    // All positions up to this horizon are known, because every source has reached it.
    const horizon = horizonOf(cursors, sign);
    const taken = cursors.map((cursor) => cursor.takeUpTo(horizon, sign));
    const positions = distinct(taken);
    yield { positions: backwards ? positions.reverse() : positions, isLast: false };
  }
}

/** A source and the rest of its current page. */
class PageCursor {
  rest: Uint32Array = new Uint32Array(0);
  isLast = false;
  readonly #pages: AsyncIterator<Page>;

  constructor(source: AsyncIterable<Page>) {
    this.#pages = source[Symbol.asyncIterator]();
  }

  async fill(): Promise<void> {
    while (this.rest.length === 0 && !this.isLast) {
      const next = await this.#pages.next();
      if (next.done) this.isLast = true;
      else ({ positions: this.rest, isLast: this.isLast } = next.value);
    }
  }

  takeUpTo(horizon: number, sign: number): Uint32Array {
    let end = 0;
    while (end < this.rest.length && (this.rest[end] as number) * sign <= horizon) end++;
    const taken = this.rest.subarray(0, end);
    this.rest = this.rest.subarray(end);
    return taken;
  }
}

function horizonOf(cursors: readonly PageCursor[], sign: number): number {
  let horizon = Infinity;
  for (const { rest, isLast } of cursors) if (!isLast) horizon = Math.min(horizon, (rest.at(-1) as number) * sign);
  return horizon;
}

/** Returns the positions ascending, each once. */
function distinct(lists: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
  let length = 0;
  for (const list of lists) {
    all.set(list, length);
    length += list.length;
  }
  all.sort();
  let kept = 0;
  for (const position of all) if (kept === 0 || all[kept - 1] !== position) all[kept++] = position;
  return all.subarray(0, kept);
}
