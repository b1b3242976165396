// Scenarios of an index that forgets: merges while a key comes into being, comes anew, and while a
// merger is killed.
import { Announcements, writeAnnouncement } from "../../../objects/listing/announcements.ts";
import { KeyIndex } from "../../../objects/listing/key-index.ts";
import { actor, type Actor, type Scenario } from "../../explorer/scenario.ts";
import { indexScenario, keysOf, merger, openBucket, putWith, type IndexWays } from "./index-world.ts";

/** Three mergers, one after the other. Two of them die when they have named a manifest. */
function mortalMergers({ IndexClass = KeyIndex }: IndexWays): Actor {
  const MortalIndex = class extends IndexClass {
    protected override async afterNaming(): Promise<void> {
      // Nothing more: it is dead.
    }
  };
  return actor({
    prepare: async ({ ports }) => {
      const bucket = await openBucket(ports);
      return [await MortalIndex.open(bucket), await MortalIndex.open(bucket), await IndexClass.open(bucket)];
    },
    run: async (_context, indexes) => {
      for (const index of indexes) await index.merge(0);
    },
  });
}

/** Announces another life of the key that has ended once. */
function announcer(): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucket(ports),
    run: async ({ note }, bucket) => {
      await new Announcements().announce(bucket, "gone", "second");
      note("announced", "gone");
    },
  });
}

function putter(): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucket(ports),
    run: async ({ note }, bucket) => {
      const announcements = new Announcements();
      await putWith(bucket, "new", (at, key, incarnation) => announcements.announce(at, key, incarnation));
      note("announced", "new");
    },
  });
}

/** Lists once. */
function lister({ IndexClass = KeyIndex }: IndexWays): Actor {
  return actor({
    prepare: async ({ ports }) => await IndexClass.open(await openBucket(ports)),
    run: async ({ note }, index) => note("listed", await keysOf(index)),
  });
}

/** A key that has ended once is in the index beside the old one. */
function forgettingScenario(scenario: Parameters<typeof indexScenario>[0]): Scenario {
  const gone = { key: "gone", incarnation: "first" };
  return indexScenario(scenario, (bucket) =>
    writeAnnouncement(bucket, { keys: [{ key: "old", incarnation: "i" }, gone], ended: [gone] }),
  );
}

export function indexForgettingScenarios(options: IndexWays = {}): Scenario[] {
  return [
    forgettingScenario({
      name: "index: a key that has ended is announced anew while others merge",
      about: "The life that has ended is forgotten, and the new one is not.",
      actors: { ada: announcer(), mer: merger(options, 2) },
    }),
    forgettingScenario({
      name: "index: a put to a new key while others merge",
      about: "A put sleeps between its announcement and its key, and the key is listed when it comes.",
      size: "medium",
      actors: { ada: putter(), mer: merger(options, 1) },
    }),
    forgettingScenario({
      name: "index: a listing while mergers are killed",
      about: "What one merger has not removed the next removes before it names a manifest.",
      size: "medium",
      actors: { lis: lister(options), mer: mortalMergers(options) },
    }),
  ];
}
