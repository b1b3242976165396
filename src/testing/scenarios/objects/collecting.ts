// Scenarios of collection: what dead processes have left goes, and nothing that a version names.
import { isHoldfastError } from "../../../errors.ts";
import { Buckets } from "../../../objects/bucket/buckets.ts";
import { Collector } from "../../../objects/collect/collect.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";
import { makeWorld, openBucketOf, openPlaceOf, putText, textsOf } from "./object-world.ts";

/** The real way, or a known-wrong one. */
export type Collect = (ports: Ports) => Promise<void>;

const collectReally: Collect = async (ports) => {
  const place = await openPlaceOf(ports);
  await new Collector(place, new Buckets(place)).collect();
};

/** Puts its name, in a file of its own. */
function writer(): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucketOf(ports),
    run: async ({ name, note }, bucket) => {
      try {
        await putText(bucket, name);
        note("acknowledged", name);
      } catch (error) {
        // It was taken for dead.
        if (!isHoldfastError(error, "LOCK_LOST", "OUTCOME_UNKNOWN")) throw error;
        note("told", error.code);
      }
    },
  });
}

function collector(collect: Collect): Actor {
  return actor({ run: async ({ ports }) => await collect(ports) });
}

/** What was acknowledged is there and whole, also after another collection. */
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
      about: "A body that no version names yet is not taken for an orphan.",
      size: "large",
      actors: { ada: writer(), col: collector(collect) },
    }),
    collectScenario({
      name: "collect: the writer of a large body is killed, and a collection",
      about: "Wherever it died, nothing goes that a version names.",
      size: "large",
      actors: { ada: writer(), col: collector(collect) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    collectScenario({
      name: "collect: a collector is killed, and a put",
      about: "Whatever it has done by then, the put is kept and the next collection goes on.",
      size: "large",
      actors: { ada: writer(), col: collector(collect) },
      killsMax: 1,
      mortal: ["col"],
    }),
  ];
}
