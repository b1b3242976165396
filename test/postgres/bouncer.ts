// PgBouncer in transaction mode before a server: each transaction may run on another connection.
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asNobody, freePort, ready, spawnGuarded } from "./server.ts";

export interface Bouncer {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startBouncer(server: URL): Promise<Bouncer> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-bouncer-"));
  const port = await freePort();
  const settings = [
    "[databases]",
    `* = host=${server.hostname} port=${server.port}`,
    "[pgbouncer]",
    "pool_mode = transaction",
    `listen_addr = 127.0.0.1`,
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = trust",
    `auth_file = ${join(directory, "users")}`,
    // Fewer than the clients of one test: they share them.
    "default_pool_size = 4",
    "max_client_conn = 1000",
  ];
  writeFileSync(join(directory, "users"), `"${server.username}" ""\n`);
  writeFileSync(join(directory, "settings"), settings.join("\n"));
  const as = asNobody();
  if (as !== undefined) for (const name of [".", "users", "settings"]) chownSync(join(directory, name), as.uid, as.gid);
  const started = spawnGuarded(["pgbouncer", join(directory, "settings")], { ...as, cwd: directory }, "SIGTERM");
  const bouncer = await ready(started, "process up");
  const url = new URL(server);
  url.port = String(port);
  return {
    url: url.href,
    stop: async () => {
      const ended = once(bouncer, "exit");
      bouncer.stdin?.end();
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
