// Lifecycle rules applied to a key: what is due is judged again on the very state that the entry
// which does it is linked behind. So a version that became current meanwhile stays.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import type { KeyVersion } from "../key/key-history.ts";
import type { MarkerEntry, RemoveEntry } from "../model/entry.ts";
import { dueOf } from "../model/lifecycle.ts";
import { appendEntry, type EntryMaker } from "../version/append-entry.ts";
import { eraseBody, isRetained } from "../version/delete-version.ts";

/** So many slots fit into one entry with room to spare. */
const slotsMax = 1000;

export interface Aged {
  readonly objects: number;
  readonly bytes: number;
}

/** What is retained or under a legal hold stays. A delete marker may come over it: it destroys nothing. */
export async function ageKey(bucket: OpenBucket, name: string, key: OpenKey): Promise<Aged> {
  if (bucket.settings.lifecycle.length === 0) return { objects: 0, bytes: 0 };
  const isMarked = await expireCurrent(bucket, name, key);
  let objects = isMarked ? 1 : 0;
  let bytes = 0;
  for (let removed = await removeDue(bucket, name, key); removed.length > 0;) {
    objects += removed.length;
    for (const { entry } of removed) bytes += entry.kind === "put" ? entry.size : 0;
    removed = removed.length < slotsMax ? [] : await removeDue(bucket, name, key);
  }
  return { objects, bytes };
}

/** Adds a delete marker where versions are kept. */
async function expireCurrent(bucket: OpenBucket, name: string, key: OpenKey): Promise<boolean> {
  const { place } = bucket;
  const id = place.newId();
  const judge = async (head: KeyHead | undefined): Promise<"go on" | "again" | undefined> => {
    const found = await findDue(bucket, name, key, head);
    if (found === "again") return found;
    return found.isExpired && bucket.settings.versioning !== "off" ? "go on" : undefined;
  };
  const make = (): MarkerEntry => ({
    kind: "marker",
    id,
    key: name,
    config: bucket.state.number,
    atMs: place.nowMs(),
    isNull: bucket.settings.versioning !== "enabled",
  });
  return (await add(bucket, name, key, { judge, make })) !== undefined;
}

/** The versions that were removed. */
async function removeDue(bucket: OpenBucket, name: string, key: OpenKey): Promise<readonly KeyVersion[]> {
  const { place } = bucket;
  const id = place.newId();
  let removed: readonly KeyVersion[] = [];
  let current = 0;
  const judge = async (head: KeyHead | undefined): Promise<"go on" | "again" | undefined> => {
    const found = await findDue(bucket, name, key, head);
    if (found === "again") return found;
    removed = found.removals.slice(0, slotsMax);
    current = found.versions.filter((each) => !removed.includes(each)).at(-1)?.slot ?? 0;
    return removed.length === 0 ? undefined : "go on";
  };
  const make = (): RemoveEntry => ({
    kind: "remove",
    id,
    key: name,
    config: bucket.state.number,
    atMs: place.nowMs(),
    slots: removed.map(({ slot }) => slot),
    current,
  });
  const head = await add(bucket, name, key, { judge, make });
  if (head === undefined) return [];
  for (const version of removed) await eraseBody(bucket, key, head, version);
  return removed;
}

async function add(
  bucket: OpenBucket,
  name: string,
  key: OpenKey,
  maker: Pick<EntryMaker, "judge" | "make">,
): Promise<KeyHead | undefined> {
  return (await appendEntry(bucket, name, key, { ...maker, isDependent: true }))?.head;
}

interface FoundDue {
  readonly versions: readonly KeyVersion[];
  readonly isExpired: boolean;
  readonly removals: readonly KeyVersion[];
}

async function findDue(
  bucket: OpenBucket,
  name: string,
  { history }: OpenKey,
  head: KeyHead | undefined,
): Promise<FoundDue | "again"> {
  const versions = head === undefined ? [] : await history.read(head);
  if (versions === undefined) return "again";
  const nowMs = bucket.place.nowMs();
  const { lifecycle, versioning } = bucket.settings;
  const aging = versions.map(({ entry, tags }) => ({
    atMs: entry.atMs,
    isMarker: entry.kind === "marker",
    bytes: entry.kind === "put" ? entry.size : 0,
    tags,
  }));
  const { isExpired, removals } = dueOf(lifecycle, name, aging, nowMs);
  // Where no versions are kept, to expire is to be removed.
  const indexes = isExpired && versioning === "off" ? [...removals, versions.length - 1] : removals;
  const due = indexes.flatMap((index) => versions[index] ?? []);
  return { versions, isExpired, removals: due.filter((version) => !isRetained(version, nowMs)) };
}
