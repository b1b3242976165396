// The command `explore`: tries the schedules of the scenarios, shows what was tried, and how to see a broken promise again.
import type { Command } from "commander";
import { benchMutant, mutants, type BenchResult } from "./bug-bench.ts";
import { formatTable, parseAtLeastOne, parseCount } from "./command-line.ts";
import { explore, replay, type Exploration, type Violation } from "./explorer/explore.ts";
import type { Scenario } from "./explorer/scenario.ts";
import { allScenarios } from "./scenarios/index.ts";

interface ExploreFlags {
  readonly scenario?: string;
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
      if (chosen.length === 0) command.error(`error: nothing has a name that contains "${flags.scenario ?? ""}"`);
      if (flags.list) return list(chosen, flags);
      if (flags.replay !== undefined) return await showAgain(chosen, flags.replay, flags, command);
      await (flags.mutants ? runMutants(flags) : runScenarios(chosen, flags));
    });
}

interface Choice {
  readonly name: string;
  readonly about: string;
  readonly size: string;
  readonly scenario: Scenario;
}

/** The one that has exactly this name, or all that contain it. */
function choose({ scenario: text = "", mutants: wantsMutants = false }: ExploreFlags): Choice[] {
  const all: Choice[] = wantsMutants
    ? mutants.map(({ name, about, scenario }) => ({ name, about, scenario, size: "mutant" }))
    : allScenarios().map(({ scenario, size }) => ({ name: scenario.name, about: scenario.about, scenario, size }));
  const exact = all.filter(({ name }) => name === text);
  return exact.length > 0 ? exact : all.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
}

function list(chosen: readonly Choice[], { json = false }: ExploreFlags): void {
  if (json) return console.log(JSON.stringify(chosen.map(({ name, about, size }) => ({ name, about, size }))));
  for (const { name, about, size } of chosen) console.log(`${name} (${size})\n  ${about}`);
}

async function runScenarios(chosen: readonly Choice[], flags: ExploreFlags): Promise<void> {
  const explorations: Exploration[] = [];
  for (const { scenario } of chosen) {
    const exploration = await explore(scenario, {
      statesMax: flags.states,
      preemptionsMax: flags.preemptions,
      ...(flags.random === undefined ? {} : { random: { runs: flags.random, seed: flags.seed } }),
      onProgress: progressOf(scenario.name, flags),
    });
    explorations.push(exploration);
    if (exploration.violation !== undefined && !flags.json) tell(scenario.name, exploration.violation, flags);
  }
  console.log(flags.json ? JSON.stringify({ explorations }) : tableOf(explorations));
  if (explorations.some(({ violation }) => violation !== undefined)) process.exitCode = 1;
}

/** At most one line a second, so that minutes of work are not silence. */
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
    `${name}: ${message}\n\n${table}\n\nSee it again:\n  node dist/testing/main.js explore${which} --replay ${seed}\n`,
  );
}

/** For a shell: some names contain what it would run. */
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
  const results: BenchResult[] = [];
  for (const mutant of mutants.filter(({ name }) => names.has(name))) {
    // Who asks for some by name wants to see how they are caught.
    const isAskedFor = flags.scenario !== undefined && !flags.json;
    const result = await benchMutant(mutant, { shortenMs: isAskedFor ? 1000 : 0 });
    results.push(result);
    if (!flags.json) console.error(`${result.caught ? "caught" : "MISSED"}  ${mutant.name}`);
    if (isAskedFor && result.violation !== undefined) tell(mutant.name, result.violation, flags);
  }
  const rows = results.map(({ mutant, caught, states, ms }) => [mutant, String(states), (ms / 1000).toFixed(1), caught ? "caught" : "MISSED"]); // prettier-ignore
  const head = ["mutant", "states", "seconds", "verdict"];
  console.log(flags.json ? JSON.stringify({ mutants: results }) : formatTable([head, ...rows]));
  if (results.some(({ caught }) => !caught)) process.exitCode = 1;
}
