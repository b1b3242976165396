// Verifies an object store in a database: keys against versions, and versions against their bodies.
import type { Problem, VerifyOptions, VerifyReport } from "../../common.ts";
import { isErrorLike, isHoldfastError } from "../../errors.ts";
import { partOf } from "../../objects/model/entry.ts";
import { listOf } from "../../format/decoding.ts";
import { listBuckets, findBucket } from "./bucket-rows.ts";
import { openFound } from "./find-rows.ts";
import { versionOf } from "./key-state.ts";
import type { ObjectsContext } from "./objects-context.ts";

const versionsAtOnce = 100;

interface Row {
  readonly key: Buffer;
  readonly slot: number;
  readonly entry: unknown;
  readonly body: Buffer | null;
  readonly parts: unknown;
  readonly is_coherent: boolean;
  readonly [column: string]: unknown;
}

/**
 * The row of the key records which version is the null version, and whether the current one is a
 * delete marker.
 */
const statement = `
  select v.key, v.slot, v.entry, v.body, v.parts,
    o.slot >= v.slot and (v.marker or (v.body is null) <> (v.parts is null))
      and (v.slot < (select max(n.slot) from hf_version n where n.b = v.b and n.key = v.key) or o.live = not v.marker)
      and (o.null_slot is null or exists (
        select 1 from hf_version n where n.b = v.b and n.key = v.key and n.slot = o.null_slot)) is true as is_coherent
  from (select * from hf_version where b = $1 and (key > $2 or (key = $2 and slot < $3))
          order by key, slot desc limit ${versionsAtOnce}) v
    left join hf_object o on o.b = v.b and o.key = v.key
  order by v.key, v.slot desc`;

/** Repairs nothing: the database keeps its own integrity, and backups have what it lost. */
export async function verifyObjects(
  context: ObjectsContext,
  { onProgress, signal }: VerifyOptions,
): Promise<VerifyReport> {
  const problems: Problem[] = [];
  let checked = 0;
  const [counted] = await context.database.query<{ total: number }>(
    "select count(*) as total from hf_version v join hf_bucket b on b.b = v.b where b.p = $1",
    [context.part.p],
  );
  const total = counted?.total ?? 0;
  for (const { name } of await listBuckets(context)) {
    const bucket = await findBucket(context, name);
    if (bucket === undefined) continue;
    const note = (what: string): void => {
      const remedy = "Restore the database from a backup.";
      problems.push({ severity: "damage", path: `${context.directory}/${name}`, what, remedy, repaired: false });
    };
    for (let after: Pick<Row, "key" | "slot"> = { key: Buffer.alloc(0), slot: 0 }; ;) {
      signal?.throwIfAborted();
      const rows = await context.database.query<Row>(statement, [bucket.b, after.key, after.slot]);
      for (const row of rows) {
        signal?.throwIfAborted();
        const key = row.key.toString();
        if (!row.is_coherent) note(`the row of the key ${JSON.stringify(key)} does not fit its version ${row.slot}`);
        await verifyBody(context, name, row).catch((error: unknown) => {
          // The version was removed since the page was read.
          if (isHoldfastError(error, "NO_SUCH_VERSION", "NO_SUCH_KEY")) return;
          if (!isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) throw error;
          note(isErrorLike(error) ? error.message : String(error));
        });
        onProgress?.(++checked, Math.max(total, checked));
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < versionsAtOnce) break;
      after = last;
    }
  }
  return { ok: problems.length === 0, checked, problems };
}

/** Compares a body with its version. Throws CORRUPT. */
async function verifyBody(context: ObjectsContext, bucket: string, { slot, entry, body, parts }: Row): Promise<void> {
  const version = versionOf(slot, entry, context.directory);
  if (version.entry.kind === "marker") return;
  const files = parts === null ? [] : listOf(parts, partOf);
  const found = { version, isLatest: false, body: body ?? undefined, parts: files };
  await using object = openFound(context, bucket, found, {});
  for await (const _ of object.stream());
}
