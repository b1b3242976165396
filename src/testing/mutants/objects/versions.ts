// Known-wrong variants of conditions, removals and settings: each is judged on a state that another
// process has changed since.
import { findVersion } from "../../../objects/version/find-version.ts";
import { appendEntry } from "../../../objects/version/append-entry.ts";
import { mustNotBeRetained } from "../../../objects/version/delete-version.ts";
import { mustMeet } from "../../../objects/version/preconditions.ts";
import { getVersion } from "../../../objects/version/read-version.ts";
import { keyName, putText } from "../../scenarios/objects/object-world.ts";
import { versionScenarios, type VersionWays } from "../../scenarios/objects/versions.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Looks whether the condition is met, and puts then. */
const putAfterLook: VersionWays["put"] = async (bucket, text, { preconditions = {}, ...way }) => {
  const found = await bucket.useKey(keyName, (open) => findVersion(open, keyName, undefined));
  mustMeet(keyName, found?.version, preconditions);
  await putText(bucket, text, way);
};

/** Looks whether the version may go, and removes it then. */
const removeAfterLook: VersionWays["removeVersion"] = async (bucket, versionId) => {
  const { version } = await getVersion(bucket, keyName, { versionId });
  mustNotBeRetained(version, bucket.place.nowMs(), false);
  const facts = { id: bucket.place.newId(), key: keyName, config: bucket.state.number, atMs: 0 };
  await bucket.useKey(keyName, (open) =>
    appendEntry(bucket, keyName, open, {
      make: () => ({ kind: "remove", ...facts, slots: [version.slot], current: 0 }),
    }),
  );
};

export const versionMutants: readonly Mutant[] = [
  {
    name: "condition that is looked at before the put",
    about: "Two puts find the same ETag, and both replace the object.",
    scenario: scenarioNamed(versionScenarios({ put: putAfterLook }), "version: two puts replace the same object"),
    breaks: /two puts have replaced the same object/,
  },
  {
    name: "hold that is looked for before the removal",
    about: "A version is held after the look, and removed.",
    scenario: scenarioNamed(
      versionScenarios({ removeVersion: removeAfterLook }),
      "version: a legal hold and a removal",
    ),
    breaks: /a version was held and removed/,
  },
  {
    name: "put that goes by the settings it has read once",
    about: "It takes the place of the null version that enabling versions had promised to keep.",
    scenario: scenarioNamed(
      versionScenarios({
        spoil: (bucket) => void Object.defineProperty(bucket, "readAgain", { value: async () => undefined }),
      }),
      "version: a put that slept while versions were enabled",
    ),
    breaks: /a null version was put behind a version/,
  },
];
