// Known-wrong variants of conditions, removals and settings: each uses a state that another process
// may have changed since.
import { renameOnce } from "../../../src/durable/publish/publish.ts";
import { stage } from "../../../src/durable/publish/staging.ts";
import { encodeEntry } from "../../../src/objects/model/entry.ts";
import { findVersion } from "../../../src/objects/version/find-version.ts";
import { deleteObject, mustNotBeRetained } from "../../../src/objects/version/delete-version.ts";
import { mustMeet } from "../../../src/objects/version/preconditions.ts";
import { getVersion } from "../../../src/objects/version/read-version.ts";
import { announceNothing, keyName, putText } from "../../scenarios/objects/object-world.ts";
import { versionScenarios, type VersionWays } from "../../scenarios/objects/versions.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Checks the condition, then puts. */
const putAfterLook: VersionWays["put"] = async (bucket, text, { preconditions = {}, ...way }) => {
  const found = await bucket.useKey(keyName, (open) => findVersion(open, keyName, undefined));
  mustMeet(keyName, found?.version, preconditions);
  await putText(bucket, text, way);
};

/** Checks that the version may be removed, then removes it. */
const removeAfterLook: VersionWays["removeVersion"] = async (bucket, versionId) => {
  const { version } = await getVersion(bucket, keyName, { versionId });
  mustNotBeRetained(version, bucket.storage.nowMs(), false);
  const facts = { id: bucket.storage.newId(), key: keyName, config: bucket.state.number, atMs: 0 };
  await bucket.useKey(keyName, (open) =>
    bucket.append(keyName, open, async () => ({
      add: { entry: { kind: "remove", ...facts, slots: [version.slot], current: 0 } },
    })),
  );
};

/** Replaces a removed slot by a stub, even on a share. */
const stubEverywhere: VersionWays["removeVersion"] = async (bucket, versionId) => {
  const { version } = await getVersion(bucket, keyName, { versionId });
  await deleteObject(bucket, keyName, { versionId }, announceNothing);
  const { id, key, config, atMs, isNull } = version.entry;
  const { staging } = bucket.storage;
  const temp = await stage(staging, encodeEntry({ kind: "stub", id, key, config, atMs, isNull }), { sync: true });
  await bucket.useKey(keyName, async ({ chain }) => {
    const head = await chain.findHead();
    await renameOnce(staging.disk, temp, chain.names.slotPath(head?.incarnation ?? "", version.slot));
  });
};

export const versionMutants: readonly Mutant[] = [
  {
    name: "condition that is looked at before the put",
    about: "Two puts check the same ETag, and both replace the object.",
    scenario: scenarioNamed(versionScenarios({ put: putAfterLook }), "version: two puts replace the same object"),
    breaks: /two puts have replaced the same object/,
  },
  {
    name: "hold that is looked for before the removal",
    about: "A version gets a legal hold after the check, and is removed nevertheless.",
    scenario: scenarioNamed(
      versionScenarios({ removeVersion: removeAfterLook }),
      "version: a legal hold and a removal",
    ),
    breaks: /a version was held and removed/,
  },
  {
    name: "stub in the place of a version on a share",
    about: "The client of the share removes the slot's name before it renames the stub, and dies in between.",
    scenario: scenarioNamed(
      versionScenarios({ removeVersion: stubEverywhere }),
      "version: a removal on a share, and its machine dies",
    ),
    breaks: /a slot is free again, and entries behind it are there/,
  },
  {
    name: "put that goes by the settings it has read once",
    about: "The put replaces the null version, which must be kept once versioning is enabled.",
    scenario: scenarioNamed(
      versionScenarios({
        spoil: (bucket) => void Object.defineProperty(bucket, "readAgain", { value: async () => undefined }),
      }),
      "version: a put that slept while versions were enabled",
    ),
    breaks: /a null version was put behind a version/,
  },
];
