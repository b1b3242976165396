// Scenarios of hand-off on a share: stale answers of every kind, outages, lost replies and late writes.
import { parentOf } from "../../../src/durable/publish/directory.ts";
import { BoxLayout } from "../../../src/handoff/box/layout.ts";
import type { ServerQuirks } from "../../../src/testing/sim/server.ts";
import type { Actor, Scenario } from "../../../src/testing/explorer/scenario.ts";
import { share } from "../volumes.ts";
import {
  claimant,
  claimer,
  collector,
  fresh,
  on,
  producer,
  realSteps,
  successor,
  worker,
  type Steps,
} from "./handoff-actors.ts";
import { handoffScenario } from "./handoff-audit.ts";
import { directory, large, publication, settleAll } from "./handoff-world.ts";

/** Checks for the key first, so its machine remembers that the key was absent. */
function lookingFirst(who: Actor): Actor {
  return {
    ...who,
    prepare: async (context) => {
      const key = new BoxLayout(directory).key("order 1");
      await context.ports.disk.mkdir(`${directory}/keys`);
      await context.ports.disk.mkdir(parentOf(key));
      await context.ports.disk.canOpen(key);
      return await who.prepare?.(context);
    },
  };
}

interface Kind {
  readonly name: string;
  readonly quirks: ServerQuirks;
  readonly troubles?: Scenario["troubles"];
}

const oldAnswers: readonly Kind[] = [
  { name: "old listings", quirks: { staleListings: true }, troubles: { stale: 2 } },
  { name: "old absences", quirks: { staleAbsence: true }, troubles: { stale: 2 } },
  { name: "old presences", quirks: { stalePresence: true }, troubles: { stale: 2 } },
  { name: "old files", quirks: { fileHandles: true }, troubles: { stale: 2 } },
  { name: "old directories", quirks: { directoryHandles: true }, troubles: { stale: 1 } },
];
const failures: readonly Kind[] = [
  { name: "an outage", quirks: { outages: true }, troubles: { outage: 1 } },
  { name: "a stale handle", quirks: { staleHandles: true }, troubles: { staleHandle: 1 } },
  { name: "a lost reply", quirks: {}, troubles: { lostReply: 1 } },
  { name: "a repeated request", quirks: {}, troubles: { retransmit: 1 } },
  { name: "late writes", quirks: { lateWrites: true } },
];

export function shareScenarios(steps: Steps = realSteps): Scenario[] {
  const onShare = (kind: Kind): Pick<Scenario, "volume" | "profile" | "quirks" | "troubles"> => ({
    volume: share,
    profile: "share",
    quirks: kind.quirks,
    ...(kind.troubles === undefined ? {} : { troubles: kind.troubles }),
  });
  /** The actor's session was settled before: it wakes without knowing it. */
  const asleep = { watched: ["ada"], areSettled: true, meanwhile: settleAll };
  const keyed = publication("an order", { key: "order 1" });
  return [
    handoffScenario({
      ...onShare({ name: "", quirks: { staleAbsence: true }, troubles: { stale: 2 } }),
      name: "handoff: a publisher of a key that sleeps, and a reaper that had looked for the key",
      size: "medium",
      about: "The reaper does not rely on an old answer that the key was absent.",
      ...asleep,
      actors: { ada: on("m1", producer(steps, keyed)), rea: on("m2", fresh(lookingFirst(collector(steps)))) },
    }),
    ...[...oldAnswers, ...failures].flatMap((kind) => [
      handoffScenario({
        ...onShare(kind),
        name: `handoff: two publishers of one key, ${kind.name}`,
        size: kind.name === "an outage" ? "medium" : "small",
        about: "The two publishes make one ticket, and no other id is returned.",
        actors: { ada: on("m1", producer(steps, keyed)), bob: on("m2", producer(steps, keyed)) },
      }),
      handoffScenario({
        ...onShare(kind),
        name: `handoff: two workers and one ticket, ${kind.name}`,
        about: "One worker has the ticket, whatever its machine's client remembers.",
        tickets: [publication("an order")],
        actors: { ada: on("m1", worker(steps)), bob: on("m2", claimer(steps)) },
      }),
    ]),
    ...oldAnswers
      .filter(({ name }) => ["old files", "old directories"].includes(name))
      .map((kind) =>
        handoffScenario({
          ...onShare(kind),
          name: `handoff: a publisher that sleeps, and a reaper, ${kind.name}`,
          about: "The publisher publishes the ticket with its payload, or not at all.",
          ...asleep,
          size: "medium",
          removesPayloads: true,
          actors: { ada: on("m1", producer(steps, publication(large))), rea: on("m2", fresh(collector(steps))) },
        }),
      ),
    ...oldAnswers
      .filter(({ name }) => ["old listings", "old absences", "old files"].includes(name))
      .map((kind) =>
        handoffScenario({
          ...onShare(kind),
          name: `handoff: a publisher of a key that sleeps, and a reaper, ${kind.name}`,
          about: "A key that was won has its ticket.",
          ...asleep,
          size: "medium",
          actors: { ada: on("m1", producer(steps, keyed)), rea: on("m2", fresh(collector(steps))) },
        }),
      ),
    ...oldAnswers
      .filter(({ name }) => ["old listings", "old presences", "old directories"].includes(name))
      .map((kind) =>
        handoffScenario({
          ...onShare(kind),
          name: `handoff: a worker that sleeps before it commits, and its successor, ${kind.name}`,
          about: "Only one result is acknowledged.",
          tickets: [publication("an order")],
          ...asleep,
          size: "medium",
          actors: { ada: on("m1", claimant(steps, { hasOutput: true })), bob: on("m2", fresh(successor(steps))) },
        }),
      ),
  ];
}
