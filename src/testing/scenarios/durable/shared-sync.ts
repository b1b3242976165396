// Scenarios of the shared sync: two callers of one process make names in one directory, and the power fails.
import { SharedSync } from "../../../durable/publish/shared-sync.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { Disk } from "../../../ports/disk.ts";
import { mustHold, valuesOf, type Actor, type Scenario } from "../../explorer/scenario.ts";
import type { Profile } from "../../sim/persistence.ts";

const directory = "/shared";

/** What the scenarios run on: the real one, or a known-wrong variant. */
export type MakeSharedSync = (syncDirectory: Disk["syncDirectory"], disk: Disk) => Pick<SharedSync, "sync">;

const makeReal: MakeSharedSync = (syncDirectory, disk) =>
  new SharedSync(Object.assign(Object.create(disk) as Disk, { syncDirectory }));

/** Two callers, each with a name of its own. */
function publisher(make: MakeSharedSync): Actor {
  return {
    run: async ({ ports: { disk }, note }) => {
      const shared = make(async (path) => {
        await disk.syncDirectory(path);
        // The answer is on its way: names that are made from now on are not durable.
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
  const profiles: readonly Profile[] = ["ext4-ordered", "weak"];
  return profiles.map((profile) => ({
    name: `shared sync: two callers, power cuts (${profile})`,
    about: "Each makes a name and waits for the shared sync, which may fail once; the power fails at every moment.",
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
