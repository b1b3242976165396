// Pages of listings, read as ranges of the index of keys.
import { noSuchBucket } from "../../objects/bucket/open-bucket.ts";
import { commonOf } from "../../objects/listing/list-page.ts";
import { compareKeys } from "../../objects/listing/index-line.ts";
import { pageLimit } from "../../objects/model/arguments.ts";
import type {
  ListOptions,
  ListPage,
  ListVersionsOptions,
  ObjectVersion,
  VersionPage,
} from "../../objects/model/object.ts";
import { findVersionName, formatVersionId, nullVersionId } from "../../objects/model/version-id.ts";
import { describe } from "../../objects/version/find-version.ts";
import { versionOf } from "./key-state.ts";
import type { ObjectsContext } from "./objects-context.ts";

interface ListRow {
  readonly name: Buffer | null;
  readonly is_prefix: boolean;
  readonly slot: number;
  readonly is_latest: boolean;
  readonly entry: unknown;
  readonly [column: string]: unknown;
}

interface Range {
  readonly prefix: string;
  readonly delimiter: string;
  /** The last key or common prefix of the previous page. */
  readonly after: string;
  /**
   * Lists all versions; of the key `after`, only those below this slot. Default: current versions
   * of keys after `after`.
   */
  readonly below?: SlotBound | undefined;
  readonly limit: number;
}

interface SlotBound {
  /** An SQL expression; null if no version of the key `after` is left. */
  readonly slot: string | null;
}

/**
 * A prefix followed by this byte, which no UTF-8 contains, sorts after all keys with that prefix.
 */
const lastByte = Buffer.from([0xff]);

export async function listPage(context: ObjectsContext, bucket: string, options: ListOptions): Promise<ListPage> {
  const { prefix = "", delimiter = "", after = "", limit = pageLimit } = options;
  const rows = await readRows(context, bucket, { prefix, delimiter, after, limit });
  const objects: ObjectVersion[] = [];
  const prefixes: string[] = [];
  for (const row of rows.slice(0, limit))
    if (row.is_prefix) prefixes.push(nameOf(row));
    else objects.push(describe(versionOf(row.slot, row.entry, context.directory), true));
  const last = rows[limit - 1];
  return { objects, prefixes, ...(rows.length > limit && last !== undefined ? { next: nameOf(last) } : {}) };
}

export async function listVersionsPage(
  context: ObjectsContext,
  bucket: string,
  options: ListVersionsOptions,
): Promise<VersionPage> {
  const { prefix = "", delimiter = "", keyMarker = "", versionMarker, limit = pageLimit } = options;
  const below = { slot: versionMarker === undefined ? null : slotBelow(versionMarker) };
  const rows = await readRows(context, bucket, { prefix, delimiter, after: keyMarker, below, limit });
  const versions: ObjectVersion[] = [];
  const prefixes: string[] = [];
  for (const row of rows.slice(0, limit))
    if (row.is_prefix) prefixes.push(nameOf(row));
    else versions.push(describe(versionOf(row.slot, row.entry, context.directory), row.is_latest));
  const last = rows[limit - 1];
  if (rows.length <= limit || last === undefined) return { versions, prefixes };
  if (last.is_prefix) return { versions, prefixes, nextKeyMarker: nameOf(last) };
  // The marker names the slot even of a null version, which may be replaced before the next page.
  const { slot, entry } = versionOf(last.slot, last.entry, context.directory);
  return {
    versions,
    prefixes,
    nextKeyMarker: nameOf(last),
    nextVersionMarker: formatVersionId({ slot, id: entry.id }),
  };
}

/** Yields all versions of a key, newest first, in pages. */
export async function* listKey(
  context: ObjectsContext,
  bucket: string,
  key: string,
): AsyncGenerator<{ readonly versions: readonly ObjectVersion[] }> {
  for (let versionMarker: string | undefined; ;) {
    const page = await readRows(context, bucket, {
      prefix: key,
      delimiter: "",
      after: key,
      below: { slot: versionMarker ?? String(Number.MAX_SAFE_INTEGER) },
      limit: pageLimit - 1,
    });
    const own = page.filter((row) => nameOf(row) === key);
    yield { versions: own.map((row) => describe(versionOf(row.slot, row.entry, context.directory), row.is_latest)) };
    const last = own.at(-1);
    if (own.length < pageLimit || last === undefined) return;
    versionMarker = String(last.slot);
  }
}

/** Reads the rows of a page; if there are more, one more than `limit`. Throws NO_SUCH_BUCKET. */
async function readRows(context: ObjectsContext, bucket: string, range: Range): Promise<ListRow[]> {
  const { database, part } = context;
  const { prefix, delimiter, after, below, limit } = range;
  const isBefore = after === "" || compareKeys(after, prefix) < 0;
  const isPassed = !isBefore && (below?.slot ?? null) === null && commonOf(after, prefix, delimiter) === after;
  const from = Buffer.from(isBefore ? prefix : after);
  const isOpen = isBefore || (below?.slot ?? null) !== null;
  const rows = await database.query<ListRow>(
    `select l.* from hf_bucket b left join lateral hf_list_1(b.b, $3, $4, $5, $6, $7, ${isBefore ? "null" : (below?.slot ?? null)}, $8) l on true
       where b.p = $1 and b.name = $2`,
    [
      part.p,
      bucket,
      Buffer.from(prefix),
      Buffer.from(delimiter),
      isPassed ? Buffer.concat([from, lastByte]) : from,
      isOpen,
      below !== undefined,
      // With 0 the page is empty, and no page follows.
      limit === 0 ? 0 : limit + 1,
    ],
  );
  if (rows.length === 0) throw noSuchBucket(bucket);
  return rows.filter(({ name }) => name !== null);
}

/**
 * Returns the slot below which the next page continues. A marker without a slot restarts the key.
 */
function slotBelow(marker: string): string {
  if (marker === nullVersionId) return "(select o.null_slot from hf_object o where o.b = b.b and o.key = $5)";
  return String(findVersionName(marker)?.slot ?? Number.MAX_SAFE_INTEGER);
}

function nameOf({ name }: ListRow): string {
  return (name ?? lastByte).toString();
}
