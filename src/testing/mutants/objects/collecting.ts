// Known-wrong variants of collection.
import { unlinkIfThere } from "../../../durable/publish/directory.ts";
import { namesIn } from "../../../objects/listing/walk-keys.ts";
import { collectScenarios } from "../../scenarios/objects/collecting.ts";
import { keyName, openBucketOf } from "../../scenarios/objects/object-world.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

export const collectMutants: readonly Mutant[] = [
  {
    name: "collection that asks the versions alone",
    about: "A body is removed that no version names yet, and its put is acknowledged.",
    scenario: scenarioNamed(
      collectScenarios(async (ports) => {
        const bucket = await openBucketOf(ports);
        const { place, layout } = bucket;
        const named = new Set<string>();
        await bucket.useKey(keyName, async ({ chain, history }) => {
          const head = await chain.findHead();
          for (const { entry } of (head && (await history.read(head))) ?? [])
            if (entry.kind === "put") for (const { file } of entry.parts ?? []) named.add(file);
        });
        for (const holder of await namesIn(place.disk, layout.bodies))
          for (const name of await namesIn(place.disk, layout.bodiesOf(holder)))
            if (!named.has(`bodies/${holder}/${name}`))
              await unlinkIfThere(place.disk, `${layout.bodiesOf(holder)}/${name}`);
      }),
      "collect: a put of a large body, and a collection",
    ),
    breaks: /ENOENT|is lost|NO_SUCH_VERSION|has no version|is missing/,
  },
];
