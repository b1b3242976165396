// The command `torture`: it disturbs real processes for a while, and reports every broken promise.
import { Option, type Command } from "commander";
import { formatTable, parseAtLeastOne, parseCount } from "../command-line.ts";
import { tortureParts } from "./parts.ts";
import type { TortureFigures } from "./task.ts";
import { torture, type TortureResult } from "./torture.ts";

interface TortureFlags {
  readonly seconds: number;
  readonly processes: number;
  readonly seed?: number;
  readonly part?: string;
  readonly dir?: string;
  readonly sabotage?: boolean;
  readonly json?: boolean;
}

export function registerTorture(program: Command): void {
  program
    .command("torture")
    .description(
      "Real processes work on one folder and are killed, stopped and continued at any moment; then a fresh process audits what they were promised. Stops need Linux or macOS.",
    )
    .option("--seconds <n>", "how long each part lasts", parseAtLeastOne, 20)
    .option("--processes <n>", "how many work at the same time", parseAtLeastOne, 8)
    .option(
      "--seed <n>",
      "decides which process is hit, when and how; the processes' own timing is never the same (default: new)",
      parseCount,
    ) // prettier-ignore
    .addOption(new Option("--part <name>", "only this part (default: all)").choices(tortureParts))
    .option("--dir <path>", "make the folder in there (default: where temporary files are)")
    .option("--sabotage", "run known-wrong variants, to see that they are found out")
    .option("--json", "print one line of JSON")
    .action(async (flags: TortureFlags) => {
      const interruption = new AbortController();
      for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, () => interruption.abort(name));
      try {
        await run(flags, interruption.signal);
      } catch (error) {
        if (!interruption.signal.aborted) throw error;
        // By now all children have ended, and no handler catches the signal any more.
        process.kill(process.pid, interruption.signal.reason as NodeJS.Signals);
      }
    });
}

async function run(flags: TortureFlags, signal: AbortSignal): Promise<void> {
  const { part: only, processes, dir: parent, json = false } = flags;
  const seed = flags.seed ?? Math.floor(Math.random() * 2 ** 31);
  const note = (text: string): void => (json ? undefined : console.error(text));
  const results: TortureResult[] = [];
  for (const part of only === undefined ? tortureParts : [only]) {
    note(`${part}: ${processes} processes, seed ${seed}`);
    const onProgress = (figures: TortureFigures): void => note(progressLine(figures));
    results.push(await torture({ ...flags, part, seed, parent, signal, onProgress }));
  }
  console.log(json ? JSON.stringify({ seed, parts: results }) : summary(results));
  process.exitCode = results.some(({ violations }) => violations.length > 0) ? 1 : 0;
}

function progressLine({ seconds, appends, kills, stops, livesOver }: TortureFigures): string {
  return `${seconds.toFixed(0).padStart(4)} s  ${appends} appends  ${kills} kills  ${stops} stops  ${livesOver} lives over`;
}

function summary(results: readonly TortureResult[]): string {
  const head = ["part", "appends", "per second", "kills", "inside", "stops", "lives over", "epochs", "verdict"];
  const rows = results.map((result) => [
    result.part,
    ...[result.appends, result.appendsPerSecond, result.kills, result.killsInside, result.stops].map(String),
    ...[result.livesOver, result.epochs].map(String),
    result.violations.length === 0 ? "held" : "BROKEN",
  ]);
  const broken = results.flatMap(({ part, violations }) => violations.map((violation) => `${part}: ${violation}`));
  return [formatTable([head, ...rows]), ...broken].join("\n");
}
