// Buckets as rows: creates, finds, lists, configures and deletes them.
import { settingsOf } from "../../objects/bucket/bucket-config.ts";
import { bucketExists, notEmpty } from "../../objects/bucket/buckets.ts";
import { changedSettings, type DocumentChange } from "../../objects/bucket/change-settings.ts";
import { noSuchBucket } from "../../objects/bucket/open-bucket.ts";
import { checkBucketName } from "../../objects/model/arguments.ts";
import type { BucketConfig } from "../../objects/model/object.ts";
import type { BucketInfo } from "../../objects/model/object-store.ts";
import type { ObjectsContext } from "./objects-context.ts";

interface BucketRow {
  readonly b: number;
  readonly name: string;
  readonly settings: unknown;
  readonly made_ms: number;
  readonly [column: string]: unknown;
}

export interface FoundBucket {
  readonly b: number;
  readonly name: string;
  readonly settings: BucketConfig;
}

const columns = "b, name, settings, floor(extract(epoch from made_at) * 1000)::float8 as made_ms";

export async function findBucket(
  { database, part, known }: ObjectsContext,
  name: string,
): Promise<FoundBucket | undefined> {
  checkBucketName(name);
  const [row] = await database.query<BucketRow>(`select ${columns} from hf_bucket where p = $1 and name = $2`, [
    part.p,
    name,
  ]);
  if (row === undefined) known.delete(name);
  if (row === undefined) return undefined;
  const settings = settingsOf(row.settings);
  known.set(name, settings);
  return { b: row.b, name, settings };
}

/** Returns a bucket. Throws NO_SUCH_BUCKET. */
export async function getBucket(context: ObjectsContext, name: string): Promise<FoundBucket> {
  const found = await findBucket(context, name);
  if (found === undefined) throw noSuchBucket(name);
  return found;
}

export async function listBuckets({ database, part }: ObjectsContext): Promise<BucketInfo[]> {
  const rows = await database.query<BucketRow>(`select ${columns} from hf_bucket where p = $1 order by name`, [part.p]);
  return rows.map(({ name, settings, made_ms }) => ({
    name,
    createdAt: new Date(made_ms),
    versioning: settingsOf(settings).versioning,
  }));
}

/** Creates a bucket. Throws BUCKET_EXISTS. */
export async function createBucket(context: ObjectsContext, name: string, settings: BucketConfig): Promise<void> {
  checkBucketName(name);
  const { database, part, turns, newId } = context;
  const literal = (text: string): string => database.literal(text);
  let isMade = false;
  await turns.swap(
    () => `insert into hf_bucket (p, name, id, settings)
      values (${part.p}, ${literal(name)}, ${literal(newId())}, ${literal(JSON.stringify(settings))})
      on conflict do nothing returning b`,
    (rows) => {
      isMade = rows.length > 0;
      return isMade ? "select 1" : undefined;
    },
  );
  if (!isMade) throw bucketExists(name);
}

/**
 * Changes the settings of a bucket. Throws NO_SUCH_BUCKET, or a TypeError for a change that the
 * current settings forbid.
 */
export async function changeBucket(
  context: ObjectsContext,
  name: string,
  change: Partial<BucketConfig>,
  document: DocumentChange | undefined,
): Promise<void> {
  const { database, part, turns, known } = context;
  let settings: BucketConfig | undefined;
  await turns.swap<BucketRow>(
    () => `select ${columns} from hf_bucket where p = ${part.p} and name = ${database.literal(name)} for update`,
    ([row]) => {
      if (row === undefined) throw noSuchBucket(name);
      settings = changedSettings(settingsOf(row.settings), change, document);
      return `update hf_bucket set n = n + 1, settings = ${database.literal(JSON.stringify(settings))} where b = ${row.b}`;
    },
  );
  if (settings !== undefined) known.set(name, settings);
}

/** Deletes a bucket. Throws NO_SUCH_BUCKET and BUCKET_NOT_EMPTY. */
export async function deleteBucket(context: ObjectsContext, name: string, abortUploads: boolean): Promise<void> {
  checkBucketName(name);
  const { database, part, turns, known } = context;
  await turns.swap<{ outcome: string }>(
    () => `select hf_delete_bucket_1(${part.p}, ${database.literal(name)}, ${abortUploads}) as outcome`,
    ([row]) => {
      if (row?.outcome === "none") throw noSuchBucket(name);
      if (row?.outcome === "deleted") return "select 1";
      throw notEmpty(name);
    },
  );
  known.delete(name);
}
