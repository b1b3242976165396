// One page of a listing: objects and common prefixes, or all versions, in UTF-8 byte order.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { ListOptions, ListPage, ListVersionsOptions, ObjectVersion, VersionPage } from "../model/object-store.ts";
import { attributesOf, type KeyVersion } from "../key/key-history.ts";
import { KeyNames } from "../key/key-names.ts";
import { findOnlyEntry } from "../key/only-entry.ts";
import { pageLimit } from "../model/arguments.ts";
import { findVersionName, formatVersionId, nullVersionId } from "../model/version-id.ts";
import { describe, findVersion } from "../version/find-version.ts";
import { compareKeys, type KeyLife } from "./index-line.ts";
import type { IndexSnapshot } from "./index-snapshot.ts";

/** So many keys are resolved at the same time. */
const looksAtOnce = 32;

/** So many keys below a common prefix are passed over one by one, before a search goes behind all of them. */
const stepsMax = 256;

/** A key, or the common beginning of all keys that have it up to the delimiter. */
interface Item {
  readonly name: string;
  readonly isPrefix: boolean;
  /** Of the key itself, or of the first one with that beginning. */
  readonly life: KeyLife;
}

interface Wanted {
  readonly prefix: string;
  readonly delimiter: string;
  /** Nothing before this key is wanted. */
  readonly from: string;
  readonly isBehind: (key: string) => boolean;
}

export async function listPage(bucket: OpenBucket, keys: IndexSnapshot, options: ListOptions): Promise<ListPage> {
  const { prefix = "", delimiter = "", after = "", limit = pageLimit } = options;
  if (limit === 0) return await nothingOf(bucket, { objects: [], prefixes: [] });
  const isPrefixMarker = commonOf(after, prefix, delimiter) === after;
  const isBehind = (key: string): boolean =>
    after === "" || (compareKeys(key, after) > 0 && !(isPrefixMarker && key.startsWith(after)));
  const objects: ObjectVersion[] = [];
  const prefixes: string[] = [];
  let last = "";
  for await (const some of batches(itemsOf(keys, { prefix, delimiter, from: after, isBehind }))) {
    const found = await Promise.all(some.map((item) => findListed(bucket, keys, item)));
    for (const [index, { name }] of some.entries()) {
      const listed = found[index];
      if (listed === undefined) continue;
      if (objects.length + prefixes.length >= limit) return { objects, prefixes, next: last };
      if (listed === "prefix") prefixes.push(name);
      else objects.push(listed);
      last = name;
    }
  }
  if (last === "") await bucket.mustBeThere();
  return { objects, prefixes };
}

export async function listVersionsPage(
  bucket: OpenBucket,
  keys: IndexSnapshot,
  options: ListVersionsOptions,
): Promise<VersionPage> {
  const { prefix = "", delimiter = "", keyMarker = "", versionMarker, limit = pageLimit } = options;
  if (limit === 0) return await nothingOf(bucket, { versions: [], prefixes: [] });
  const isPrefixMarker = commonOf(keyMarker, prefix, delimiter) === keyMarker && versionMarker === undefined;
  const isBehind = (key: string): boolean => {
    if (keyMarker === "") return true;
    const order = compareKeys(key, keyMarker);
    if (order === 0) return versionMarker !== undefined;
    return order > 0 && !(isPrefixMarker && key.startsWith(keyMarker));
  };
  const versions: ObjectVersion[] = [];
  const prefixes: string[] = [];
  let last: { readonly nextKeyMarker: string; readonly nextVersionMarker?: string } | undefined;
  for await (const { name, isPrefix, life } of itemsOf(keys, { prefix, delimiter, from: keyMarker, isBehind })) {
    if (isPrefix) {
      if (!(await hasAny(keys, name, life, async ({ key }) => (await readVersions(bucket, key)).length > 0))) continue;
      if (versions.length + prefixes.length >= limit) return { versions, prefixes, ...last };
      prefixes.push(name);
      last = { nextKeyMarker: name };
      continue;
    }
    const all = await readVersions(bucket, name);
    const below = name === keyMarker ? slotOf(all, versionMarker) : Infinity;
    for (const version of all.filter(({ slot }) => slot < below)) {
      if (versions.length + prefixes.length >= limit) return { versions, prefixes, ...last };
      versions.push(describe(version, version === all[0]));
      last = { nextKeyMarker: name, nextVersionMarker: markerOf(version) };
    }
  }
  if (last === undefined) await bucket.mustBeThere();
  return { versions, prefixes };
}

/** All versions of a key, the newest first. */
export async function versionsOf(bucket: OpenBucket, key: string): Promise<ObjectVersion[]> {
  return (await readVersions(bucket, key)).map((version, index) => describe(version, index === 0));
}

/**
 * Where a page ends in the middle of a key. It names the slot, also of a null version, so that the
 * next page goes on there whatever was removed or put meanwhile.
 */
function markerOf({ slot, entry }: KeyVersion): string {
  return formatVersionId({ slot, id: entry.id });
}

/** The slot below which a page goes on. A text that names none begins the key anew. */
function slotOf(versions: readonly KeyVersion[], marker: string | undefined): number {
  const named = marker === undefined ? undefined : findVersionName(marker)?.slot;
  const found = marker === nullVersionId ? versions.find(({ entry }) => entry.isNull)?.slot : named;
  return found ?? Infinity;
}

export async function readVersions(bucket: OpenBucket, key: string): Promise<KeyVersion[]> {
  return await bucket.useKey(key, async ({ chain, history }) => {
    for (;;) {
      const head = await chain.findHead();
      if (head === undefined) return [];
      const versions = await history.read(head);
      if (versions === undefined) continue;
      return [...versions].reverse();
    }
  });
}

/**
 * The common prefix that a key is shown by; undefined when it is shown itself. What is shown itself
 * has no delimiter behind the prefix, so a marker that is its own common prefix is never a key.
 */
function commonOf(key: string, prefix: string, delimiter: string): string | undefined {
  const end = delimiter === "" || !key.startsWith(prefix) ? -1 : key.indexOf(delimiter, prefix.length);
  return end < 0 ? undefined : key.slice(0, end + delimiter.length);
}

async function nothingOf<P>(bucket: OpenBucket, page: P): Promise<P> {
  await bucket.mustBeThere();
  return page;
}

/** Keys below a common prefix are passed over. */
async function* itemsOf(keys: IndexSnapshot, { prefix, delimiter, from, isBehind }: Wanted): AsyncGenerator<Item> {
  let bound = compareKeys(from, prefix) > 0 ? from : prefix;
  for (let common: string | undefined; ;) {
    let steps = 0;
    let isPassed = false;
    for await (const life of keys.lives(bound)) {
      const { key } = life;
      if (!key.startsWith(prefix)) return;
      if (!isBehind(key)) continue;
      if (common !== undefined && key.startsWith(common)) {
        isPassed = ++steps > stepsMax;
        if (isPassed) break;
        continue;
      }
      common = commonOf(key, prefix, delimiter);
      steps = 0;
      yield { name: common ?? key, isPrefix: common !== undefined, life };
    }
    if (!isPassed || common === undefined) return;
    bound = behindAll(common);
  }
}

/** Behind every key that begins so: no character begins with this unit. */
function behindAll(prefix: string): string {
  return `${prefix}\udfff`;
}

async function* batches(items: AsyncIterable<Item>): AsyncGenerator<readonly Item[]> {
  let some: Item[] = [];
  for await (const item of items) {
    some.push(item);
    if (some.length < looksAtOnce) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}

async function findListed(
  bucket: OpenBucket,
  keys: IndexSnapshot,
  { name, isPrefix, life }: Item,
): Promise<ObjectVersion | "prefix" | undefined> {
  if (!isPrefix) return await findObject(bucket, life);
  // A common prefix is shown when an object is below it that is not deleted.
  return (await hasAny(keys, name, life, async (each) => (await findObject(bucket, each)) !== undefined))
    ? "prefix"
    : undefined;
}

async function findObject(bucket: OpenBucket, { key, incarnation }: KeyLife): Promise<ObjectVersion | undefined> {
  const names = new KeyNames(bucket.layout.key(key));
  // What cannot be read is told below, with the name of the object.
  const only = await findOnlyEntry(bucket.place.disk, names, incarnation).catch(() => undefined);
  if (only?.entry.kind === "put" && only.entry.key === key)
    return describe({ slot: 1, entry: only.entry, bodyAt: only.bodyAt, ...attributesOf(only.entry) }, true);
  const found = await bucket.useKey(key, (open) => findVersion(open, key, undefined));
  if (found === undefined || found.version.entry.kind === "marker") return undefined;
  return describe(found.version, true);
}

/** Whether one of the keys with this prefix, of which `first` is the first, is such a one. */
async function hasAny(
  keys: IndexSnapshot,
  prefix: string,
  first: KeyLife,
  isOne: (life: KeyLife) => Promise<boolean>,
): Promise<boolean> {
  // In most cases it is the first one, and nothing has to be searched.
  if (await isOne(first)) return true;
  for await (const life of keys.lives(first.key)) {
    if (!life.key.startsWith(prefix)) return false;
    if (life.key !== first.key && (await isOne(life))) return true;
  }
  return false;
}
