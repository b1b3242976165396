// Scenarios of the index of keys: listings and announcements while others merge.
import type { OpenBucket } from "../../../objects/bucket/open-bucket.ts";
import { Announcements } from "../../../objects/listing/announcements.ts";
import { KeyIndex } from "../../../objects/listing/key-index.ts";
import { actor, mustHold, valuesOf, type Actor, type Scenario } from "../../explorer/scenario.ts";
import { indexScenario, keysOf, merger, openBucket, putWith, type IndexWays } from "./index-world.ts";

/** What the scenario runs on: the real one, or a known-wrong variant. */
export interface IndexScenarioOptions extends IndexWays {
  readonly putNew?: PutNew | undefined;
}

/** Puts to a key that is not there. */
export type PutNew = (bucket: OpenBucket, key: string) => Promise<void>;

const realPut: PutNew = async (bucket, key) => {
  const announcements = new Announcements();
  await putWith(bucket, key, (at, name, incarnation) => announcements.announce(at, name, incarnation));
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
      // From now on it has a manifest in mind.
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
      about: "A process has an old manifest in mind while three newer ones are named.",
      actors: { lis: lister(options), mer: merger(options, 3) },
    }),
    indexScenario({
      name: "index: an announcement while others merge",
      about: "What is announced is in every later listing, merged or not.",
      actors: { ada: announcer("new"), mer: merger(options, 2) },
    }),
    indexScenario({
      name: "index: a merger is killed, and a listing",
      about: "Whatever it leaves, no key is missing.",
      size: "medium",
      actors: { lis: lister(options), mer: merger(options, 2) },
      killsMax: 1,
      mortal: ["mer"],
    }),
    indexScenario({
      name: "index: a put to a new key is killed",
      about: "A key that came into being is in the index, wherever its writer died.",
      actors: { ada: writer(options) },
      killsMax: 1,
    }),
    indexScenario({
      name: "index: a put to a new key while another process merges",
      about: "A name whose key is not there yet stays in the index: its put may only be asleep.",
      size: "medium",
      actors: { ada: writer(options), mer: merger(options, 2) },
    }),
    indexScenario({
      name: "index: a listing with an old manifest and fresh announcements",
      about: "A process has a manifest in mind while keys are announced and merged twice.",
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
      name: "index: an announcement, power cuts",
      about: "What was announced is there after each of them.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: announcer("new") },
    }),
  ];
}
