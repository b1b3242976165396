// The step that tortures every part, each with a parent and workers that are Windows processes.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { windowsPath } from "../wine.mjs";

/** About a kill in two seconds: under Wine a process takes a second to open its part. */
const blowsEveryMsMax = 500;
/** They take longer for an operation, and would be killed more often than they finish one. */
const slowParts = { redo: 1000, files: 1000 };
/** Under Wine a process can be silent for a second, and would lose its session all the time. */
const leaseMs = 4000;
const seconds = 10;
const processes = 4;
/** The torture itself gives up its figures after 300 s; then come calm and audit. */
const timeoutMs = 450_000;

export async function runTorture(prefix, { programs, parts, atLeast }) {
  const problems = [];
  const figures = [];
  for (const part of parts) {
    const [result, log] = [`torture-${part}.json`, `torture-${part}.log`].map((name) => join(prefix.directory, name));
    const parent = join(prefix.driveC, "torture");
    mkdirSync(parent, { recursive: true });
    const orders = {
      part,
      seconds,
      processes,
      seed: 7,
      parent: "C:\\torture",
      leaseMs,
      blowsEveryMsMax: slowParts[part] ?? blowsEveryMsMax,
      atLeast,
    };
    const args = [windowsPath(join(programs, "torture.js")), windowsPath(result), JSON.stringify(orders)];
    const ending = await prefix.run(args, { log, cwd: prefix.driveC, timeoutMs });
    if (!existsSync(result)) {
      problems.push(`${part}: the process ended with ${ending.code ?? ending.signal}: see ${log}`);
      continue;
    }
    const found = JSON.parse(readFileSync(result, "utf8"));
    figures.push(`${part} ${found.appends} operations ${found.kills} kills in ${found.seconds} s`);
    for (const violation of found.violations) problems.push(`${part}: ${violation}`);
    for (const [name, least] of Object.entries(atLeast))
      if (found[name] < least) problems.push(`${part}: only ${found[name]} ${name} of ${least}`);
  }
  return { figures: figures.join(", "), problems };
}
