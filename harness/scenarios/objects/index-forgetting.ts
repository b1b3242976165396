// Scenarios of an index that forgets: processes merge while a key is created, is created anew, and while a merger is
// killed.
import { Announcements, writeAnnouncement } from "../../../src/objects/listing/announcements.ts";
import type { AnnounceKey } from "../../../src/objects/version/put-version.ts";
import { KeyIndex } from "../../../src/objects/listing/key-index.ts";
import { actor, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { indexScenario, keysOf, merger, openBucket, putWith, type IndexWays } from "./index-world.ts";

/** Runs three mergers, one after the other. Two of them die when they have named a manifest. */
function mortalMergers({ IndexClass = KeyIndex }: IndexWays): Actor {
  const MortalIndex = class extends IndexClass {
    protected override async afterNaming(): Promise<void> {
      // The merger is dead: it does nothing more.
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

/** Announces another incarnation of a key that has ended once. */
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
      const announce: AnnounceKey = (at, key, incarnation) => announcements.announce(at, key, incarnation);
      await putWith(bucket, "new", announce, { mustBeNew: true });
      note("announced", "new");
    },
  });
}

function lister({ IndexClass = KeyIndex }: IndexWays): Actor {
  return actor({
    prepare: async ({ ports }) => await IndexClass.open(await openBucket(ports)),
    run: async ({ note }, index) => note("listed", await keysOf(index)),
  });
}

/** The index has a key that has ended once, beside the old one. */
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
      about: "The ended incarnation is forgotten, and the new one is not.",
      actors: { ada: announcer(), mer: merger(options, 2) },
    }),
    forgettingScenario({
      name: "index: a put to a new key while others merge",
      about: "A put sleeps between its announcement and its key. The key is listed when it is created.",
      size: "medium",
      actors: { ada: putter(), mer: merger(options, 1) },
    }),
    forgettingScenario({
      name: "index: a listing while mergers are killed",
      about: "The next merger removes what a killed one has not removed, before it names a manifest.",
      size: "medium",
      actors: { lis: lister(options), mer: mortalMergers(options) },
    }),
  ];
}
