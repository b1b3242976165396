// Known-wrong variants of the shared sync.
import { sharedSyncScenarios, type MakeSharedSync } from "../../scenarios/durable/shared-sync.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** A caller joins a sync that is already running. */
const joinsCurrent: MakeSharedSync = (syncDirectory) => {
  let current: Promise<void> | undefined;
  return {
    sync: (path) =>
      (current ??= syncDirectory(path)
        .then(() => undefined)
        .finally(() => (current = undefined))),
  };
};

/** The caller is answered as soon as the sync has begun. */
const answersFirst: MakeSharedSync = (syncDirectory) => ({
  sync: async (path) => void syncDirectory(path).catch(() => undefined),
});

const weak = "shared sync: two callers, power cuts (weak)";

export const sharedSyncMutants: readonly Mutant[] = [
  {
    name: "shared sync that is joined after it began",
    about: "The name was created after the running sync had covered the directory.",
    scenario: scenarioNamed(sharedSyncScenarios(joinsCurrent), weak),
    breaks: /was acknowledged and is not there/,
  },
  {
    name: "shared sync that answers before it is done",
    about: "The caller acknowledges a name that a power cut loses.",
    scenario: scenarioNamed(sharedSyncScenarios(answersFirst), weak),
    breaks: /was acknowledged and is not there/,
  },
];
