// Scenarios of the rolling chain: appenders, collectors, crashes and lost replies, on epochs so small that everything rolls all the time.
import { RollingChain } from "../../durable/rolling-chain.ts";
import type { Staging } from "../../durable/staging.ts";
import type { Ports } from "../../ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../explorer/scenario.ts";
import { addOne, countId, openCounter, type Counter } from "./counter.ts";

const table = "/table";

export interface RollingScenarioOptions {
  readonly slotsPerEpoch?: number;
  /** What the scenario runs on: the real one, or a known-wrong variant. */
  readonly ChainClass?: typeof RollingChain;
}

interface Won {
  readonly actor: string;
  readonly count: number;
  readonly number: number;
}

/** Appends `times` and notes what it was told each time. */
export function appender(times: number, options: RollingScenarioOptions): Actor {
  return actor({
    prepare: async ({ name, ports }) => {
      const chain = await open(ports, name, options);
      // From now on it has an end of the chain in mind.
      await chain.read();
      return chain;
    },
    run: async (context, chain) => {
      for (let count = 1; count <= times; count++) await appendOne(context, chain, count);
    },
  });
}

async function appendOne({ name, note }: ActorContext, chain: RollingChain<Counter>, count: number): Promise<void> {
  const entry = await chain.append(countId(name, count), (state) => addOne(state, name));
  if (entry !== undefined) note("won", { actor: name, count, number: entry.number } satisfies Won);
}

export function collector(rounds: number, options: RollingScenarioOptions): Actor {
  return actor({
    prepare: ({ name, ports }) => open(ports, name, options),
    run: async (_context, chain) => {
      for (let round = 0; round < rounds; round++) await chain.collect();
    },
  });
}

export interface RollingWorldOptions extends RollingScenarioOptions {
  readonly entriesBefore?: number;
  /** Appended after the actors have opened the chain: they have an old end of it in mind. */
  readonly entriesMeanwhile?: number;
  /** Some actor collects. */
  readonly collected?: boolean;
}

async function moveOn(ports: Ports, options: RollingWorldOptions): Promise<void> {
  const chain = await open(ports, "meanwhile", options);
  for (let count = 1; count <= (options.entriesMeanwhile ?? 0); count++)
    await chain.append(countId("meanwhile", count), (state) => addOne(state, "meanwhile"));
}

/** What every scenario of this kind shares: a chain that already has a few entries, and the promises. */
export function rollingScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  options: RollingWorldOptions,
): Scenario {
  return {
    setup: async (ports) => {
      await ports.disk.mkdir("/temp");
      for (const name of ["setup", "meanwhile", "auditor", ...Object.keys(scenario.actors)])
        await ports.disk.mkdir(`/temp/${name}`);
      const chain = await open(ports, "setup", options);
      for (let count = 1; count <= (options.entriesBefore ?? 0); count++)
        await chain.append(countId("setup", count), (state) => addOne(state, "setup"));
    },
    ...(options.entriesMeanwhile === undefined ? {} : { meanwhile: (ports: Ports) => moveOn(ports, options) }),
    // Epochs always are; without a collector everything is.
    isPermanent: (path) => path.startsWith(options.collected ? `${table}/epochs/` : `${table}/`),
    check: noNumberTwice,
    audit: async (ports, facts) => {
      const { state } = await (await open(ports, "auditor", options)).read();
      everyWinCounts(state, facts);
    },
    ...scenario,
  };
}

async function open(ports: Ports, name: string, options: RollingScenarioOptions): Promise<RollingChain<Counter>> {
  const staging: Staging = { disk: ports.disk, random: ports.random, directory: async () => `/temp/${name}` };
  return await openCounter(ports, staging, table, options.slotsPerEpoch ?? 2, options.ChainClass);
}

function noNumberTwice(facts: readonly Fact[]): void {
  const numbers = valuesOf<Won>(facts, "won").map((won) => won.number);
  const twice = numbers.find((number, index) => numbers.indexOf(number) !== index);
  mustHold(twice === undefined, `number ${twice} was won twice`);
}

function everyWinCounts(state: Counter, facts: readonly Fact[]): void {
  for (const { actor, count, number } of valuesOf<Won>(facts, "won"))
    mustHold(
      (state[actor] ?? 0) >= count,
      `append ${count} of ${actor} was acknowledged as number ${number} and is lost`,
    );
}

export function rollingChainScenarios(options: RollingScenarioOptions = {}): Scenario[] {
  const one = { ...options, slotsPerEpoch: 1 };
  const two = { ...options, slotsPerEpoch: 2 };
  return [
    rollingScenario(
      {
        name: "chain: two appenders, rolling",
        about: "Two processes append twice each while the chain rolls to new epochs.",
        actors: { ada: appender(2, two), bob: appender(2, two) },
      },
      two,
    ),
    rollingScenario(
      {
        name: "chain: three appenders, rolling",
        about: "Three processes race for the slots of one epoch and for the name of the next.",
        actors: { ada: appender(1, one), bob: appender(1, one), cleo: appender(1, one) },
      },
      one,
    ),
    rollingScenario(
      {
        name: "chain: sleeper, appender and collector",
        about: "One slept while its epoch went by; it wakes while that epoch is being collected and another appends.",
        actors: { ada: appender(1, one), bob: { ...appender(1, one), isFresh: true }, col: collector(1, one) },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: sleeper and two collectors",
        about: "Two collectors delete the same epoch under a sleeper who still has it in mind.",
        actors: { ada: appender(1, one), col: collector(1, one), dan: collector(1, one) },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two sleepers and a collector",
        about: "Two slept in the same epoch while it went by; both wake during its collection.",
        actors: { ada: appender(1, one), bob: appender(1, one), col: collector(1, one) },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
  ];
}
