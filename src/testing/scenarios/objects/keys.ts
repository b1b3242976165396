// Scenarios of the chain of a key: puts that race, keys that are collected under them, blocks, and
// every kind of trouble.
import type { Scenario } from "../../explorer/scenario.ts";
import { share } from "../volumes.ts";
import { collector, keyScenario, reader, sweeper, writer, type KeyScenarioOptions } from "./key-actors.ts";

/** All kinds of old answers that a share gives. */
const oldAnswers = {
  staleListings: true,
  staleAbsence: true,
  stalePresence: true,
  directoryHandles: true,
  fileHandles: true,
} as const;

/** How often: a client that shows the same old listing for ever is one that no process gets on with. */
const oldAnswersMax = { stale: 3 } as const;

const onShare = { volume: share, profile: "share" } as const;

export function keyScenarios(options: KeyScenarioOptions = {}): Scenario[] {
  const small = { ...options, slotsPerBlock: 2 };
  const stale = { isStale: true } as const;
  return [
    keyScenario(
      {
        name: "key: two puts to a new key",
        about: "Both find no key; one makes it, and the other goes behind.",
        actors: { ada: writer(options), bob: writer(options) },
      },
      options,
    ),
    keyScenario(
      {
        name: "key: two puts to a key",
        about: "Both link behind the same entry; one wins the number, and the other takes the next.",
        actors: { ada: writer(options, stale), bob: writer(options, stale) },
      },
      { ...options, before: ["old"] },
    ),
    keyScenario(
      {
        name: "key: three puts to a key",
        about: "Three versions come of it.",
        size: "medium",
        actors: { ada: writer(options, stale), bob: writer(options, stale), cleo: writer(options, stale) },
      },
      { ...options, before: ["old"] },
    ),
    keyScenario(
      {
        name: "key: two conditional puts",
        about: "One of the two that want to be the first is.",
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
        about: "The writer may be killed at any moment; the reader sees the old entry or the new one.",
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
        about: "One may be killed at any moment, and the other is not stopped by what it leaves.",
        actors: { ada: writer(options), bob: writer(options) },
        killsMax: 1,
      },
      options,
    ),
    keyScenario(
      {
        name: "key: a put that slept, and a collector",
        size: "medium",
        about: "The key is removed under a process that has its end in mind.",
        actors: { ada: writer(options, stale), col: collector(options, "gone") },
      },
      { ...options, before: ["old", "gone"] },
    ),
    keyScenario(
      {
        name: "key: a put that slept, a collector and another put",
        about: "The key is removed and comes anew under a process that has its old end in mind.",
        size: "large",
        actors: { ada: writer(options, stale), col: collector(options, "gone"), bob: writer(options) },
      },
      { ...options, before: ["old", "gone"] },
    ),
    keyScenario(
      {
        name: "key: a collector that is killed, and a put",
        size: "medium",
        about: "The put completes what the collector has begun.",
        actors: { ada: writer(options), col: collector(options, "gone") },
        killsMax: 1,
        mortal: ["col"],
      },
      { ...options, before: ["gone"] },
    ),
    keyScenario(
      {
        name: "key: a put to a new key that sleeps, and a sweeper",
        about: "What it has prepared is taken away before it gets its place, or after.",
        actors: { ada: writer(options), swp: sweeper("ada", options.sweep) },
        isUnseen: () => false,
      },
      options,
    ),
    keyScenario(
      {
        name: "key: two puts begin a block",
        about: "Both find the block full; one begins the next, and the other goes behind.",
        actors: { ada: writer(small, stale), bob: writer(small, stale) },
      },
      { ...small, before: ["one", "two"] },
    ),
    keyScenario(
      {
        name: "key: a put begins a block while the key is collected",
        about: "A block that comes into a key which is being removed does not count.",
        size: "medium",
        actors: { ada: writer(small, stale), col: collector(small, "gone") },
      },
      { ...small, before: ["one", "gone"] },
    ),
    keyScenario(
      {
        name: "key: two puts with lost replies",
        about: "A reply may be lost, or be that of a repeated request.",
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
        about: "The same for the rename that makes the key.",
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
        about: "Two machines of a share, each with what it remembers.",
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
        about: "The key is removed by another machine under a process that has its end in mind.",
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
        about: "And comes anew, made by a third machine.",
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
          about: "What was acknowledged is there after each of them, and there is no gap.",
          profile,
          powerCuts: true,
          actors: { ada: writer(options, stale), bob: writer(options, stale) },
        },
        { ...options, before: ["old"] },
      ),
      keyScenario(
        {
          name: `key: two puts to a new key, power cuts (${profile})`,
          about: "The same for a key that comes into being.",
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
          about: "The same for a key that is removed, and comes anew.",
          profile,
          powerCuts: true,
          actors: { col: collector(options, "gone"), bob: writer(options, stale) },
        },
        { ...options, before: ["old", "gone"] },
      ),
    ]),
  ];
}
