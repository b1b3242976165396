// Scenarios of collection: it removes the files that dead processes have left, but nothing that a version names.
import { isHoldfastError } from "../../../src/errors.ts";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import { Collector } from "../../../src/objects/collect/collect.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { makeWorld, openBucketOf, storageIn, putText, textsOf } from "./object-world.ts";

/** Collects: the real way, or a known-wrong one. */
export type Collect = (ports: Ports) => Promise<void>;

const collectReally: Collect = async (ports) => {
  const storage = await storageIn(ports);
  await new Collector(storage, new Buckets(storage)).collect();
};

/** Puts its name as a body with a file of its own. */
function writer(): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucketOf(ports),
    run: async ({ name, note }, bucket) => {
      try {
        await putText(bucket, name);
        note("acknowledged", name);
      } catch (error) {
        // Another process declared the writer dead.
        if (!isHoldfastError(error, "LOCK_LOST", "OUTCOME_UNKNOWN")) throw error;
        note("told", error.code);
      }
    },
  });
}

function collector(collect: Collect): Actor {
  return actor({ run: async ({ ports }) => await collect(ports) });
}

/** Every acknowledged body is present and whole, even after another collection. */
async function audit(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const bucket = await openBucketOf(ports);
  const texts = await textsOf(bucket);
  for (const text of ["old", ...valuesOf<string>(facts, "acknowledged")])
    mustHold(texts.includes(text), `${text} was acknowledged and is lost: there are ${texts.join(", ")}`);
  mustHold(new Set(texts).size === texts.length, `a version is there twice: ${texts.join(", ")}`);
  await collectReally(ports);
  mustHold((await textsOf(bucket)).length === texts.length, "a collection has removed a version");
}

function collectScenario(scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>): Scenario {
  return { setup: (ports) => makeWorld(ports, { versioning: "enabled", before: ["old"] }), audit, ...scenario };
}

export function collectScenarios(collect: Collect = collectReally): Scenario[] {
  return [
    collectScenario({
      name: "collect: a put of a large body, and a collection",
      about: "The collection does not take a body that no version names yet for an orphan.",
      size: "large",
      actors: { ada: writer(), col: collector(collect) },
    }),
    collectScenario({
      name: "collect: the writer of a large body is killed, and a collection",
      about: "Wherever the writer died, the collection removes nothing that a version names.",
      size: "large",
      actors: { ada: writer(), col: collector(collect) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    collectScenario({
      name: "collect: a collector is killed, and a put",
      about: "Whatever the killed collector has done, the put is kept and the next collection continues.",
      size: "large",
      actors: { ada: writer(), col: collector(collect) },
      killsMax: 1,
      mortal: ["col"],
    }),
  ];
}
