// Reads versions: one statement finds the bucket, the key and the version.
import { holdfastError } from "../../errors.ts";
import { noSuchBucket } from "../../objects/bucket/open-bucket.ts";
import type { KeyVersion } from "../../objects/key/key-versions.ts";
import { partOf, type BodyFile } from "../../objects/model/entry.ts";
import type { ReadOptions, StoredObject } from "../../objects/model/object.ts";
import { noSuchKey, noSuchVersion, versionIdOf } from "../../objects/version/find-version.ts";
import { openedObject, rangeOf, SmallContent } from "../../objects/version/read-version.ts";
import { describe } from "../../objects/version/find-version.ts";
import { verified } from "../../part/content.ts";
import { listOf } from "../../format/decoding.ts";
import type { ObjectsContext } from "./objects-context.ts";
import { BlobContent } from "./blobs.ts";
import { slotOfVersionId, versionOf } from "./key-state.ts";

export interface FoundRow {
  readonly version: KeyVersion;
  readonly isLatest: boolean;
  readonly body: Buffer | undefined;
  readonly parts: readonly BodyFile[];
}

interface Row {
  readonly slot: number | null;
  readonly entry: unknown;
  readonly body: Buffer | null;
  readonly parts: unknown;
  readonly is_latest: boolean;
}

const wanted = {
  current: "",
  null: "and v.slot = (select o.null_slot from hf_object o where o.b = v.b and o.key = v.key)",
  named: "and v.slot = $4",
} as const;

/**
 * Finds a version. Throws NO_SUCH_BUCKET, NO_SUCH_KEY (also for a delete marker) and
 * NO_SUCH_VERSION.
 */
export async function findVersion(
  { database, part }: ObjectsContext,
  bucket: string,
  key: string,
  { versionId, content }: { readonly versionId?: string | undefined; readonly content: "none" | "parts" | "body" },
): Promise<FoundRow> {
  const slot = slotOfVersionId(versionId);
  const columns = { none: "null as body, null as parts", parts: "null as body, v.parts", body: "v.body, v.parts" };
  const [row] = await database.query<Row & Record<string, unknown>>(
    `select f.* from hf_bucket b left join lateral (
       select v.slot, v.entry, ${columns[content]},
           v.slot = (select n.slot from hf_version n where n.b = v.b and n.key = v.key order by n.slot desc limit 1) as is_latest
         from hf_version v where v.b = b.b and v.key = $3 ${wanted[slot === 0 ? "current" : slot < 0 ? "null" : "named"]}
         order by v.slot desc limit 1) f on true
     where b.p = $1 and b.name = $2`,
    [part.p, bucket, Buffer.from(key), ...(slot > 0 ? [slot] : [])],
  );
  if (row === undefined) throw noSuchBucket(bucket);
  const version = row.slot === null ? undefined : versionOf(row.slot, row.entry, database.location.shown);
  if (version === undefined || (versionId !== undefined && versionIdOf(version) !== versionId))
    throw versionId === undefined ? noSuchKey(key) : noSuchVersion(key, versionId);
  if (version.entry.kind === "marker") throw noSuchKey(key, versionIdOf(version));
  const parts = (row.parts ?? null) === null ? [] : listOf(row.parts, partOf);
  return { version, isLatest: row.is_latest, body: row.body ?? undefined, parts };
}

/**
 * Opens a version. Throws the errors of `findVersion`, INVALID_RANGE, and CORRUPT if the body
 * differs from what was put.
 */
export async function openVersion(
  context: ObjectsContext,
  bucket: string,
  key: string,
  { versionId, range, signal }: ReadOptions,
): Promise<StoredObject> {
  signal?.throwIfAborted();
  return openFound(context, bucket, await findVersion(context, bucket, key, { versionId, content: "body" }), {
    range,
    signal,
  });
}

export function openFound(
  context: ObjectsContext,
  bucket: string,
  found: FoundRow,
  { range, signal }: Pick<ReadOptions, "range" | "signal">,
): StoredObject {
  const { version, body, parts } = found;
  const { entry } = version;
  const bytes = rangeOf(describe(version, found.isLatest), range);
  const corrupt = (what: string): Error => {
    const path = `${context.directory}/${bucket}`;
    const message = `The object ${JSON.stringify(entry.key)} of the bucket ${bucket} is not what was written: ${what}. Restore it from a backup.`;
    return holdfastError("CORRUPT", message, { path });
  };
  if (body !== undefined) {
    const digest = {
      size: entry.kind === "put" ? entry.size : 0,
      sha256: entry.kind === "put" ? (entry.sha256 ?? "") : "",
    };
    return openedObject(found, new SmallContent(verified(body, digest, corrupt)), { range: bytes, signal });
  }
  const failure = async (blob: string, what: string): Promise<Error> => {
    // Its version was removed more than an hour ago, or the database has lost the blob.
    const still = await findVersion(context, bucket, entry.key, {
      versionId: versionIdOf(version),
      content: "none",
    }).catch(() => undefined);
    if (still?.version.entry.id === entry.id) return corrupt(`the blob ${blob}: ${what}`);
    return noSuchVersion(entry.key, versionIdOf(version));
  };
  return openedObject(found, new BlobContent(context.blobs, parts, failure), { range: bytes, signal });
}
