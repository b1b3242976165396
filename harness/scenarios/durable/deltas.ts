// Scenarios of a rolling chain whose slots hold only the changes: a reader applies each slot to the state before it.
import { actor, mustHold, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { counterDeltas } from "./counter.ts";
import {
  appendOne,
  appender,
  collector,
  everyWinCounts,
  openChain,
  reader,
  rollingScenario,
  type RollingScenarioOptions,
} from "./rolling-chain.ts";
import { comesBackScenarios } from "./two-boots.ts";
import { share } from "../volumes.ts";

/** Appends without a sync, so a power cut may remove the entry, then appends durably. */
function committer(options: RollingScenarioOptions): Actor {
  return actor({
    prepare: ({ name, ports }) => openChain(ports, name, options),
    run: async (context, chain) => {
      await appendOne(context, chain, 1);
      await appendOne(context, chain, 2, "anything", { sync: true });
      context.note("committed");
    },
  });
}

/** Upgrades a chain that was created without deltas, then appends to it. */
function upgrader(options: RollingScenarioOptions): Actor {
  return actor({
    prepare: ({ name, ports }) => openChain(ports, name, options),
    run: async (context, chain) => {
      await chain.upgrade(`${context.name}:upgrade`).catch((error: unknown) => {
        // The upgrade lost too many races.
        if (!isHoldfastError(error, "RESOURCE_BUSY")) throw error;
      });
      await appendOne(context, chain, 1);
    },
  });
}

/** A process of this release runs during an upgrade, and a process of an older release after it. */
function upgradeScenario(name: string, about: string, before: RollingScenarioOptions): Scenario {
  const upgraded = { ...before, deltas: counterDeltas };
  return rollingScenario(
    {
      name,
      about,
      actors: { ada: appender(1, upgraded), bob: upgrader(upgraded) },
      killsMax: 1,
      size: "medium",
      audit: async (ports, facts) => {
        const chain = await openChain(ports, "auditor", upgraded);
        await chain.upgrade("auditor:upgrade");
        everyWinCounts((await chain.read()).state, facts);
        const old = await openChain(ports, "auditor", before).then(
          () => undefined,
          (error: unknown) => error,
        );
        mustHold(isHoldfastError(old, "NEWER_FORMAT"), "an older release did not refuse the chain");
      },
    },
    { ...before, entriesBefore: 1 },
  );
}

export function deltaScenarios(options: RollingScenarioOptions = {}): Scenario[] {
  const three = { ...options, slotsPerEpoch: 3, deltas: counterDeltas };
  const unsynced = { ...three, sync: false, bootId: "before the power cut" };
  return [
    rollingScenario(
      {
        name: "deltas: two appenders, rolling",
        about: "Two processes append to a chain that rolls. The loser of a race builds on the winner's changes.",
        actors: { ada: appender(2, three), bob: appender(1, three) },
        audit: async (ports) => {
          const { state } = await (await openChain(ports, "auditor", three)).read();
          mustHold(state["ada"] === 2 && state["bob"] === 1, "what has lost a race was counted");
        },
      },
      { ...three, entriesBefore: 1 },
    ),
    rollingScenario(
      {
        name: "deltas: two readers while the slots between are removed",
        about:
          "One process reads on from an old end and another appends, while a collector removes the slots they build on.",
        actors: { eve: reader(three), ada: appender(1, three), col: collector(1, three) },
        size: "medium",
      },
      { ...three, collected: true, entriesBefore: 1, entriesMeanwhile: 7 },
    ),
    rollingScenario(
      {
        name: "deltas: two machines with old caches",
        size: "medium",
        about:
          "A sleeper wakes on one machine while another machine collects. Listings and absent names come from caches.",
        volume: share,
        profile: "share",
        quirks: { staleListings: true, staleAbsence: true },
        actors: { ada: { ...appender(1, three), machine: "m1" }, col: { ...collector(1, three), machine: "m2" } },
        troubles: { stale: 2 },
      },
      { ...three, collected: true, entriesMeanwhile: 7 },
    ),
    rollingScenario(
      {
        name: "deltas: a durable append behind one that is not, power cuts (weak)",
        about: "A power cut may remove the earlier unsynced slot, but never a committed one.",
        profile: "weak",
        powerCuts: true,
        actors: { ada: committer(unsynced) },
        audit: async (ports, facts) => {
          const chain = await openChain(ports, "auditor", { ...unsynced, bootId: "after the power cut" });
          const { state } = await chain.read();
          if (facts.some(({ what }) => what === "committed"))
            mustHold((state["ada"] ?? 0) >= 2, "a durable append was acknowledged and is lost");
        },
      },
      unsynced,
    ),
    upgradeScenario(
      "deltas: an upgrade of unsynced slots, with deaths",
      "One process upgrades a chain whose slots are not synced while another appends. Either may be killed.",
      { ...options, slotsPerEpoch: 3, sync: false },
    ),
    upgradeScenario(
      "deltas: an upgrade of synced slots, with deaths",
      "The same with synced slots: the upgrade fills the epoch first.",
      { ...options, slotsPerEpoch: 2 },
    ),
    ...comesBackScenarios({ ...options, deltas: counterDeltas }, "deltas"),
  ];
}
