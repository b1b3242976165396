// Scenarios of a rolling chain with unsynced slots that is opened under another boot id: after a restart, or while
// processes with the first boot id still run.
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, mustHold, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { serverMachine } from "../../../src/testing/sim/machine.ts";
import { addOne, countId } from "./counter.ts";
import {
  appender,
  appendOne,
  noNumberComesBack,
  openChain,
  rollingScenario,
  table,
  type RollingScenarioOptions,
} from "./rolling-chain.ts";
import { share } from "../volumes.ts";

const host = "boot of the host";
const container = "boot of the container";

/** Opens the chain only when the scenario runs, and appends. */
function newcomer(options: RollingScenarioOptions): Actor {
  return actor({
    run: async (context) => appendOne(context, await openChain(context.ports, context.name, options), 1),
  });
}

/** Appends under one boot id, then under another. */
function inTurns(first: RollingScenarioOptions, second: RollingScenarioOptions): Actor {
  return actor({
    prepare: ({ name, ports }) => openChain(ports, name, first),
    run: async (context, chain) => {
      await appendOne(context, chain, 1);
      await appendOne(context, await openChain(context.ports, context.name, second), 2);
    },
  });
}

/** Has read the chain before, and gets a refusal. */
function refused(options: RollingScenarioOptions): Actor {
  return actor({
    prepare: ({ name, ports }) => openChain(ports, name, options),
    run: async ({ name, note }, chain) => {
      await chain.append(countId(name, 1), (state) => ((state["ada"] ?? 0) >= 9 ? addOne(state, name) : undefined));
      note("refused");
    },
  });
}

/** The chain can be read and appended to, whichever of its slots are torn. */
async function goesOn(ports: Ports, options: RollingScenarioOptions): Promise<void> {
  const chain = await openChain(ports, "auditor", options);
  const { number } = await chain.read();
  const entry = await chain.append(countId("auditor", 1), (state) => addOne(state, "auditor"));
  mustHold(entry !== undefined && entry.number > number, `nothing can be appended after ${number}`);
}

/**
 * A file system disappears under its users and returns in the same boot, without the data that was not yet on the
 * disk.
 */
export function comesBackScenarios(options: RollingScenarioOptions = {}, of = "chain"): Scenario[] {
  const onHost = { ...options, sync: false, slotsPerEpoch: 2, bootId: host };
  return (["ext4-ordered", "weak"] as const).map((profile) =>
    rollingScenario(
      {
        name: `${of}: the file system comes back under the same boot id (${profile})`,
        about: "Only torn slots show that the file system was away. They stop no process permanently.",
        profile,
        powerCuts: true,
        actors: { ada: appender(2, onHost) },
        audit: (ports) => goesOn(ports, onHost),
      },
      onHost,
    ),
  );
}

export function twoBootsScenarios(options: RollingScenarioOptions = {}): Scenario[] {
  const unsynced = { ...options, sync: false, slotsPerEpoch: 2 };
  const onHost = { ...unsynced, bootId: host };
  const inContainer = { ...unsynced, bootId: container };
  return [
    onTheServerItself(options),
    ...comesBackScenarios(options),
    rollingScenario(
      {
        name: "chain: two boot ids that are alive at once",
        size: "medium",
        about:
          "One machine shows two boot ids. The process with the second one may die at any moment; the process with the first one carries on.",
        actors: { ada: appender(2, onHost), bob: newcomer(inContainer) },
        killsMax: 1,
        mortal: ["bob"],
      },
      { ...onHost, collected: true },
    ),
    rollingScenario(
      {
        name: "chain: two newcomers with boot ids of their own",
        size: "medium",
        about: "Both processes roll over the epoch that they find.",
        actors: { bob: newcomer(inContainer), cleo: newcomer({ ...unsynced, bootId: "boot of another container" }) },
      },
      { ...onHost, collected: true, entriesBefore: 1 },
    ),
    rollingScenario(
      {
        name: "chain: a refusal while another boot id takes over",
        size: "medium",
        about:
          "A process that appends nothing finds the end of the chain, even if another has died in the middle of its work.",
        actors: { ada: refused(onHost), bob: newcomer(inContainer) },
        killsMax: 1,
        mortal: ["bob"],
      },
      { ...onHost, collected: true, entriesBefore: 1 },
    ),
    rollingScenario(
      {
        name: "chain: one boot id after the other, power cuts (weak)",
        about: "The power fails at every moment. After the restart no number is won again.",
        profile: "weak",
        powerCuts: true,
        actors: { ada: inTurns(onHost, inContainer) },
        audit: (ports, facts) => noNumberComesBack(ports, facts, { ...unsynced, bootId: "boot after the power cut" }),
      },
      { ...onHost, collected: true },
    ),
  ];
}

/** A client on another machine finds what a process on the server itself has won, whatever its caches say. */
function onTheServerItself(options: RollingScenarioOptions): Scenario {
  const unsynced = { ...options, sync: false, slotsPerEpoch: 2 };
  const scenario = rollingScenario(
    {
      name: "chain: on the server itself, and on another machine with old caches",
      size: "medium",
      about: "For the process on the server it is a local disk, where it syncs nothing. For the other it is a share.",
      volume: share,
      profile: "share",
      quirks: { staleListings: true },
      troubles: { stale: 1 },
      actors: {
        ada: { ...appender(1, unsynced), machine: serverMachine },
        bob: { ...lister(unsynced), machine: "m2" },
      },
    },
    { ...unsynced, collected: true },
  );
  return {
    ...scenario,
    // No chain yet: the first process that opens it creates it.
    setup: async ({ disk }) => {
      for (const path of ["/temp", "/temp/ada", "/temp/bob", "/temp/auditor"]) await disk.mkdir(path);
    },
  };
}

/** Its machine has listed every directory before. It opens the chain only when the scenario runs. */
function lister(options: RollingScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports: { disk } }) => {
      for (const name of await disk.list(table)) await disk.list(`${table}/${name}`);
    },
    run: async ({ name, ports }) => void (await openChain(ports, name, options)),
  });
}
