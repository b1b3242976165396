// Collection: applies lifecycle rules, and removes blobs and turns that nothing refers to any more.
import type { Cancel } from "../../common.ts";
import type { KeyVersion } from "../../objects/key/key-versions.ts";
import type { LifecycleRule } from "../../objects/model/object.ts";
import { dueOf, isUploadDue } from "../../objects/model/lifecycle.ts";
import type { Collected } from "../../objects/model/object-store.ts";
import { uploadKind } from "../../objects/multipart/upload-records.ts";
import { isRetained } from "../../objects/version/delete-version.ts";
import { isHoldfastError } from "../../errors.ts";
import { findBucket, listBuckets, type FoundBucket } from "./bucket-rows.ts";
import { versionOf, type KeyState, type Plan } from "./key-state.ts";
import type { ObjectsContext } from "./objects-context.ts";
import { markerOf } from "./pg-bucket.ts";
import { PgUpload } from "./pg-upload.ts";

const keysAtOnce = 200;

export interface CollectOptions extends Cancel {
  /** Judges ages as if it were this much later. Default 0. */
  readonly aheadMs?: number | undefined;
}

interface AgedVersions {
  readonly removed: readonly KeyVersion[];
  readonly isMarked: boolean;
}

/**
 * Applies the lifecycle rules of all buckets. It runs under a lease, so that only one process
 * collects, but is safe without it: each key is judged again after its row is locked.
 */
export async function collectRows(
  context: ObjectsContext,
  { signal, aheadMs = 0 }: CollectOptions = {},
): Promise<Collected> {
  let [objects, bytes] = [0, 0];
  for (const { name } of await listBuckets(context)) {
    const bucket = await findBucket(context, name);
    if (bucket === undefined || bucket.settings.lifecycle.length === 0) continue;
    try {
      for await (const { removed, isMarked } of ageKeys(context, bucket, aheadMs, signal)) {
        objects += removed.length + (isMarked ? 1 : 0);
        for (const { entry } of removed) bytes += entry.kind === "put" ? entry.size : 0;
      }
      objects += await abortDue(context, bucket, aheadMs, signal);
    } catch (error) {
      // The bucket was deleted meanwhile.
      if (!isHoldfastError(error, "NO_SUCH_BUCKET")) throw error;
    }
  }
  await context.blobs.collect(signal);
  await context.database.query("delete from hf_turn where at < clock_timestamp() - interval '7 days'");
  return { objects, bytes };
}

/** Applies the rules to all keys in order, one range of the index at a time. */
async function* ageKeys(
  context: ObjectsContext,
  { b, name, settings }: FoundBucket,
  aheadMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<AgedVersions> {
  for (let after: Buffer = Buffer.alloc(0); ;) {
    signal?.throwIfAborted();
    const rows = await context.database.query<{
      key: Buffer;
      now_ms: number;
      versions: { slot: number; entry: unknown }[];
    }>(
      `select o.key, floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms,
         (select json_agg(json_build_object('slot', v.slot, 'entry', v.entry) order by v.slot)
            from hf_version v where v.b = o.b and v.key = o.key) as versions
       from (select b, key from hf_object where b = $1 and key > $2 order by key limit ${keysAtOnce}) o order by o.key`,
      [b, after],
    );
    for (const { key, now_ms, versions } of rows) {
      signal?.throwIfAborted();
      const found = (versions ?? []).map(({ slot, entry }) => versionOf(slot, entry, context.directory));
      const { isExpired, removed } = dueIn(settings.lifecycle, key.toString(), found, now_ms + aheadMs);
      if (isExpired || removed.length > 0) yield await ageKey(context, name, key.toString(), aheadMs);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < keysAtOnce) return;
    after = last.key;
  }
}

async function ageKey(context: ObjectsContext, bucket: string, key: string, aheadMs: number): Promise<AgedVersions> {
  const judge = (state: KeyState): Plan<AgedVersions> => {
    const { settings, versions, nowMs } = state;
    const { isExpired, removed } = dueIn(settings.lifecycle, key, versions, nowMs + aheadMs);
    const isOff = settings.versioning === "off";
    const current = versions.at(-1);
    // Without versioning, an expired object is removed.
    const isGone = isExpired && isOff && current !== undefined && !isRetained(current, nowMs + aheadMs);
    const all = isGone ? [...removed, current] : removed;
    const slots = all.map(({ slot }) => slot);
    if (!isExpired || isOff) return { answer: { removed: all, isMarked: false }, removed: slots };
    const marker = markerOf(state, context.newId(), () => undefined);
    const replaced = (marker.removed ?? []).filter((slot) => !slots.includes(slot));
    return { ...marker, answer: { removed: all, isMarked: true }, removed: [...slots, ...replaced] };
  };
  return await context.calls.run({ bucket, key, needsAll: true, judge });
}

/** Returns the versions that are due. Retained versions and those under a legal hold stay. */
function dueIn(
  rules: readonly LifecycleRule[],
  key: string,
  versions: readonly KeyVersion[],
  nowMs: number,
): { readonly isExpired: boolean; readonly removed: readonly KeyVersion[] } {
  const aging = versions.map(({ entry, tags }) => ({
    atMs: entry.atMs,
    isMarker: entry.kind === "marker",
    bytes: entry.kind === "put" ? entry.size : 0,
    tags,
  }));
  const { isExpired, removals } = dueOf(rules, key, aging, nowMs);
  const due = removals.flatMap((index) => versions[index] ?? []);
  return { isExpired, removed: due.filter((version) => !isRetained(version, nowMs)) };
}

async function abortDue(
  context: ObjectsContext,
  { b, name, settings }: FoundBucket,
  aheadMs: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  let count = 0;
  for (let after = ""; ;) {
    signal?.throwIfAborted();
    const rows = await context.database.query<{ id: string; record: unknown; now_ms: number }>(
      `select id, record, floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms
         from hf_upload where b = $1 and id > $2 and ended is null order by id limit ${keysAtOnce}`,
      [b, after],
    );
    for (const { record, now_ms } of rows) {
      const upload = uploadKind.decode(record);
      if (!isUploadDue(settings.lifecycle, upload.key, upload.startedAtMs, now_ms + aheadMs)) continue;
      try {
        await new PgUpload(upload, context, name).abort();
        count++;
      } catch (error) {
        // Another process has ended the upload.
        if (!isHoldfastError(error, "NO_SUCH_UPLOAD")) throw error;
      }
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < keysAtOnce) return count;
    after = last.id;
  }
}
