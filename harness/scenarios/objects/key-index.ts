// Scenarios of the key index: processes list and announce while others merge.
import type { OpenBucket } from "../../../src/objects/bucket/open-bucket.ts";
import { Announcements } from "../../../src/objects/listing/announcements.ts";
import type { AnnounceKey } from "../../../src/objects/version/put-version.ts";
import { KeyIndex } from "../../../src/objects/listing/key-index.ts";
import { actor, mustHold, valuesOf, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { indexScenario, keysOf, merger, openBucket, putWith, type IndexWays } from "./index-world.ts";

/** The operations under test: the real ones, or known-wrong variants. */
export interface IndexScenarioOptions extends IndexWays {
  readonly putNew?: PutNew | undefined;
}

/** Puts to a key that does not exist. */
export type PutNew = (bucket: OpenBucket, key: string) => Promise<void>;

const realPut: PutNew = async (bucket, key) => {
  const announcements = new Announcements();
  await putWith(bucket, key, (at, name, incarnation) => announcements.announce(at, name, incarnation));
};

/** Takes one step after the other, which leaves fewer orders to explore. */
const putInOrder: PutNew = async (bucket, key) => {
  const announcements = new Announcements();
  const announce: AnnounceKey = (at, name, incarnation) => announcements.announce(at, name, incarnation);
  await putWith(bucket, key, announce, { mustBeNew: true });
};

function writer({ putNew = realPut }: IndexScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucket(ports),
    run: async ({ note }, bucket) => {
      await putNew(bucket, "new");
      note("announced", "new");
    },
  });
}

function lister({ IndexClass = KeyIndex }: IndexScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const index = await IndexClass.open(await openBucket(ports));
      // The index now remembers its manifest.
      await keysOf(index);
      return index;
    },
    run: async ({ note }, index) => note("listed", await keysOf(index)),
  });
}

function announcer(key: string): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucket(ports),
    run: async ({ note }, bucket) => {
      await new Announcements().announce(bucket, key, "i");
      note("announced", key);
    },
  });
}

export function keyIndexScenarios(options: IndexScenarioOptions = {}): Scenario[] {
  return [
    indexScenario({
      name: "index: a listing while others merge",
      about: "A process remembers an old manifest while others name three newer ones.",
      actors: { lis: lister(options), mer: merger(options, 3) },
    }),
    indexScenario({
      name: "index: an announcement while others merge",
      about: "An announced key is in every later listing, merged or not.",
      actors: { ada: announcer("new"), mer: merger(options, 2) },
    }),
    indexScenario({
      name: "index: a merger is killed, and a listing",
      about: "Whatever the killed merger leaves, no key is missing.",
      size: "medium",
      actors: { lis: lister(options), mer: merger(options, 2) },
      killsMax: 1,
      mortal: ["mer"],
    }),
    indexScenario({
      name: "index: a put to a new key is killed",
      about: "A created key is in the index, wherever its writer died.",
      size: "medium",
      actors: { ada: writer(options) },
      killsMax: 1,
    }),
    indexScenario({
      name: "index: a put to a new key while another process merges",
      about: "A name whose key does not exist yet stays in the index: its put may only be asleep.",
      size: "medium",
      actors: { ada: writer({ putNew: putInOrder }), mer: merger(options, 2) },
    }),
    indexScenario({
      name: "index: a put to a new key, its announcement beside its entry, while another process merges",
      about: "The announcement may be merged before the key exists. The key is listed when it is created.",
      size: "large",
      actors: { ada: writer(options), mer: merger(options, 2) },
    }),
    indexScenario({
      name: "index: a listing with an old manifest and fresh announcements",
      about: "A process remembers a manifest while keys are announced and merged twice.",
      size: "medium",
      actors: { lis: lister(options), mer: merger(options, 2) },
      meanwhile: async (ports) => {
        const bucket = await openBucket(ports);
        const index = await KeyIndex.open(bucket);
        for (const key of ["second", "third"]) {
          await index.merge(0);
          await new Announcements().announce(bucket, key, "i");
        }
      },
      check: (facts) => {
        for (const keys of valuesOf<readonly string[]>(facts, "listed"))
          for (const key of ["old", "second", "third"])
            mustHold(keys.includes(key), `a listing without the key "${key}": ${keys.join(", ")}`);
      },
    }),
    indexScenario({
      name: "index: a put to a new key, power cuts",
      about: "A key that survives a power cut is in the index. Its announcement is written beside its entry.",
      size: "medium",
      profile: "weak",
      powerCuts: true,
      actors: { ada: writer(options) },
    }),
    indexScenario({
      name: "index: an announcement, power cuts",
      about: "An acknowledged announcement survives each power cut.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: announcer("new") },
    }),
  ];
}
