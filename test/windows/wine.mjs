// Wine: finds or installs it, makes a prefix of its own, and runs Node for Windows in it.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const runtimes = fileURLToPath(new URL("runtimes", import.meta.url));
/** Debian keeps it out of PATH. */
const placesOfWine = ["wine64", "/usr/lib/wine/wine64", "/usr/lib/wine/wine", "wine"];

const isOk = (command, args) => spawnSync(command, args, { stdio: "ignore" }).status === 0;

export function findWine() {
  const places = process.env["WINE"] === undefined ? placesOfWine : [process.env["WINE"]];
  return places.find((place) => isOk(place, ["--version"]));
}

/** Returns undefined if Wine can neither be found nor installed. */
export function findOrInstallWine() {
  const found = findWine();
  const isAllowed = process.getuid?.() === 0 && existsSync("/usr/bin/apt-get") && process.env["WINE"] === undefined;
  if (found !== undefined || !isAllowed) return found;
  const apt = (...args) => spawnSync("apt-get", args, { stdio: ["ignore", "ignore", "inherit"] }).status === 0;
  const packages = ["install", "-y", "--no-install-recommends", "wine", "wine64"];
  if (apt(...packages) || apt("update")) apt(...packages);
  return findWine();
}

/** Installs Node for Windows from npm. Returns false if that is not possible, for example without a network. */
export function installRuntimes(versions) {
  if (versions.some((version) => !existsSync(executable(version))))
    // --force: the packages are for another system than this one.
    spawnSync("npm", ["ci", "--force", "--ignore-scripts", "--silent"], { cwd: runtimes, stdio: "inherit" });
  return versions.every((version) => existsSync(executable(version)));
}

function executable(version) {
  return join(runtimes, "node_modules", `node${version}`, "bin/node.exe");
}

export function windowsPath(path) {
  return `Z:${path.replaceAll("/", "\\")}`;
}

/** A Windows of its own, with one version of Node. */
export class WinePrefix {
  #wine;
  #env;
  #children = new Set();

  constructor(wine, directory, version) {
    this.#wine = wine;
    this.version = version;
    this.directory = directory;
    this.#env = {
      PATH: process.env["PATH"],
      HOME: directory,
      // Without it Wine can make no file whose name is not ASCII.
      LC_ALL: "C.UTF-8",
      WINEPREFIX: join(directory, "prefix"),
      WINEARCH: "win64",
      WINEDEBUG: "-all",
      // No .NET and no HTML engine: Wine would offer to download them.
      WINEDLLOVERRIDES: "mscoree,mshtml=",
      // Wine lacks the programs of Windows that tell which drives are local.
      HOLDFAST_LOCAL: "C:\\",
    };
  }

  /** The folder of Windows' drive C:, as Linux sees it. */
  get driveC() {
    return join(this.#env.WINEPREFIX, "drive_c");
  }

  async make() {
    mkdirSync(this.directory, { recursive: true });
    await this.#must(["wineboot", "-i"]);
    // Wine says that it is Windows 7 unless it is told otherwise, and Node refuses that.
    await this.#must(["reg", "add", "HKCU\\Software\\Wine", "/v", "Version", "/d", "win10", "/f"]);
    spawnSync("wineserver", ["-p"], { env: this.#env });
    mkdirSync(join(this.driveC, "node"));
    symlinkSync(executable(this.version), join(this.driveC, "node", "node.exe"));
  }

  /** Starts Node with a program of Windows. Its output goes to files: under Wine a pipe of Linux cannot be written. */
  start(args, { log, cwd, env = {} }) {
    const file = openSync(log, "a");
    const child = spawn(this.#wine, ["C:\\node\\node.exe", ...args], {
      cwd,
      env: { ...this.#env, ...env },
      stdio: ["ignore", file, file],
    });
    closeSync(file);
    this.#children.add(child);
    const ended = new Promise((resolve) => {
      child.once("error", (error) => resolve({ code: null, signal: String(error) }));
      child.once("exit", (code, signal) => resolve({ code, signal }));
    }).finally(() => this.#children.delete(child));
    return { child, ended };
  }

  async run(args, { timeoutMs, ...options }) {
    const { child, ended } = this.start(args, options);
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    try {
      return await ended;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends every process of this prefix, and no other. */
  end() {
    for (const child of this.#children) child.kill("SIGKILL");
    spawnSync("wineserver", ["-k"], { env: this.#env });
  }

  async #must(args) {
    const log = join(this.directory, "setup.log");
    const file = openSync(log, "a");
    const child = spawn(this.#wine, args, { env: this.#env, stdio: ["ignore", file, file] });
    closeSync(file);
    const code = await new Promise((resolve, reject) => child.once("error", reject).once("exit", resolve));
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${readFileSync(log, "utf8")}`);
  }
}
