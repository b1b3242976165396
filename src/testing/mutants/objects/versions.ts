// Known-wrong variants of conditions, removals and settings: each is judged on a state that another
// process has changed since.
import { renameOnce } from "../../../durable/publish/publish.ts";
import { stage } from "../../../durable/publish/staging.ts";
import { encodeEntry } from "../../../objects/model/entry.ts";
import { findVersion } from "../../../objects/version/find-version.ts";
import { appendEntry } from "../../../objects/version/append-entry.ts";
import { deleteObject, mustNotBeRetained } from "../../../objects/version/delete-version.ts";
import { mustMeet } from "../../../objects/version/preconditions.ts";
import { getVersion } from "../../../objects/version/read-version.ts";
import { announceNothing, keyName, putText } from "../../scenarios/objects/object-world.ts";
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

/** Puts a stub in the place of what it has removed, on whatever disk. */
const stubEverywhere: VersionWays["removeVersion"] = async (bucket, versionId) => {
  const { version } = await getVersion(bucket, keyName, { versionId });
  await deleteObject(bucket, keyName, { versionId }, announceNothing);
  const { id, key, config, atMs, isNull } = version.entry;
  const { staging } = bucket.place;
  const temp = await stage(staging, encodeEntry({ kind: "stub", id, key, config, atMs, isNull }), { sync: true });
  await bucket.useKey(keyName, async ({ chain }) => {
    const head = await chain.findHead();
    await renameOnce(staging.disk, temp, chain.names.slotPath(head?.incarnation ?? "", version.slot));
  });
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
    name: "stub in the place of a version on a share",
    about: "Its client takes the name of the slot away before it gives it to the stub, and dies in between.",
    scenario: scenarioNamed(
      versionScenarios({ removeVersion: stubEverywhere }),
      "version: a removal on a share, and its machine dies",
    ),
    breaks: /is missing, and entries behind it are there/,
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
