// Finds the positions of one index that match: reads the rarest clause of an item, and checks the
// others only for the positions found there.
import type { PositionRange } from "../keys/indexed-line.ts";
import type { KeyClause, HashedItem } from "../keys/key-hash.ts";
import { unionOf, type Page } from "./pages.ts";
import type { PostingList } from "./posting-list.ts";
import type { SealedIndex } from "./sealed-index.ts";

/** Alternatives: one of the lists must have the position. */
type ListClause = readonly PostingList[];

/** Positions in a page of "every event". */
const pageLength = 1024;

/** Yields candidates in the range, as absolute positions, in order, in pages. */
export async function* pagesOf(
  index: SealedIndex,
  items: readonly HashedItem[],
  range: PositionRange,
  backwards: boolean,
): AsyncGenerator<readonly number[], void> {
  const after = Math.max(range.after, index.first - 1) - index.first;
  const upTo = Math.min(range.upTo, index.last) - index.first;
  if (after >= upTo) return;
  for await (const { positions } of relativePages(index, items, { after, upTo }, backwards))
    if (positions.length > 0) yield Array.from(positions, (position) => index.first + position);
}

async function* relativePages(
  index: SealedIndex,
  items: readonly HashedItem[],
  range: PositionRange,
  backwards: boolean,
): AsyncGenerator<Page, void> {
  if (items.some((item) => item.length === 0)) return yield* everything(range, backwards);
  await index.load();
  if (index.excludes(items)) return;
  const sources: AsyncIterable<Page>[] = [];
  for (const item of items) {
    const clauses = await findLists(index, item);
    if (clauses !== undefined) sources.push(itemPages(clauses, range, backwards));
  }
  yield* unionOf(sources, backwards);
}

/** Returns undefined if no event can match. */
async function findLists(index: SealedIndex, item: HashedItem): Promise<ListClause[] | undefined> {
  // The filter checks all clauses before anything is read for one of them.
  if (index.excludes([item])) return undefined;
  const found: ListClause[] = [];
  for (const clause of item) {
    const lists = await findAlternatives(index, clause);
    if (lists.length === 0) return undefined;
    found.push(lists);
  }
  return found;
}

async function findAlternatives(index: SealedIndex, clause: KeyClause): Promise<ListClause> {
  const lists: PostingList[] = [];
  for (const hash of clause) {
    const list = await index.findList(hash);
    if (list !== undefined) lists.push(list);
  }
  return lists;
}

async function* itemPages(
  clauses: readonly ListClause[],
  range: PositionRange,
  backwards: boolean,
): AsyncGenerator<Page, void> {
  const byCost = clauses.toSorted((a, b) => costOf(a) - costOf(b));
  const [driver = [], ...others] = byCost;
  const sources = driver.map((list) => listPages(list, range, backwards));
  for await (const page of unionOf(sources, backwards)) {
    let { positions } = page;
    for (const clause of others) positions = await those(positions, clause);
    yield { ...page, positions };
  }
}

function costOf(clause: ListClause): number {
  return clause.reduce((sum, list) => sum + list.count, 0);
}

/** Yields the positions of a list that are in the range, in the reader's direction. */
async function* listPages(
  list: PostingList,
  { after, upTo }: PositionRange,
  backwards: boolean,
): AsyncGenerator<Page, void> {
  const step = backwards ? -1 : 1;
  const end = backwards ? -1 : list.pieceCount;
  for (let index = await list.seek(backwards ? upTo : after + 1); index !== end; index += step) {
    const piece = await list.piece(index);
    const positions = piece.filter((position) => position > after && position <= upTo);
    const isLast =
      index + step === end || (backwards ? (piece[0] as number) <= after : (piece.at(-1) as number) >= upTo);
    yield { positions: backwards ? positions.reverse() : positions, isLast };
    if (isLast) return;
  }
}

async function those(positions: Uint32Array, clause: ListClause): Promise<Uint32Array> {
  const kept = new Uint32Array(positions.length);
  let count = 0;
  for (const position of positions) if (await isInAny(position, clause)) kept[count++] = position;
  return kept.subarray(0, count);
}

async function isInAny(position: number, clause: ListClause): Promise<boolean> {
  for (const list of clause) if (await list.has(position)) return true;
  return false;
}

async function* everything({ after, upTo }: PositionRange, backwards: boolean): AsyncGenerator<Page, void> {
  for (let done = after; done < upTo; done += pageLength) {
    const count = Math.min(pageLength, upTo - done);
    const positions = Uint32Array.from({ length: count }, (_, index) =>
      backwards ? upTo - (done - after) - index : done + 1 + index,
    );
    yield { positions, isLast: done + count === upTo };
  }
}
