// Known-wrong variants of collection.
import { listIfThere, unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { collectScenarios } from "../../scenarios/objects/collecting.ts";
import { keyName, openBucketOf } from "../../scenarios/objects/object-world.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

export const collectMutants: readonly Mutant[] = [
  {
    name: "collection that asks the versions alone",
    about: "The collection removes a body that no version names yet, and its put is acknowledged.",
    scenario: scenarioNamed(
      collectScenarios(async (ports) => {
        const bucket = await openBucketOf(ports);
        const { storage, layout } = bucket;
        const named = new Set<string>();
        await bucket.useKey(keyName, async ({ chain, history }) => {
          const head = await chain.findHead();
          for (const { entry } of (head && (await history.read(head)))?.versions ?? [])
            if (entry.kind === "put") for (const { file } of entry.parts ?? []) named.add(file);
        });
        for (const holder of await listIfThere(storage.disk, layout.bodies))
          for (const name of await listIfThere(storage.disk, layout.bodiesOf(holder)))
            if (!named.has(`bodies/${holder}/${name}`))
              await unlinkIfThere(storage.disk, `${layout.bodiesOf(holder)}/${name}`);
      }),
      "collect: a put of a large body, and a collection",
    ),
    breaks: /ENOENT|is lost|NO_SUCH_VERSION|has no version|is missing/,
  },
];
