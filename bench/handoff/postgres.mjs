// A table in PostgreSQL from which workers take rows by SKIP LOCKED, on a server of its own with
// its usual durability.
import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { isQuick } from "../settings.mjs";
import { batch, message } from "./contestants.mjs";

/** Says what is missing when PostgreSQL or its client is not installed. */
export async function openPostgres(benchDirectory) {
  if (isQuick) return { missing: "SKIP LOCKED: a quick run does not make a database" };
  const pg = await import("pg").catch(() => undefined);
  if (pg === undefined) return { missing: "SKIP LOCKED (npm ci in bench/ did not install pg)" };
  if (spawnSync("initdb", ["--version"]).error !== undefined)
    return { missing: "SKIP LOCKED: PostgreSQL is not installed" };
  // Beside the directory of the bench, into which only its own user may go.
  const directory = mkdtempSync(join(dirname(benchDirectory), "holdfast-bench-postgres-"));
  const as = asServerUser(directory);
  if (as === undefined)
    return { missing: "SKIP LOCKED: PostgreSQL does not run as root, and there is no user postgres" };
  const data = `${directory}/data`;
  const run = (command, args) => execFileSync(command, args, { stdio: "ignore", ...as });
  run("initdb", ["-D", data, "-A", "trust", "-U", "bench"]);
  run("pg_ctl", ["-D", data, "-w", "-l", `${directory}/log`, "-o", `-k ${directory} -c listen_addresses=`, "start"]);
  const client = new pg.default.Client({ host: directory, user: "bench", database: "postgres" });
  await client.connect();
  await client.query("CREATE TABLE jobs (id bigserial PRIMARY KEY, body text NOT NULL, result text)");
  await client.query("CREATE INDEX open ON jobs (id) WHERE result IS NULL");
  return {
    name: "PostgreSQL, SKIP LOCKED",
    publish: () => client.query("INSERT INTO jobs (body) VALUES ($1)", [message]),
    publishBatch: () =>
      client.query("INSERT INTO jobs (body) SELECT unnest($1::text[])", [Array.from({ length: batch }, () => message)]),
    consume: async () => {
      await client.query("BEGIN");
      const { rows } = await client.query(
        "SELECT id, body FROM jobs WHERE result IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
      );
      if (rows.length > 0) await client.query("UPDATE jobs SET result = 'booked' WHERE id = $1", [rows[0].id]);
      await client.query("COMMIT");
      return rows.length > 0;
    },
    close: async () => {
      await client.end();
      run("pg_ctl", ["-D", data, "-w", "-m", "fast", "stop"]);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** PostgreSQL refuses to run as root. */
function asServerUser(directory) {
  if (process.getuid?.() !== 0) return {};
  const id = (flag) => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout);
  const [uid, gid] = [id("-u"), id("-g")];
  if (!(uid > 0)) return undefined;
  chownSync(directory, uid, gid);
  return { uid, gid, cwd: directory };
}
