// Known-wrong variants of the shared sync.
import { sharedSyncScenarios, type MakeSharedSync } from "../../scenarios/durable/shared-sync.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** A caller joins the sync that is under way. */
const joinsCurrent: MakeSharedSync = (syncDirectory) => {
  let current: Promise<void> | undefined;
  return { sync: (path) => (current ??= syncDirectory(path).finally(() => (current = undefined))) };
};

/** The caller is answered as soon as the sync was asked for. */
const answersFirst: MakeSharedSync = (syncDirectory) => ({
  sync: async (path) => void syncDirectory(path).catch(() => undefined),
});

const weak = "shared sync: two callers, power cuts (weak)";

export const sharedSyncMutants: readonly Mutant[] = [
  {
    name: "shared sync that is joined after it began",
    about: "The name was made after the sync had passed over the directory.",
    scenario: scenarioNamed(sharedSyncScenarios(joinsCurrent), weak),
    breaks: /was acknowledged and is not there/,
  },
  {
    name: "shared sync that answers before it is done",
    about: "The caller acknowledges a name that a power cut takes.",
    scenario: scenarioNamed(sharedSyncScenarios(answersFirst), weak),
    breaks: /was acknowledged and is not there/,
  },
];
