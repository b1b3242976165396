// Scenarios of the rolling chain: appenders, collectors, crashes and lost replies. The epochs are so small that the
// chain rolls constantly.
import { RollingChain, type AppendOptions } from "../../../src/durable/chain/rolling-chain.ts";
import type { DeltaKind } from "../../../src/durable/chain/state-delta.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { slotName } from "../../../src/format/name.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { addOne, countId, counterOptions, type Counter } from "./counter.ts";
import { share } from "../volumes.ts";

export const table = "/table";

export interface RollingScenarioOptions {
  readonly slotsPerEpoch?: number;
  /** Default true. */
  readonly sync?: boolean;
  /** Default: the boot id of the machine. */
  readonly bootId?: string | undefined;
  readonly mayGiveUp?: () => Promise<boolean>;
  /** Default: every slot holds the whole state. */
  readonly deltas?: DeltaKind<Counter>;
  /** The chain class under test: the real one, or a known-wrong variant. */
  readonly ChainClass?: typeof RollingChain;
}

interface Won {
  readonly actor: string;
  readonly count: number;
  readonly number: number;
}

/** The errors that an actor tolerates: any failure of the disk, or only OUTCOME_UNKNOWN. */
type Patience = "anything" | "told";

/** Appends `times` times and notes each answer. */
export function appender(times: number, options: RollingScenarioOptions, patience: Patience = "anything"): Actor {
  return actor({
    prepare: async ({ name, ports }) => {
      const chain = await openChain(ports, name, options);
      // The chain now remembers its current end.
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
  options: AppendOptions = {},
): Promise<void> {
  try {
    const entry = await chain.append(countId(name, count), (state) => addOne(state, name), options);
    if (entry !== undefined) note("won", { actor: name, count, number: entry.number } satisfies Won);
  } catch (error) {
    // OUTCOME_UNKNOWN is an honest answer when a reply was lost, and so is a disk failure.
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
          // The next collector finishes the work.
          if (patience === "told" || !isHoldfastError(error, "IO_ERROR")) throw error;
        });
    },
  });
}

/** Remembers an old end of the chain, reads on from there, and notes what it saw. */
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
  /** Entries appended after the actors have opened the chain, so that the end they remember is old. */
  readonly entriesMeanwhile?: number;
  /** True if some actor collects. */
  readonly collected?: boolean;
}

async function moveOn(ports: Ports, options: RollingWorldOptions, first = 1): Promise<void> {
  const chain = await openChain(ports, "meanwhile", options);
  for (let count = first; count < first + (options.entriesMeanwhile ?? 0); count++)
    await chain.append(countId("meanwhile", count), (state) => addOne(state, "meanwhile"));
}

/** Adds what every scenario of this kind shares: a chain with a few entries, and the promises. */
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
    // Epochs are always permanent. Without a collector everything is, except an `open` file that its maker creates
    // again after a lost reply.
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
  { ChainClass = RollingChain, slotsPerEpoch = 2, bootId = ports.host.bootId, ...options }: RollingScenarioOptions,
): Promise<RollingChain<Counter>> {
  const staging: Staging = { disk: ports.disk, random: ports.random, directory: async () => `/temp/${name}` };
  return await ChainClass.open<Counter>(staging, table, { ...counterOptions, ...options, slotsPerEpoch, bootId });
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
        alike: ["ada", "bob"],
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
        about:
          "A process slept while its epoch went by. It wakes while that epoch is being collected and another process appends.",
        actors: { ada: appender(1, one), bob: { ...appender(1, one), isFresh: true }, col: collector(1, one) },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: sleeper and two collectors",
        size: "medium",
        about: "Two collectors delete the same epoch while a sleeper still remembers it.",
        actors: { ada: appender(1, one), col: collector(1, one), dan: collector(1, one) },
        alike: ["col", "dan"],
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two sleepers and a collector",
        size: "large",
        about: "Two processes slept while their epoch went by. Both wake during its collection.",
        actors: { ada: appender(1, one), bob: appender(1, one), col: collector(1, one) },
        alike: ["ada", "bob"],
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: three sleepers and a collector",
        size: "large",
        about:
          "Three processes slept while their epoch went by. All wake during its collection. This has millions of states.",
        actors: { ada: appender(1, one), bob: appender(1, one), cleo: appender(1, one), col: collector(1, one) },
        alike: ["ada", "bob", "cleo"],
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    halfCollected(options),
    rollingScenario(
      {
        name: "chain: a reader and a collector",
        about: "A process slept while its epoch went by, and reads while that epoch is being collected.",
        actors: { eve: reader(one), col: collector(1, one) },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: the end is looked for while it is removed",
        about:
          "One process searches by name for the end of a long epoch while a collector removes the names, in any order.",
        actors: { ada: appender(2, four), col: collector(1, four) },
      },
      { ...four, collected: true, entriesBefore: 1, entriesMeanwhile: 8 },
    ),
    rollingScenario(
      {
        name: "chain: a late roller and a collector",
        about:
          "A process creates the directory of an epoch that others created and left long ago, while it is being collected.",
        actors: { ada: appender(1, one), col: collector(1, one) },
      },
      { ...one, collected: true, entriesBefore: 1, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: two appenders, a kill and lost replies",
        size: "medium",
        about: "One process may be killed at any moment. Replies may be lost, or may answer a repeated request.",
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
        about: "The same while the sleeper's epoch is being collected.",
        actors: { ada: appender(1, one), col: collector(1, one) },
        killsMax: 1,
        troubles: { lostReply: 1 },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: a sleeper whose client believes in what is gone",
        about: "One machine had the epoch's `open` file open before another machine collected the epoch.",
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
          "The server may go away before or after it has carried out a request, and returns at once. No caller gets an error, and no append happens twice.",
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
        about: "The same while another machine collects the sleeper's epoch.",
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
        about: "Listings and absent names come from caches while epochs are being collected.",
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
        about:
          "A sleeper wakes on one machine while another machine collects. Listings and absent names come from caches.",
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
        about: "A machine links through a directory that another machine has emptied or removed.",
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
        about: "The power fails at every moment. Acknowledged appends survive, whatever else is lost.",
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
        about: "Any removal may fail with an I/O error or a stale handle while the sleeper's epoch is being collected.",
        actors: { ada: appender(1, one), col: collector(1, one) },
        errors: { errnos: ["EIO", "ESTALE"], operations: ["unlink", "rmdir", "link"] },
        troubles: { error: 1 },
      },
      { ...one, collected: true, entriesMeanwhile: 3 },
    ),
    rollingScenario(
      {
        name: "chain: unsynced slots and a restart",
        about: "Slots are not synced, so a power cut may remove them. After the restart no number is won again.",
        profile: "weak",
        powerCuts: true,
        actors: { ada: appender(2, unsynced) },
        audit: (ports, facts) => noNumberComesBack(ports, facts, { ...unsynced, bootId: undefined }),
      },
      unsynced,
    ),
  ];
}

/** A collector died in the middle of its work. Three processes that slept in that epoch wake, append, and roll over. */
function halfCollected(options: RollingScenarioOptions): Scenario {
  const one = { ...options, slotsPerEpoch: 1 };
  const scenario = rollingScenario(
    {
      name: "chain: three sleepers in an epoch that is half collected",
      size: "medium",
      about:
        "Three appenders find their epoch without its `open` file and with a vacated slot. They race for the newest epoch and the one after it.",
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

/** An append after a restart gets a higher number than any append before it. */
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

/**
 * A process creates the name of an epoch and may die before it syncs the directory. Another process appends in that
 * epoch.
 */
function namedButNotDurable(options: RollingScenarioOptions, sync: boolean): Scenario {
  const two = { ...options, slotsPerEpoch: 2, sync, bootId: "before the power cut" };
  const record = "/temp/namer/epoch";
  const scenario = rollingScenario(
    {
      name: `chain: ${sync ? "" : "unsynced slots in "}an epoch that is named but not durable, power cuts (weak)`,
      about:
        "An append in the epoch survives a power cut, although another process created the epoch's name without a sync.",
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
