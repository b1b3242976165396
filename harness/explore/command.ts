// The command `explore`: tries the schedules of the scenarios, shows what was tried, and how to see
// a broken promise again.
import { availableParallelism } from "node:os";
import { Option, type Command } from "commander";
import { judgeMutant, mutantStatesMax } from "../../src/testing/bug-bench.ts";
import { formatTable, parseAtLeastOne, parseCount } from "../command-line.ts";
import { replay, type Exploration, type Violation } from "../../src/testing/explorer/explore.ts";
import type { Scenario } from "../../src/testing/explorer/scenario.ts";
import { ExplorerPool } from "./pool.ts";
import { allScenarios, mutants } from "../rooms/index.ts";

interface ExploreFlags {
  readonly scenario?: string;
  readonly size?: string;
  readonly room?: string;
  readonly jobs: number;
  readonly states: number;
  readonly preemptions?: number;
  readonly random?: number;
  readonly seed: number;
  readonly replay?: string;
  readonly mutants?: boolean;
  readonly list?: boolean;
  readonly json?: boolean;
}

const progressMs = 1000;

export function registerExplore(program: Command): void {
  program
    .command("explore")
    .description(
      "Tries all orders in which a few simulated processes can act on one disk, with crashes, pauses and lost replies.",
    )
    .option("--scenario <text>", "only those whose name contains it")
    .addOption(
      new Option(
        "--size <size>",
        "only scenarios of at most 1,500 states (those after a power cut included), at most 150,000, or more",
      ).choices(["small", "medium", "large"]),
    )
    .option("--room <name>", "only those of this room, such as locks")
    .option("--jobs <n>", "explore so many at the same time", parseAtLeastOne, availableParallelism())
    .option("--states <n>", "give up on a scenario beyond so many states", parseAtLeastOne, 2_000_000)
    .option(
      "--preemptions <n>",
      "only schedules with at most so many switches away from one that could go on",
      parseCount,
    )
    .option("--random <runs>", "so many random schedules instead of all", parseAtLeastOne)
    .option("--seed <n>", "of the random ones", parseCount, 1)
    .option("--replay <seed>", "show one schedule of one scenario again")
    .option("--mutants", "the known-wrong variants instead: each must be caught")
    .option("--list", "only list what there is")
    .option("--json", "print one line of JSON")
    .action(async (flags: ExploreFlags, command: Command) => {
      const chosen = choose(flags);
      if (chosen.length === 0) command.error(`error: there is none of that name, size and room`);
      if (flags.list) return list(chosen, flags);
      if (flags.replay !== undefined) return await showAgain(chosen, flags.replay, flags, command);
      await (flags.mutants ? runMutants(flags) : runScenarios(chosen, flags));
    });
}

interface Choice {
  readonly name: string;
  readonly about: string;
  readonly size: string;
  readonly room: string;
  readonly scenario: Scenario;
}

/** Returns the scenario with exactly this name, or else all whose name contains it. */
function choose({ scenario: text = "", size: onlySize, room: onlyRoom, mutants: ofMutants }: ExploreFlags): Choice[] {
  const listed: Choice[] = ofMutants
    ? mutants.map(({ name, about, scenario, room }) => ({ name, about, scenario, size: "mutant", room }))
    : allScenarios().map((each) => ({ ...each, name: each.scenario.name, about: each.scenario.about }));
  const all = listed.filter(
    ({ size, room }) => (onlySize === undefined || size === onlySize) && (onlyRoom === undefined || room === onlyRoom),
  );
  const exact = all.filter(({ name }) => name === text);
  return exact.length > 0 ? exact : all.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
}

function list(chosen: readonly Choice[], { json = false }: ExploreFlags): void {
  if (json)
    return console.log(JSON.stringify(chosen.map(({ name, about, size, room }) => ({ name, about, size, room }))));
  for (const { name, about, size } of chosen) console.log(`${name} (${size})\n  ${about}`);
}

async function runScenarios(chosen: readonly Choice[], flags: ExploreFlags): Promise<void> {
  const options = {
    statesMax: flags.states,
    preemptionsMax: flags.preemptions,
    ...(flags.random === undefined ? {} : { random: { runs: flags.random, seed: flags.seed } }),
  };
  const explorations = await exploreTogether(flags, (pool) =>
    chosen.map(async ({ name }) => {
      const exploration = await pool.explore({ kind: "scenario", name, options }, progressOf(name, flags));
      if (exploration.violation !== undefined && !flags.json) tell(name, exploration.violation, flags);
      return exploration;
    }),
  );
  console.log(flags.json ? JSON.stringify({ explorations }) : tableOf(explorations));
  if (explorations.some(({ violation }) => violation !== undefined)) process.exitCode = 1;
}

async function exploreTogether<T>({ jobs }: ExploreFlags, begin: (pool: ExplorerPool) => Promise<T>[]): Promise<T[]> {
  const pool = new ExplorerPool(jobs);
  try {
    return await Promise.all(begin(pool));
  } finally {
    await pool.close();
  }
}

/** Prints the progress, at most one line a second. */
function progressOf(name: string, { json = false }: ExploreFlags) {
  let toldAtMs = performance.now();
  return ({ states, schedules }: { readonly states: number; readonly schedules: number }): void => {
    if (json || performance.now() < toldAtMs + progressMs) return;
    toldAtMs = performance.now();
    console.error(`${name}: ${states} states, ${schedules} schedules so far`);
  };
}

function tableOf(explorations: readonly Exploration[]): string {
  const head = ["scenario", "states", "schedules", "crash states", "seconds", "exhausted", "verdict"];
  const rows = explorations.map(({ scenario, states, schedules, crashStates, ms, exhausted, violation }) => [
    scenario,
    ...[states, schedules, crashStates].map(String),
    (ms / 1000).toFixed(1),
    exhausted ? "yes" : "no",
    violation !== undefined ? "BROKEN" : exhausted ? "holds" : "held so far",
  ]);
  return formatTable([head, ...rows]);
}

function tell(
  name: string,
  { message, seed, table }: Violation,
  { preemptions, mutants: ofMutant }: ExploreFlags,
): void {
  const bound = preemptions === undefined ? "" : ` --preemptions ${preemptions}`;
  const which = `${ofMutant ? " --mutants" : ""} --scenario ${quote(name)}${bound}`;
  console.log(
    `${name}: ${message}\n\n${table}\n\nSee it again:\n  node dist-harness/harness/main.js explore${which} --replay ${seed}\n`,
  );
}

/** Quotes a name for a shell: some names contain characters that it would interpret. */
function quote(name: string): string {
  return `'${name.replaceAll("'", `'\\''`)}'`;
}

async function showAgain(
  chosen: readonly Choice[],
  seed: string,
  flags: ExploreFlags,
  command: Command,
): Promise<void> {
  const [choice, ...others] = chosen;
  if (choice === undefined || others.length > 0) command.error("error: --replay needs --scenario with the name of one");
  const { table, violation } = await replay(choice.scenario, seed, { preemptionsMax: flags.preemptions });
  console.log(flags.json ? JSON.stringify({ scenario: choice.name, seed, violation, table }) : table);
  if (!flags.json) console.log(`\n${violation ?? "No promise was broken."}`);
  if (violation !== undefined) process.exitCode = 1;
}

async function runMutants(flags: ExploreFlags): Promise<void> {
  const names = new Set(choose(flags).map(({ name }) => name));
  // If the user selected mutants by name, shows how they were caught.
  const isAskedFor = flags.scenario !== undefined && !flags.json;
  const options = { shortenMs: isAskedFor ? 1000 : 0, statesMax: mutantStatesMax };
  const results = await exploreTogether(flags, (pool) =>
    mutants
      .filter(({ name }) => names.has(name))
      .map(async (mutant) => {
        const result = judgeMutant(mutant, await pool.explore({ kind: "mutant", name: mutant.name, options }));
        if (!flags.json) console.error(`${result.caught ? "caught" : "MISSED"}  ${mutant.name}`);
        if (isAskedFor && result.violation !== undefined) tell(mutant.name, result.violation, flags);
        return result;
      }),
  );
  const rows = results.map(({ mutant, caught, states, ms }) => [mutant, String(states), (ms / 1000).toFixed(1), caught ? "caught" : "MISSED"]); // prettier-ignore
  const head = ["mutant", "states", "seconds", "verdict"];
  console.log(flags.json ? JSON.stringify({ mutants: results }) : formatTable([head, ...rows]));
  if (results.some(({ caught }) => !caught)) process.exitCode = 1;
}
