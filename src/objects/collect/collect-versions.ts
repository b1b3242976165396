// Applies lifecycle rules to a key. Rules are evaluated on exactly the state after which the new
// entry is linked, so a version that became current meanwhile stays.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { nothing, retry } from "../key/key-chain.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import { noContent, type KeyVersion } from "../key/key-versions.ts";
import { dueOf } from "../model/lifecycle.ts";
import { eraseBody, isRetained } from "../version/delete-version.ts";

/** How many slots one entry removes: so many fit into its record. */
const slotsMax = 1000;

export interface CollectedVersions {
  readonly objects: number;
  readonly bytes: number;
}

/**
 * Versions under a retention or a legal hold stay. A delete marker may still be added to their key:
 * it destroys nothing.
 */
export async function collectVersions(bucket: OpenBucket, name: string, key: OpenKey): Promise<CollectedVersions> {
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

/** Adds a delete marker if the bucket keeps versions. */
async function expireCurrent(bucket: OpenBucket, name: string, key: OpenKey): Promise<boolean> {
  const { storage } = bucket;
  const id = storage.newId();
  const added = await bucket.append(name, key, async (newest) => {
    const found = await findDue(bucket, name, key, newest);
    if (found === "replaced") return retry;
    const { versioning } = bucket.settings;
    if (!found.isExpired || versioning === "off") return nothing;
    const [config, isNull] = [bucket.state.number, versioning !== "enabled"];
    return { add: { entry: { kind: "marker", id, key: name, config, atMs: storage.nowMs(), isNull } } };
  });
  return added !== undefined;
}

/** Returns the versions that were removed. */
async function removeDue(bucket: OpenBucket, name: string, key: OpenKey): Promise<readonly KeyVersion[]> {
  const { storage } = bucket;
  const id = storage.newId();
  let removed: readonly KeyVersion[] = [];
  const head = await bucket.append(name, key, async (newest) => {
    const found = await findDue(bucket, name, key, newest);
    if (found === "replaced") return retry;
    removed = found.removals.slice(0, slotsMax);
    if (removed.length === 0) return nothing;
    const slots = removed.map(({ slot }) => slot);
    const current = found.versions.filter((each) => !removed.includes(each)).at(-1)?.slot ?? 0;
    const config = bucket.state.number;
    return { add: { entry: { kind: "remove", id, key: name, config, atMs: storage.nowMs(), slots, current } } };
  });
  if (head === undefined) return [];
  for (const version of removed) await eraseBody(bucket, key, head, version);
  return removed;
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
  newest: KeyHead | undefined,
): Promise<FoundDue | "replaced"> {
  const content = newest === undefined ? noContent : await history.read(newest);
  if (content === undefined) return "replaced";
  const { versions, damaged } = content;
  // With a damaged slot, it is unknown which version is current and how many versions there are.
  if (damaged.length > 0) return { versions, isExpired: false, removals: [] };
  const nowMs = bucket.storage.nowMs();
  const { lifecycle, versioning, objectLock } = bucket.settings;
  const aging = versions.map(({ entry, tags }) => ({
    atMs: entry.atMs,
    isMarker: entry.kind === "marker",
    bytes: entry.kind === "put" ? entry.size : 0,
    tags,
  }));
  const { isExpired, removals } = dueOf(lifecycle, name, aging, nowMs);
  // Without versioning, an expired object is removed.
  const indexes = isExpired && versioning === "off" ? [...removals, versions.length - 1] : removals;
  const due = indexes.flatMap((index) => versions[index] ?? []);
  const mayGo = (version: KeyVersion): boolean =>
    !isRetained(version, nowMs) && (version.doubt === undefined || !objectLock);
  return { versions, isExpired, removals: due.filter(mayGo) };
}
