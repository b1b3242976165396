// Scenarios of the chain of a key: racing puts, a collected key, blocks, and every kind of trouble.
import type { Scenario } from "../../../src/testing/explorer/scenario.ts";
import { share } from "../volumes.ts";
import { collector, keyScenario, reader, sweeper, writer, type KeyScenarioOptions } from "./key-actors.ts";

/** All kinds of stale answers that a share gives. */
const oldAnswers = {
  staleListings: true,
  staleAbsence: true,
  stalePresence: true,
  directoryHandles: true,
  fileHandles: true,
} as const;

/** The limit of stale answers: no process can make progress on a client that shows the same old listing for ever. */
const oldAnswersMax = { stale: 3 } as const;

const onShare = { volume: share, profile: "share" } as const;

export function keyScenarios(options: KeyScenarioOptions = {}): Scenario[] {
  const small = { ...options, slotsPerBlock: 2 };
  const stale = { isStale: true } as const;
  return [
    keyScenario(
      {
        name: "key: two puts to a new key",
        about: "Both puts find no key. One creates it, and the other follows.",
        actors: { ada: writer(options), bob: writer(options) },
      },
      options,
    ),
    keyScenario(
      {
        name: "key: two puts to a key",
        about: "Both puts link behind the same entry. One wins the number, and the other takes the next.",
        actors: { ada: writer(options, stale), bob: writer(options, stale) },
      },
      { ...options, before: ["old"] },
    ),
    keyScenario(
      {
        name: "key: three puts to a key",
        about: "The three puts make three versions.",
        size: "medium",
        actors: { ada: writer(options, stale), bob: writer(options, stale), cleo: writer(options, stale) },
      },
      { ...options, before: ["old"] },
    ),
    keyScenario(
      {
        name: "key: two conditional puts",
        about: "At most one of the two conditional puts is the first.",
        actors: { ada: writer(options, { isAbsent: true }), bob: writer(options, { isAbsent: true }) },
        check: (facts) => {
          if (facts.filter(({ what }) => what === "acknowledged").length > 1) throw new Error("two were the first");
        },
      },
      options,
    ),
    keyScenario(
      {
        name: "key: a put, a reader and a kill",
        about: "The writer may be killed at any moment. The reader sees the old entry or the new one.",
        actors: { ada: writer(options, stale), eve: reader(options) },
        killsMax: 1,
        check: (facts) => {
          for (const { what, value } of facts)
            if (what === "read" && value !== "old" && value !== "ada") throw new Error(`read ${String(value)}`);
        },
      },
      { ...options, before: ["old"] },
    ),
    keyScenario(
      {
        name: "key: two puts to a new key, a kill",
        about: "One process may be killed at any moment, and its remains do not block the other.",
        actors: { ada: writer(options), bob: writer(options) },
        killsMax: 1,
      },
      options,
    ),
    keyScenario(
      {
        name: "key: a put that slept, and a collector",
        size: "medium",
        about: "The key is removed while a process remembers its end.",
        actors: { ada: writer(options, stale), col: collector(options, "gone") },
      },
      { ...options, before: ["old", "gone"] },
    ),
    keyScenario(
      {
        name: "key: a put that slept, a collector and another put",
        about: "The key is removed and created anew while a process remembers its old end.",
        size: "large",
        actors: { ada: writer(options, stale), col: collector(options, "gone"), bob: writer(options) },
      },
      { ...options, before: ["old", "gone"] },
    ),
    keyScenario(
      {
        name: "key: a collector that is killed, and a put",
        size: "medium",
        about: "The put completes the removal that the collector has begun.",
        actors: { ada: writer(options), col: collector(options, "gone") },
        killsMax: 1,
        mortal: ["col"],
      },
      { ...options, before: ["gone"] },
    ),
    keyScenario(
      {
        name: "key: a put to a new key that sleeps, and a sweeper",
        about: "The writer's prepared files are removed before they reach their place, or after.",
        actors: { ada: writer(options), swp: sweeper("ada", options.sweep) },
        isUnseen: () => false,
      },
      options,
    ),
    keyScenario(
      {
        name: "key: two puts begin a block",
        about: "Both puts find the block full. One begins the next block, and the other follows.",
        actors: { ada: writer(small, stale), bob: writer(small, stale) },
      },
      { ...small, before: ["one", "two"] },
    ),
    keyScenario(
      {
        name: "key: a put begins a block while the key is collected",
        about: "A block that is added to a key while it is being removed does not count.",
        size: "medium",
        actors: { ada: writer(small, stale), col: collector(small, "gone") },
      },
      { ...small, before: ["one", "gone"] },
    ),
    keyScenario(
      {
        name: "key: two puts with lost replies",
        about: "A reply may be lost, or may answer a repeated request.",
        size: "medium",
        ...onShare,
        troubles: { lostReply: 1, retransmit: 1 },
        actors: {
          ada: { ...writer(options, stale), machine: "m1" },
          bob: { ...writer(options, stale), machine: "m2" },
        },
      },
      { ...options, before: ["old"] },
    ),
    keyScenario(
      {
        name: "key: two puts to a new key with lost replies",
        about: "The same for the rename that creates the key.",
        size: "medium",
        ...onShare,
        troubles: { lostReply: 1, retransmit: 1 },
        actors: { ada: { ...writer(options), machine: "m1" }, bob: { ...writer(options), machine: "m2" } },
      },
      options,
    ),
    keyScenario(
      {
        name: "key: two puts with old answers",
        about: "Two machines use a share, each with its own cached answers.",
        ...onShare,
        quirks: oldAnswers,
        troubles: oldAnswersMax,
        actors: {
          ada: { ...writer(options, stale), machine: "m1" },
          bob: { ...writer(options, stale), machine: "m2" },
        },
      },
      { ...options, before: ["old"] },
    ),
    keyScenario(
      {
        name: "key: a put that slept and a collector, with old answers",
        about: "Another machine removes the key while a process remembers its end.",
        size: "large",
        ...onShare,
        quirks: oldAnswers,
        troubles: oldAnswersMax,
        actors: {
          ada: { ...writer(options, stale), machine: "m1" },
          col: { ...collector(options, "gone"), machine: "m2" },
        },
      },
      { ...options, before: ["old", "gone"] },
    ),
    keyScenario(
      {
        name: "key: a put that slept, a collector and another put, with old answers",
        about: "The same, and a third machine creates the key anew.",
        size: "large",
        ...onShare,
        quirks: oldAnswers,
        troubles: oldAnswersMax,
        actors: {
          ada: { ...writer(options, stale), machine: "m1" },
          col: { ...collector(options, "gone"), machine: "m2" },
          bob: { ...writer(options), machine: "m3" },
        },
      },
      { ...options, before: ["old", "gone"] },
    ),
    ...(["weak", "ext4-ordered"] as const).flatMap((profile) => [
      keyScenario(
        {
          name: `key: two puts, power cuts (${profile})`,
          about: "An acknowledged put survives each power cut, and there is no gap.",
          profile,
          powerCuts: true,
          actors: { ada: writer(options, stale), bob: writer(options, stale) },
        },
        { ...options, before: ["old"] },
      ),
      keyScenario(
        {
          name: `key: two puts to a new key, power cuts (${profile})`,
          about: "The same for a key that is being created.",
          profile,
          powerCuts: true,
          actors: { ada: writer(options), bob: writer(options) },
        },
        options,
      ),
      keyScenario(
        {
          name: `key: a collector and a put, power cuts (${profile})`,
          size: "medium",
          about: "The same for a key that is removed and created anew.",
          profile,
          powerCuts: true,
          actors: { col: collector(options, "gone"), bob: writer(options, stale) },
        },
        { ...options, before: ["old", "gone"] },
      ),
    ]),
  ];
}
