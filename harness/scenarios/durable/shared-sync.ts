// Scenarios of the shared sync: two callers of one process create names in one directory, and the power fails.
import { SharedSync } from "../../../src/durable/publish/shared-sync.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { mustHold, valuesOf, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import type { CrashProfile } from "../../../src/testing/sim/persistence.ts";

const directory = "/shared";

/** Makes the shared sync: the real one, or a known-wrong variant. */
export type MakeSharedSync = (syncDirectory: Disk["syncDirectory"], disk: Disk) => Pick<SharedSync, "sync">;

const makeReal: MakeSharedSync = (syncDirectory, disk) =>
  new SharedSync(Object.assign(Object.create(disk) as Disk, { syncDirectory }));

/** Runs two callers, each with its own name. */
function publisher(make: MakeSharedSync): Actor {
  return {
    run: async ({ ports: { disk }, note }) => {
      const shared = make(async (path) => {
        await disk.syncDirectory(path);
        // The sync's answer is on its way: names created from now on are not durable.
        await disk.canOpen(path);
      }, disk);
      const publish = async (name: string): Promise<void> => {
        await disk.createFile(`${directory}/${name}`, new Uint8Array(), { sync: true });
        try {
          await shared.sync(directory);
          note("acknowledged", name);
        } catch (error) {
          if (!isHoldfastError(error, "IO_ERROR")) throw error;
        }
      };
      await Promise.all([publish("first"), publish("second")]);
    },
  };
}

export function sharedSyncScenarios(make: MakeSharedSync = makeReal): Scenario[] {
  const profiles: readonly CrashProfile[] = ["ext4-ordered", "weak"];
  return profiles.map((profile) => ({
    name: `shared sync: two callers, power cuts (${profile})`,
    about:
      "Each caller creates a name and waits for the shared sync, which may fail once. The power fails at every moment.",
    profile,
    powerCuts: true,
    errors: { errnos: ["EIO"], operations: ["sync directory"] },
    troubles: { error: 1 },
    setup: ({ disk }) => disk.mkdir(directory),
    actors: { ada: publisher(make) },
    audit: async ({ disk }, facts) => {
      const names = await disk.list(directory);
      for (const name of valuesOf<string>(facts, "acknowledged"))
        mustHold(names.includes(name), `${name} was acknowledged and is not there`);
    },
  }));
}
