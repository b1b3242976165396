// Scenarios of verification: it finds no damage while other processes remove versions, and then their bodies.
import { KeyCheck } from "../../../src/objects/collect/key-check.ts";
import type { OpenBucket } from "../../../src/objects/bucket/open-bucket.ts";
import { versionsOf } from "../../../src/objects/listing/list-page.ts";
import { deleteObject } from "../../../src/objects/version/delete-version.ts";
import { actor, mustHold, valuesOf, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { announceNothing, keyName, makeWorld, openBucketOf, putText, type ObjectWorld } from "./object-world.ts";

/** The check under test: the real one, or a known-wrong variant. */
export type CheckClass = typeof KeyCheck;

function verifier(Check: CheckClass): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucketOf(ports),
    run: async ({ note }, bucket) => {
      const { faults } = await new Check(bucket, bucket.layout.key(keyName)).check();
      for (const { what } of faults) note("found", what);
    },
  });
}

/** Removes one version and keeps another. */
function remover(): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const bucket = await openBucketOf(ports);
      return { bucket, versionId: (await versionsOf(bucket, keyName))[0]?.versionId };
    },
    run: async (_context, { bucket, versionId }: { bucket: OpenBucket; versionId: string | undefined }) => {
      await deleteObject(bucket, keyName, { versionId }, announceNothing);
    },
  });
}

/** Replaces the only object of the key by its own name. */
function replacer(): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucketOf(ports),
    run: async ({ name }, bucket) => {
      await putText(bucket, name);
    },
  });
}

function verifyScenario(
  world: ObjectWorld,
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
): Scenario {
  return {
    setup: (ports) => makeWorld(ports, world),
    check: (facts) => {
      const found = valuesOf<string>(facts, "found");
      mustHold(found.length === 0, `damage was told where there is none: ${found.join(", ")}`);
    },
    // Slots and their directories are permanent, unless a stub replaces a slot.
    isPermanent: (path) => world.isInline !== true && /\/(keys|config)(\/|$)/.test(path),
    ...scenario,
  };
}

export function verifyScenarios(Check: CheckClass = KeyCheck): Scenario[] {
  const versioned: ObjectWorld = { versioning: "enabled", before: ["one", "two"] };
  return [
    verifyScenario(versioned, {
      name: "verify: a version is removed",
      size: "large",
      about: "A body that is missing because its version was removed is not damage.",
      actors: { ver: verifier(Check), rem: remover() },
    }),
    verifyScenario(
      { ...versioned, isInline: true },
      {
        name: "verify: a small version is removed",
        size: "large",
        about: "The stub that replaces a slot is not damage.",
        actors: { ver: verifier(Check), rem: remover() },
      },
    ),
    verifyScenario(
      { versioning: "off", before: ["old"] },
      {
        name: "verify: an object is replaced",
        about: "Without versions a put removes the body of the previous object, which is not damage.",
        actors: { ver: verifier(Check), ada: replacer() },
      },
    ),
  ];
}
