// Warnings about server settings: their effect on acknowledged writes and on speed.
import type { Database } from "./connection/database.ts";
import type { PostgresCapabilities } from "./pg-store.ts";

interface Settings {
  readonly server: string;
  readonly fsync: string;
  readonly commit: string;
  readonly isolation: string;
  readonly is_standby: boolean;
  readonly async_standbys: number;
}

const statement = `select current_setting('server_version') as server, current_setting('fsync') as fsync,
  current_setting('synchronous_commit') as commit, current_setting('default_transaction_isolation') as isolation,
  pg_is_in_recovery() as is_standby,
  (select count(*) from pg_stat_replication where sync_state = 'async') as async_standbys`;

export async function findWarnings(database: Database): Promise<PostgresCapabilities> {
  const [found] = await database.query<Settings & Record<string, unknown>>(statement);
  if (found === undefined) return { server: "", warnings: [] };
  const { server, fsync, commit, isolation, is_standby, async_standbys } = found;
  const warnings: string[] = [];
  if (fsync === "off") warnings.push("fsync is off: a power cut can damage the database. Switch it on.");
  if (commit === "off")
    warnings.push("synchronous_commit is off: a crash of the server loses what was acknowledged. Switch it on.");
  if (async_standbys > 0)
    warnings.push(
      "A standby is asynchronous: after a change to it, what was acknowledged last may be missing. Set synchronous_standby_names.",
    );
  if (is_standby) warnings.push("The server is a standby: the store is open for reading.");
  if (isolation !== "read committed")
    warnings.push(
      `The default isolation is ${isolation}: each write takes two more round trips. Set it to read committed.`,
    );
  return { server, warnings };
}
