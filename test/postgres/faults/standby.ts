// Standbys by streaming replication, made from a running server.
import { spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { until } from "../../waiting.ts";
import { asNobody, type PostgresServer } from "../server.ts";
import { startOwnServer } from "../stores.ts";

export async function connected<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Starts a standby. From then on the primary acknowledges only what the standby has, too. */
export async function startStandby(primary: PostgresServer): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-standby-"));
  const data = join(directory, "data");
  await connected(primary.url, async (client) => {
    await client.query("select pg_backup_start('standby', true)");
    // It complains about files that are gone meanwhile: the log, which is streamed, replaces what they were.
    spawnSync("cp", ["-a", join(primary.directory, "data"), data], { stdio: "ignore" });
    const { rows } = await client.query("select labelfile from pg_backup_stop(true)");
    writeFileSync(join(data, "backup_label"), rows[0].labelfile);
  });
  for (const name of ["postmaster.pid", "postmaster.opts"]) rmSync(join(data, name), { force: true });
  writeFileSync(join(data, "standby.signal"), "");
  const as = asNobody();
  if (as !== undefined)
    for (const name of ["backup_label", "standby.signal"]) chownSync(join(data, name), as.uid, as.gid);
  const from = `primary_conninfo=host=127.0.0.1 port=${primary.port} user=holdfast`;
  const standby = await startOwnServer({ directory, settings: ["fsync=on", from] });
  await connected(primary.url, async (client) => {
    await client.query("alter system set synchronous_standby_names = '*'");
    await client.query("select pg_reload_conf()");
    await until(
      async () => (await client.query("select from pg_stat_replication where sync_state = 'sync'")).rowCount === 1,
    );
  });
  return standby;
}

/** Makes a standby the primary, which waits for no standby yet. */
export async function promote(standby: PostgresServer): Promise<void> {
  await connected(standby.url, async (client) => {
    await client.query("alter system reset synchronous_standby_names");
    await client.query("select pg_reload_conf()");
    await client.query("select pg_promote(true, 600)");
    await until(async () => !(await client.query("select pg_is_in_recovery() as is")).rows[0].is);
  });
}
