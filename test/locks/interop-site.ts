// A directory for tests of interop, and a foreign program in it: a reader and a writer by the rules
// of the seed, independent of Holdfast's own code.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path/posix";
import { openPathLocks, type PathLocks, type PathLocksOptions } from "../../src/locks/index.ts";

export class InteropSite {
  readonly root: string;
  readonly #opened: PathLocks[] = [];

  private constructor(root: string) {
    this.root = root;
  }

  static async make(): Promise<InteropSite> {
    return new InteropSite(await realpath(await mkdtemp(join(tmpdir(), "holdfast-interop-"))));
  }

  async open(options: PathLocksOptions = {}, root: string = this.root): Promise<PathLocks> {
    const locks = await openPathLocks(root, { leaseMs: 30_000, interop: true, ...options });
    this.#opened.push(locks);
    return locks;
  }

  async end(): Promise<void> {
    for (const locks of this.#opened) await locks.close();
    await rm(this.root, { recursive: true, force: true });
  }

  at(path: string): string {
    return path === "" ? this.root : join(this.root, path);
  }

  inside(path: string): string {
    return join(this.at(path), ".path.ovlock");
  }

  beside(path: string): string {
    return exactName(this.at(path));
  }

  /** Every lock file in the directory, by its path below the root. */
  lockFiles(): string[] {
    const names = readdirSync(this.root, { recursive: true, encoding: "utf8" });
    return names.filter((name) => isLockName(basename(name))).sort();
  }
}

/** Writes a lock as a foreign program does. */
export function foreignLock(file: string, type = "E", ageMs = 0, handle = "9b2f0d6e-foreign"): void {
  writeFileSync(file, `${handle}:${BigInt(Math.floor(Date.now() - ageMs)) * 1_000_000n}:${type}`);
}

/** The lock file that would keep a foreign program from locking `path`, by the seed's table. */
export function foreignBlocker(path: string, mode: "exact" | "tree", expireMs = 30_000): string | undefined {
  const isLive = (file: string, types: string): boolean => {
    if (!existsSync(file)) return false;
    const [, timeNs = "0", type = "E"] = readFileSync(file, "utf8").split(":");
    return types.includes(type) && Date.now() - Number(BigInt(timeNs) / 1_000_000n) <= expireMs;
  };
  for (const file of [join(path, ".path.ovlock"), exactName(path)]) if (isLive(file, "ET")) return file;
  for (let above = dirname(path); above !== dirname(above); above = dirname(above))
    if (isLive(join(above, ".path.ovlock"), "T")) return join(above, ".path.ovlock");
  if (mode === "exact" || !existsSync(path) || !statSync(path).isDirectory()) return undefined;
  const below = readdirSync(path, { recursive: true, encoding: "utf8" }).map((name) => join(path, name));
  return below.find((file) => isLockName(basename(file)) && isLive(file, "ET"));
}

export function tokenAt(file: string): string {
  return readFileSync(file, "utf8");
}

function exactName(path: string): string {
  const safe = basename(path)
    .replaceAll(/[^A-Za-z0-9._-]+/g, "_")
    .replaceAll(/^[._]+|[._]+$/g, "");
  const hash = createHash("sha1").update(path).digest("hex").slice(0, 16);
  return join(dirname(path), `.exact.ovlock.${(safe || "path").slice(0, 80)}.${hash}`);
}

function isLockName(name: string): boolean {
  return name === ".path.ovlock" || name.startsWith(".exact.ovlock.");
}
