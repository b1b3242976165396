// A search: queries the engine, and returns only hits whose indexed content is in the tree now.
import { holdfastError, isHoldfastError, messageOf } from "../../errors.ts";
import { checkCall } from "../model/arguments.ts";
import type { DerivedIndex, SearchHit, SearchOptions } from "../model/derived-index.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";

const limitDefault = 20;
const limitMax = 10_000;
/** Hits that are checked against the tree in parallel. */
const parallel = 8;

type IndexHit = SearchHit & { readonly stamp?: string };

export interface SearchContext {
  readonly search: DerivedIndex["search"];
  readonly vector?: readonly number[] | undefined;
  /** Returns the current stamp of the file. */
  readonly findStamp: (path: string) => Promise<string | undefined>;
  /** Called for a hit whose file is gone (no stamp) or has another content. */
  readonly onStale: (hit: IndexHit, stamp: string | undefined) => Promise<void>;
}

export function checkSearch(text: string, options: SearchOptions): void {
  if (typeof text !== "string") throw new TypeError("search: the query must be a string.");
  checkCall("search", options, { under: true, limit: true, signal: true });
  const { limit = limitDefault } = options;
  if (!(Number.isSafeInteger(limit) && limit >= 1 && limit <= limitMax))
    throw new RangeError(`search: limit must be a whole number from 1 to ${limitMax}, not ${limit}.`);
}

export async function verifiedHits(context: SearchContext, text: string, options: SearchOptions): Promise<SearchHit[]> {
  const { limit = limitDefault, under, signal } = options;
  const verdicts = new Map<string, boolean>();
  // If hits are dropped as stale, request more.
  for (let wanted = limit; ; wanted *= 2) {
    signal?.throwIfAborted();
    const found = await queryEngine(context, text, { under, limit: wanted, vector: context.vector });
    const unknown = found.filter(({ path, stamp }) => !verdicts.has(keyOf(path, stamp)));
    await inParallel(unknown, parallel, async (hit) => {
      signal?.throwIfAborted();
      verdicts.set(keyOf(hit.path, hit.stamp), await isCurrent(context, hit));
    });
    const hits = found.filter(({ path, stamp }) => verdicts.get(keyOf(path, stamp)) === true);
    if (hits.length < limit && found.length >= wanted && wanted < limitMax) continue;
    return hits.slice(0, limit).map(({ path, score, excerpt }) => ({
      path,
      score,
      ...(excerpt === undefined ? {} : { excerpt }),
    }));
  }
}

async function queryEngine(
  context: SearchContext,
  text: string,
  options: Parameters<DerivedIndex["search"]>[1],
): Promise<readonly IndexHit[]> {
  try {
    return await context.search(text, options);
  } catch (cause) {
    if (isHoldfastError(cause, "TOO_LARGE")) throw cause;
    const message = `The index could not be searched: ${messageOf(cause)}. Nothing was changed: try again, or rebuild it.`;
    throw holdfastError("INDEX_FAILED", message, { path: options?.under ?? "" }, cause);
  }
}

async function isCurrent(context: SearchContext, hit: IndexHit): Promise<boolean> {
  let stamp: string | undefined;
  try {
    stamp = await context.findStamp(hit.path);
  } catch (error) {
    // A file that this user may not read is omitted; other users may get it.
    if (!isHoldfastError(error, "NO_PERMISSION")) throw error;
    return false;
  }
  // If the index returns no stamp, it suffices that the file exists.
  if (stamp !== undefined && (hit.stamp === undefined || hit.stamp === stamp)) return true;
  await context.onStale(hit, stamp);
  return false;
}

function keyOf(path: string, stamp: string | undefined): string {
  return `${stamp ?? ""}/${path}`;
}
