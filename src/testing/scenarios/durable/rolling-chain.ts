// Scenarios of the rolling chain: appenders, collectors, crashes and lost replies, on epochs so
// small that everything rolls all the time.
import { RollingChain } from "../../../durable/chain/rolling-chain.ts";
import type { Staging } from "../../../durable/publish/staging.ts";
import { isHoldfastError } from "../../../errors.ts";
import { slotName } from "../../../format/name.ts";
import type { Ports } from "../../../ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../explorer/scenario.ts";
import { addOne, countId, counterOptions, type Counter } from "./counter.ts";
import { share } from "../volumes.ts";

export const table = "/table";

export interface RollingScenarioOptions {
  readonly slotsPerEpoch?: number;
  /** Default true. */
  readonly sync?: boolean;
  /** Default: that of the machine. */
  readonly bootId?: string | undefined;
  readonly mayGiveUp?: () => Promise<boolean>;
  /** What the scenario runs on: the real one, or a known-wrong variant. */
  readonly ChainClass?: typeof RollingChain;
}

interface Won {
  readonly actor: string;
  readonly count: number;
  readonly number: number;
}

/** What an actor puts up with: failures of the disk, or nothing but not to know. */
type Patience = "anything" | "told";

/** Appends `times` and notes what it was told each time. */
export function appender(times: number, options: RollingScenarioOptions, patience: Patience = "anything"): Actor {
  return actor({
    prepare: async ({ name, ports }) => {
      const chain = await openChain(ports, name, options);
      // From now on it has an end of the chain in mind.
      await chain.read();
      return chain;
    },
    run: async (context, chain) => {
      for (let count = 1; count <= times; count++) await appendOne(context, chain, count, patience);
    },
  });
}

export async function appendOne(
  { name, note }: ActorContext,
  chain: RollingChain<Counter>,
  count: number,
  patience: Patience = "anything",
): Promise<void> {
  try {
    const entry = await chain.append(countId(name, count), (state) => addOne(state, name));
    if (entry !== undefined) note("won", { actor: name, count, number: entry.number } satisfies Won);
  } catch (error) {
    // Not to know is an honest answer when an answer got lost, and so is a failure of the disk.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN", ...(patience === "told" ? [] : (["IO_ERROR"] as const))))
      throw error;
    note("unknown", count);
  }
}

export function collector(rounds: number, options: RollingScenarioOptions, patience: Patience = "anything"): Actor {
  return actor({
    prepare: ({ name, ports }) => openChain(ports, name, options),
    run: async (_context, chain) => {
      for (let round = 0; round < rounds; round++)
        await chain.collect().catch((error: unknown) => {
          // Left to the next collector.
          if (patience === "told" || !isHoldfastError(error, "IO_ERROR")) throw error;
        });
    },
  });
}

/** Has an old end of the chain in mind, reads on from there, and tells what it saw. */
export function reader(options: RollingScenarioOptions): Actor {
  return actor({
    prepare: async ({ name, ports }) => {
      const chain = await openChain(ports, name, options);
      await chain.read();
      return chain;
    },
    run: async ({ note }, chain) => note("acted on", (await chain.read()).state),
  });
}

export interface RollingWorldOptions extends RollingScenarioOptions {
  readonly entriesBefore?: number;
  /** Appended after the actors have opened the chain: they have an old end of it in mind. */
  readonly entriesMeanwhile?: number;
  /** Some actor collects. */
  readonly collected?: boolean;
}

async function moveOn(ports: Ports, options: RollingWorldOptions, first = 1): Promise<void> {
  const chain = await openChain(ports, "meanwhile", options);
  for (let count = first; count < first + (options.entriesMeanwhile ?? 0); count++)
    await chain.append(countId("meanwhile", count), (state) => addOne(state, "meanwhile"));
}

/**
 * What every scenario of this kind shares: a chain that already has a few entries, and the
 * promises.
 */
export function rollingScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  options: RollingWorldOptions,
): Scenario {
  return {
    setup: async (ports) => {
      await ports.disk.mkdir("/temp");
      for (const name of ["setup", "meanwhile", "auditor", ...Object.keys(scenario.actors)])
        await ports.disk.mkdir(`/temp/${name}`);
      const chain = await openChain(ports, "setup", options);
      for (let count = 1; count <= (options.entriesBefore ?? 0); count++)
        await chain.append(countId("setup", count), (state) => addOne(state, "setup"));
    },
    ...(options.entriesMeanwhile === undefined ? {} : { meanwhile: (ports: Ports) => moveOn(ports, options) }),
    // Epochs always are; without a collector everything is, but for an `open` that its maker makes
    // again because the answer was lost.
    isPermanent: (path) =>
      path === table ||
      (!path.endsWith("/open") && `${path}/`.startsWith(options.collected ? `${table}/epochs/` : `${table}/`)),
    check: noNumberTwice,
    audit: async (ports, facts) => {
      const { state } = await (await openChain(ports, "auditor", options)).read();
      everyWinCounts(state, facts);
    },
    ...scenario,
  };
}

export async function openChain(
  ports: Ports,
  name: string,
  { slotsPerEpoch = 2, sync, mayGiveUp, ChainClass = RollingChain, bootId = ports.host.bootId }: RollingScenarioOptions,
): Promise<RollingChain<Counter>> {
  const staging: Staging = { disk: ports.disk, random: ports.random, directory: async () => `/temp/${name}` };
  return await ChainClass.open<Counter>(staging, table, { ...counterOptions, slotsPerEpoch, sync, bootId, mayGiveUp });
}

function noNumberTwice(facts: readonly Fact[]): void {
  const numbers = valuesOf<Won>(facts, "won").map((won) => won.number);
  const twice = numbers.find((number, index) => numbers.indexOf(number) !== index);
  mustHold(twice === undefined, `number ${twice} was won twice`);
}

export function everyWinCounts(state: Counter, facts: readonly Fact[]): void {
  for (const { actor, count, number } of valuesOf<Won>(facts, "won"))
    mustHold(
      (state[actor] ?? 0) >= count,
      `append ${count} of ${actor} was acknowledged as number ${number} and is lost`,
    );
}

export function rollingChainScenarios(options: RollingScenarioOptions = {}): Scenario[] {
  const one = { ...options, slotsPerEpoch: 1 };
  const two = { ...options, slotsPerEpoch: 2 };
  const four = { ...options, slotsPerEpoch: 4 };
  const unsynced = { ...one, sync: false, bootId: "before the power cut" };
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
        size: "medium",
        about: "Three processes race for the slots of one epoch and for the name of the next.",
        actors: { ada: appender(1, one), bob: appender(1, one), cleo: appender(1, one) },
        alike: ["ada", "bob", "cleo"],
      },
      one,
    ),
    rollingScenario(
      {
        name: "chain: sleeper, appender and collector",
        size: "medium",
        about: "One slept while its epoch went by; it wakes while that epoch is being collected and another appends.",
        actors: { ada: appender(1, one), bob: { ...appender(1, one), isFresh: true }, col: collector(1, one) },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: sleeper and two collectors",
        size: "medium",
        about: "Two collectors delete the same epoch under a sleeper that still has it in mind.",
        actors: { ada: appender(1, one), col: collector(1, one), dan: collector(1, one) },
        alike: ["col", "dan"],
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two sleepers and a collector",
        size: "large",
        about: "Two slept in the same epoch while it went by; both wake during its collection.",
        actors: { ada: appender(1, one), bob: appender(1, one), col: collector(1, one) },
        alike: ["ada", "bob"],
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: three sleepers and a collector",
        size: "large",
        about: "Three slept in the same epoch while it went by; all wake during its collection. Millions of states.",
        actors: { ada: appender(1, one), bob: appender(1, one), cleo: appender(1, one), col: collector(1, one) },
        alike: ["ada", "bob", "cleo"],
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    halfCollected(options),
    rollingScenario(
      {
        name: "chain: a reader and a collector",
        about: "One slept while its epoch went by, and reads while that epoch is collected.",
        actors: { eve: reader(one), col: collector(1, one) },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: the end is looked for while it is removed",
        about: "One looks by names for the end of a long epoch while a collector takes the names away, in any order.",
        actors: { ada: appender(2, four), col: collector(1, four) },
      },
      { ...four, collected: true, entriesBefore: 1, entriesMeanwhile: 8 },
    ),
    rollingScenario(
      {
        name: "chain: a late roller and a collector",
        about:
          "One makes the directory of an epoch that others have named and left behind long ago, while it is collected.",
        actors: { ada: appender(1, one), col: collector(1, one) },
      },
      { ...one, collected: true, entriesBefore: 1, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two appenders, a kill and lost replies",
        size: "medium",
        about: "One may be killed at any moment; replies may be lost, or be those of a repeated request.",
        actors: { ada: appender(1, one), bob: appender(1, one) },
        killsMax: 1,
        troubles: { lostReply: 1, retransmit: 1 },
      },
      one,
    ),
    rollingScenario(
      {
        name: "chain: sleeper and collector, a kill and a lost reply",
        size: "medium",
        about: "The same while the epoch of the sleeper is collected.",
        actors: { ada: appender(1, one), col: collector(1, one) },
        killsMax: 1,
        troubles: { lostReply: 1 },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: a sleeper whose client believes in what is gone",
        about: "Its machine had the `open` file of the epoch open before another machine collected the epoch.",
        volume: share,
        profile: "share",
        quirks: { stalePresence: true },
        troubles: { stale: 2 },
        actors: { ada: { ...appender(1, one), machine: "m1" }, col: { ...collector(1, one), machine: "m2" } },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two machines whose server goes away",
        size: "medium",
        about:
          "Before or after it has done what it was asked for, and be back at once: no caller is told of it, and nothing is done twice.",
        volume: share,
        profile: "share",
        quirks: { outages: true },
        troubles: { outage: 1 },
        actors: {
          ada: { ...appender(1, one, "told"), machine: "m1" },
          bob: { ...appender(1, one, "told"), machine: "m2" },
        },
        audit: async (ports, facts) => {
          const { state } = await (await openChain(ports, "auditor", one)).read();
          everyWinCounts(state, facts);
          mustHold((state["ada"] ?? 0) <= 1 && (state["bob"] ?? 0) <= 1, "an append was made twice");
        },
      },
      { ...one, collected: true },
    ),
    rollingScenario(
      {
        name: "chain: sleeper and collector, the server goes away",
        size: "medium",
        about: "The same while the epoch of the sleeper is collected by another machine.",
        volume: share,
        profile: "share",
        quirks: { outages: true },
        troubles: { outage: 1 },
        actors: {
          ada: { ...appender(1, one, "told"), machine: "m1" },
          col: { ...collector(1, one, "told"), machine: "m2" },
        },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: three machines with old caches",
        size: "large",
        about: "Listings and absent names come from caches, while epochs are collected.",
        volume: share,
        profile: "share",
        quirks: { staleListings: true, staleAbsence: true },
        troubles: { stale: 2 },
        actors: {
          ada: { ...appender(1, one), machine: "m1" },
          bob: { ...appender(1, one), machine: "m2", isFresh: true },
          col: { ...collector(1, one), machine: "m3" },
        },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two machines with old caches",
        size: "medium",
        about: "A sleeper wakes on one machine, another collects; listings and absent names come from caches.",
        volume: share,
        profile: "share",
        quirks: { staleListings: true, staleAbsence: true },
        actors: { ada: { ...appender(1, one), machine: "m1" }, col: { ...collector(1, one), machine: "m2" } },
        troubles: { stale: 3 },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two machines with old directory handles",
        about: "A machine links through a directory that another one has emptied or removed.",
        volume: share,
        profile: "share",
        quirks: { directoryHandles: true },
        actors: { ada: { ...appender(1, one), machine: "m1" }, col: { ...collector(1, one), machine: "m2" } },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two appenders, power cuts (weak)",
        size: "medium",
        about: "The power fails at every moment; what was won is there, whatever else is lost.",
        profile: "weak",
        powerCuts: true,
        actors: { ada: appender(1, one), bob: appender(1, one) },
      },
      one,
    ),
    namedButNotDurable(options, true),
    namedButNotDurable(options, false),
    rollingScenario(
      {
        name: "chain: sleeper and collector, failing disk",
        size: "medium",
        about: "Any removal may fail with an I/O error or a stale handle while an epoch is collected under a sleeper.",
        actors: { ada: appender(1, one), col: collector(1, one) },
        errors: { errnos: ["EIO", "ESTALE"], operations: ["unlink", "rmdir", "link"] },
        troubles: { error: 1 },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: unsynced slots and a restart",
        about: "Slots are not synced, so a power cut may take them; after the restart no number is won again.",
        profile: "weak",
        powerCuts: true,
        actors: { ada: appender(2, unsynced) },
        audit: (ports, facts) => noNumberComesBack(ports, facts, { ...unsynced, bootId: undefined }),
      },
      unsynced,
    ),
  ];
}

/**
 * A collector has died in the middle of its work; three processes that slept in that epoch wake,
 * append, and roll over.
 */
function halfCollected(options: RollingScenarioOptions): Scenario {
  const one = { ...options, slotsPerEpoch: 1 };
  const scenario = rollingScenario(
    {
      name: "chain: three sleepers in an epoch that is half collected",
      size: "medium",
      about:
        "Three appenders find their epoch without its `open` file and with a vacated slot, and race for the newest one and the one after it.",
      actors: { ada: appender(1, one), bob: appender(1, one), cleo: appender(1, one) },
      alike: ["ada", "bob", "cleo"],
    },
    { ...one, collected: true },
  );
  return {
    ...scenario,
    meanwhile: async (ports) => {
      for (const [index, slotsPerEpoch] of [1, 1, 2].entries())
        await moveOn(ports, { ...options, slotsPerEpoch, entriesMeanwhile: 1 }, index + 1);
      const directory = `${table}/${(await ports.disk.list(table)).find((name) => name.startsWith(slotName(1)))}`;
      for (const name of ["open", slotName(1)]) await ports.disk.unlink(`${directory}/${name}`);
    },
  };
}

/** A process that appends after a restart gets a number that no process had before. */
export async function noNumberComesBack(
  ports: Ports,
  facts: readonly Fact[],
  options: RollingScenarioOptions,
): Promise<void> {
  const chain = await openChain(ports, "auditor", options);
  const entry = await chain.append(countId("auditor", 1), (state) => addOne(state, "auditor"));
  for (const { number } of valuesOf<Won>(facts, "won"))
    mustHold((entry?.number ?? 0) > number, `number ${number} was won before the restart and again after it`);
}

/** A process has named an epoch and dies before its sync; another appends in it. */
function namedButNotDurable(options: RollingScenarioOptions, sync: boolean): Scenario {
  const two = { ...options, slotsPerEpoch: 2, sync, bootId: "before the power cut" };
  const record = "/temp/namer/epoch";
  const scenario = rollingScenario(
    {
      name: `chain: ${sync ? "" : "unsynced slots in "}an epoch that is named but not durable, power cuts (weak)`,
      about: "What is won in it counts after a power cut, although its name is the unfinished work of another process.",
      ...(sync
        ? {}
        : {
            audit: (ports: Ports, facts: readonly Fact[]) =>
              noNumberComesBack(ports, facts, { ...two, bootId: undefined }),
          }),
      profile: "weak",
      powerCuts: true,
      actors: {
        ada: appender(1, two),
        namer: {
          run: async ({ ports }) => ports.disk.link(record, `${table}/epochs/${slotName(2)}`).catch(() => undefined),
        },
      },
      isPermanent: () => false,
    },
    { ...two, entriesBefore: 3 },
  );
  return {
    ...scenario,
    setup: async (ports) => {
      await scenario.setup?.(ports);
      await ports.disk.rename(`${table}/epochs/${slotName(2)}`, record);
    },
  };
}
