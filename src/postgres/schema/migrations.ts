// The migrations of the schema, and the version that this release uses.
//
// A released migration is never changed: a later one gets a new number. A function that must change
// gets a new name, so that processes of an older release continue.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { packageVersion } from "../../format/version.ts";
import type { Database } from "../connection/database.ts";
import { sqlStateOf } from "../connection/failure.ts";
import { baseSchema } from "./base.ts";
import { eventsSchema } from "./events.ts";
import { handoffSchema } from "./handoff.ts";
import { objectsSchema } from "./objects.ts";

/** The statements of each schema version. They run once, in one transaction. */
const migrations: readonly string[] = [baseSchema, eventsSchema, handoffSchema, objectsSchema];

/** The version that this release creates and uses. */
export const schemaVersion: number = migrations.length;

/** Serializes the processes that migrate. Any number that no other program is likely to use. */
const migrationLock = 7_461_001;

const undefinedTable = "42P01";

/** Returns the version of the schema; 0 if there is none. */
export async function findSchemaVersion(database: Database): Promise<{ version: number; writtenBy: string }> {
  try {
    const [row] = await database.query<{ version: number; written_by: string }>(
      "select version, written_by from hf_schema order by version desc limit 1",
    );
    return { version: row?.version ?? 0, writtenBy: row?.written_by ?? "" };
  } catch (error) {
    if (sqlStateOf(error) === undefinedTable) return { version: 0, writtenBy: "" };
    throw error;
  }
}

/**
 * Creates the schema if there is none and `create` is not false. Throws NOT_A_STORE if there is
 * none and `create` is false, NEWER_FORMAT for a newer schema, and UNSUPPORTED for an older one,
 * which `holdfast upgrade` migrates.
 */
export async function openSchema(database: Database, { create }: { readonly create: boolean }): Promise<void> {
  const path = database.location.shown;
  const { version, writtenBy } = await findSchemaVersion(database);
  if (version === schemaVersion) return;
  if (version > schemaVersion) {
    const message = `${path}: its schema has version ${version}, and this release knows ${schemaVersion}. Upgrade this program.`;
    throw holdfastError("NEWER_FORMAT", message, { path, writtenBy });
  }
  if (version > 0) {
    const message = `${path}: its schema has version ${version}, and this release needs ${schemaVersion}. Run \`holdfast upgrade\` with this location.`;
    throw holdfastError("UNSUPPORTED", message, { what: `schema version ${version}`, location: path });
  }
  if (!create) throw holdfastError("NOT_A_STORE", `${path}: the database has no Holdfast schema.`, { path });
  await migrate(database);
}

/**
 * Brings the schema up to this release, and returns the new versions. A newer schema stays as it is.
 * Throws NO_PERMISSION.
 */
export async function migrate(database: Database): Promise<number[]> {
  const made: number[] = [];
  try {
    for (let next: number | undefined = 0; next !== undefined;) {
      next = await database.patiently(() => migrateOnce(database));
      if (next !== undefined) made.push(next);
    }
  } catch (error) {
    if (!isHoldfastError(error, "NO_PERMISSION")) throw error;
    const path = database.location.shown;
    const message = `${path}: this role may not create tables. Run \`holdfast upgrade\` once with a location whose role may. (${error.message})`;
    throw holdfastError("NO_PERMISSION", message, { path }, error);
  }
  return made;
}

/**
 * Migrates to the next version in a transaction of its own, and checks the version under the lock:
 * another process may be faster.
 */
async function migrateOnce(database: Database): Promise<number | undefined> {
  return await database.transaction(async (send) => {
    await send("select pg_advisory_xact_lock($1::bigint)", [migrationLock]);
    await send(
      `create table if not exists hf_schema (
        version int primary key, written_by text not null, made_at timestamptz not null default clock_timestamp())`,
    );
    const [row] = await send<{ version: number }>("select coalesce(max(version), 0) as version from hf_schema");
    const version = (row?.version ?? 0) + 1;
    const schema = migrations[version - 1];
    if (schema === undefined) return undefined;
    await send(schema);
    await send("insert into hf_schema (version, written_by) values ($1, $2)", [version, packageVersion]);
    return version;
  });
}
