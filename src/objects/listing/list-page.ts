// One page of a listing: objects and common prefixes, or all versions, in UTF-8 byte order.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type {
  DamagedVersion,
  ListOptions,
  ListPage,
  ListVersionsOptions,
  ObjectVersion,
  VersionPage,
} from "../model/object.ts";
import { isSlotDamage } from "../key/entry-file.ts";
import {
  attributesOf,
  currentIn,
  findDamagedNull,
  isDamaged,
  noContent,
  type KeyContent,
  type KeyVersion,
} from "../key/key-versions.ts";
import { KeyNames } from "../key/key-names.ts";
import { findOnlyEntry } from "../key/only-entry.ts";
import { readKey } from "../key/read-key.ts";
import { pageLimit } from "../model/arguments.ts";
import { mayChangeOthers, type DamagedSlot } from "../model/damaged-entry.ts";
import { findVersionName, formatVersionId, nullVersionId } from "../model/version-id.ts";
import { describe, findIdOf, findVersion } from "../version/find-version.ts";
import { compareKeys, type KeyLife } from "./index-line.ts";
import type { IndexSnapshot } from "./index-snapshot.ts";

/** The slot, which identifies a version whose id is illegible. */
const unknownId = "0".repeat(26);

/** How many keys are resolved in parallel. */
const looksAtOnce = 32;

/** How many keys below a common prefix are skipped one by one. Then a search skips the rest. */
const stepsMax = 256;

/** A key, or a common prefix: the beginning of keys up to and including the delimiter. */
interface Item {
  readonly name: string;
  readonly isPrefix: boolean;
  /** The life of the key, or of the first key with that prefix. */
  readonly life: KeyLife;
}

interface ListFilter {
  readonly prefix: string;
  readonly delimiter: string;
  /** Begins at this key. */
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
  const damaged: DamagedVersion[] = [];
  let last = "";
  for await (const some of batches(itemsOf(keys, { prefix, delimiter, from: after, isBehind }))) {
    const found = await Promise.all(some.map((item) => findListed(bucket, keys, item)));
    for (const [index, { name }] of some.entries()) {
      const listed = found[index];
      if (listed === undefined) continue;
      if (objects.length + prefixes.length + damaged.length >= limit)
        return { objects, prefixes, next: last, ...damagedIn(damaged) };
      if (listed === "prefix") prefixes.push(name);
      else if ("error" in listed) damaged.push(listed);
      else objects.push(listed);
      last = name;
    }
  }
  if (last === "") await bucket.mustBeThere();
  return { objects, prefixes, ...damagedIn(damaged) };
}

function damagedIn(damaged: readonly DamagedVersion[]): { readonly damaged?: readonly DamagedVersion[] } {
  return damaged.length === 0 ? {} : { damaged };
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
  const damaged: DamagedVersion[] = [];
  let last: { readonly nextKeyMarker: string; readonly nextVersionMarker?: string } | undefined;
  const isFull = (): boolean => versions.length + prefixes.length + damaged.length >= limit;
  const page = (): VersionPage => ({ versions, prefixes, ...damagedIn(damaged) });
  for await (const { name, isPrefix, life } of itemsOf(keys, { prefix, delimiter, from: keyMarker, isBehind })) {
    if (isPrefix) {
      if (!(await hasAny(keys, name, life, ({ key }) => hasVersions(bucket, key)))) continue;
      if (isFull()) return { ...page(), ...last };
      prefixes.push(name);
      last = { nextKeyMarker: name };
      continue;
    }
    const content = await readListed(bucket, name);
    if ("error" in content) {
      if (name === keyMarker) continue;
      if (isFull()) return { ...page(), ...last };
      damaged.push(content);
      last = { nextKeyMarker: name };
      continue;
    }
    const all = listedOf(content);
    const current = currentIn(content)?.slot;
    const below = name === keyMarker ? slotOf(all, versionMarker) : Infinity;
    for (const each of all.filter(({ slot }) => slot < below)) {
      if (isFull()) return { ...page(), ...last };
      const isLatest = each.slot === current;
      if (isDamaged(each)) damaged.push(describeDamaged(name, each, isLatest));
      else versions.push(describe(each, isLatest));
      last = { nextKeyMarker: name, nextVersionMarker: markerOf(each) };
    }
  }
  if (last === undefined) await bucket.mustBeThere();
  return { versions, prefixes, ...damagedIn(damaged) };
}

/** Returns all versions of a key, newest first. Throws if one is damaged. */
export async function versionsOf(bucket: OpenBucket, key: string): Promise<readonly ObjectVersion[]> {
  const { versions, damaged } = await listKey(bucket, key);
  if (damaged[0] !== undefined) throw damaged[0].error;
  return versions;
}

/** Like `versionsOf`, but also returns damaged versions instead of throwing. */
export async function listKey(
  bucket: OpenBucket,
  key: string,
): Promise<Pick<VersionPage, "versions"> & { readonly damaged: readonly DamagedVersion[] }> {
  const content = await readVersions(bucket, key);
  const current = currentIn(content)?.slot;
  const versions: ObjectVersion[] = [];
  const damaged: DamagedVersion[] = [];
  for (const each of listedOf(content))
    if (isDamaged(each)) damaged.push(describeDamaged(key, each, each.slot === current));
    else versions.push(describe(each, each.slot === current));
  return { versions, damaged };
}

/**
 * Returns the versions newest first. Omits the known null version if a damaged slot may hold a
 * newer one, which would have replaced it.
 */
function listedOf(content: KeyContent): (KeyVersion | DamagedSlot)[] {
  const isNullKnown = findDamagedNull(content) === undefined;
  const versions = content.versions.filter(({ entry }) => isNullKnown || !entry.isNull);
  return [...versions, ...content.damaged].sort((one, other) => other.slot - one.slot);
}

/**
 * Returns an id that names the slot, even if nothing else is legible. Returns undefined for an
 * entry that is legible and not a version.
 */
function describeDamaged(key: string, { slot, entry }: DamagedSlot, isLatest: boolean): DamagedVersion {
  const { error, legible } = entry;
  if (legible.kind !== undefined && mayChangeOthers(entry)) return { key, isLatest, error };
  const versionId = findIdOf(slot, legible) ?? formatVersionId({ slot, id: legible.id ?? unknownId });
  return { key, versionId, isLatest, error };
}

/** Returns the content of a key, or the damage that makes all of it unreadable. */
async function readListed(bucket: OpenBucket, key: string): Promise<KeyContent | DamagedVersion> {
  try {
    return await readVersions(bucket, key);
  } catch (error) {
    if (isSlotDamage(bucket.storage.disk, error)) return { key, isLatest: true, error };
    throw error;
  }
}

/** True if the key has something to list; a damaged slot suffices. */
async function hasVersions(bucket: OpenBucket, key: string): Promise<boolean> {
  const content = await readListed(bucket, key);
  return "error" in content || content.versions.length + content.damaged.length > 0;
}

/**
 * The marker of a page that ends within a key. It names the slot, even of a null version, so that
 * the next page continues there whatever was removed or put meanwhile.
 */
function markerOf({ slot, entry }: KeyVersion | DamagedSlot): string {
  return formatVersionId({ slot, id: entry.kind === "damaged" ? unknownId : entry.id });
}

/**
 * Returns the slot before which the next page continues. A marker that names no slot lists the key
 * from its newest version.
 */
function slotOf(versions: readonly (KeyVersion | DamagedSlot)[], marker: string | undefined): number {
  const named = marker === undefined ? undefined : findVersionName(marker)?.slot;
  const found = marker === nullVersionId ? versions.find(isNullVersion)?.slot : named;
  return found ?? Infinity;
}

function isNullVersion({ entry }: KeyVersion | DamagedSlot): boolean {
  return entry.kind === "damaged" ? entry.legible.isNull === true : entry.isNull;
}

export async function readVersions(bucket: OpenBucket, key: string): Promise<KeyContent> {
  return await bucket.useKey(key, async (open) => (await readKey(open)) ?? noContent);
}

/**
 * The common prefix under which a key is listed. Undefined if the key itself is listed. Such a key
 * has no delimiter after the prefix, so a marker that ends with the delimiter is always a common
 * prefix.
 */
export function commonOf(key: string, prefix: string, delimiter: string): string | undefined {
  const end = delimiter === "" || !key.startsWith(prefix) ? -1 : key.indexOf(delimiter, prefix.length);
  return end < 0 ? undefined : key.slice(0, end + delimiter.length);
}

async function nothingOf<P>(bucket: OpenBucket, page: P): Promise<P> {
  await bucket.mustBeThere();
  return page;
}

/** Yields keys and common prefixes, and skips the other keys below a common prefix. */
async function* itemsOf(keys: IndexSnapshot, { prefix, delimiter, from, isBehind }: ListFilter): AsyncGenerator<Item> {
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

/** Returns a bound after every key with this prefix: no key contains this code unit on its own. */
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
): Promise<ObjectVersion | DamagedVersion | "prefix" | undefined> {
  if (!isPrefix) return await findObject(bucket, life);
  // A common prefix is listed if at least one object below it exists.
  return (await hasAny(keys, name, life, async (each) => (await findObject(bucket, each)) !== undefined))
    ? "prefix"
    : undefined;
}

async function findObject(
  bucket: OpenBucket,
  { key, incarnation }: KeyLife,
): Promise<ObjectVersion | DamagedVersion | undefined> {
  const names = new KeyNames(bucket.layout.key(key));
  // An error is ignored: the read below reports it, with the name of the object.
  const only = await findOnlyEntry(bucket.storage.disk, names, incarnation).catch(() => undefined);
  if (only?.entry.kind === "put" && only.entry.key === key)
    return describe({ slot: 1, entry: only.entry, bodyAt: only.bodyAt, ...attributesOf(only.entry) }, true);
  try {
    const found = await bucket.useKey(key, (open) => findVersion(open, key, undefined));
    if (found === undefined || found.version.entry.kind === "marker") return undefined;
    return describe(found.version, true);
  } catch (error) {
    // A damaged object is reported, and the others are listed.
    if (isSlotDamage(bucket.storage.disk, error)) return { key, isLatest: true, error };
    throw error;
  }
}

/** True if `isOne` returns true for any key with this prefix. `first` is the first of these keys. */
async function hasAny(
  keys: IndexSnapshot,
  prefix: string,
  first: KeyLife,
  isOne: (life: KeyLife) => Promise<boolean>,
): Promise<boolean> {
  // Usually the first key suffices, and no search is needed.
  if (await isOne(first)) return true;
  for await (const life of keys.lives(first.key)) {
    if (!life.key.startsWith(prefix)) return false;
    if (life.key !== first.key && (await isOne(life))) return true;
  }
  return false;
}
