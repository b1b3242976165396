// Known-wrong variants of the chain of a key.
import { removeTree, unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import { removeDying } from "../../../src/objects/key/dying-key.ts";
import type { StagedEntry } from "../../../src/objects/key/key-storage.ts";
import { KeySlots } from "../../../src/objects/key/key-slots.ts";
import { archivingScenario } from "../../scenarios/objects/archiving-gateway.ts";
import { keyScenarios } from "../../scenarios/objects/keys.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Takes the link as proof, although a vacated number can also be linked. */
class UnaskedSlots extends KeySlots {
  override async counts(): Promise<boolean> {
    return true;
  }
}

/** Removes the first slot after all others. */
class FirstSlotLastSlots extends KeySlots {
  override async end(incarnation: string): Promise<void> {
    const { disk } = this.storage.staging;
    const names: string[] = await disk.list(this.names.directory).catch(() => []);
    for (const name of names.sort().reverse()) await unlinkIfThere(disk, `${this.names.directory}/${name}`);
    await unlinkIfThere(disk, this.names.slotPath(incarnation, 1));
    await removeDying(disk, this.names);
  }
}

/** Assumes that a visible entry is durable. */
class TrustingSlots extends KeySlots {
  override async makeDurable(): Promise<void> {
    // Does nothing, as if the process that linked the entry had synced it.
  }
}

/** Links after an entry without reading it. */
class GallopingSlots extends KeySlots {
  override isLast(): boolean {
    return false;
  }
}

/**
 * Takes the link count of a file as proof of its link, although it may come from a cache or always
 * be 1.
 */
class CountingSlots extends KeySlots {
  override async link(path: string, { temp }: StagedEntry): Promise<boolean> {
    const namesOfTemp = 1;
    try {
      await this.storage.staging.disk.link(temp, path);
      return true;
    } catch (error) {
      if (!hasErrno(error, "EEXIST")) throw error;
      return namesOfTemp > 1;
    }
  }
}

/** Gives a key that is created again the names of its previous life. */
class RecurringSlots extends KeySlots {
  override newIncarnation(): string {
    return "0".repeat(26);
  }
}

const slept = "key: a put that slept, and a collector";
const collected = "key: a put that slept, a collector and another put";

export const keyMutants: readonly Mutant[] = [
  {
    name: "key without a question after the link",
    about: "A put is acknowledged under a number of a key that is being removed.",
    scenario: scenarioNamed(keyScenarios({ SlotsClass: UnaskedSlots }), slept),
    breaks: /was acknowledged as/,
  },
  {
    name: "key whose first slot is removed last",
    about: "A put wins a vacated number while the first slot still exists.",
    scenario: scenarioNamed(keyScenarios({ SlotsClass: FirstSlotLastSlots }), slept),
    breaks: /was acknowledged as|a gap/,
  },
  {
    name: "key built on an entry that is not durable",
    about: "A power cut loses the entry and keeps the one after it.",
    scenario: scenarioNamed(keyScenarios({ SlotsClass: TrustingSlots }), "key: two puts, power cuts (weak)"),
    breaks: /a gap/,
  },
  {
    name: "key that goes on behind its last entry",
    about: "A put links its entry after the one that closes the key, and is removed with the key.",
    scenario: scenarioNamed(keyScenarios({ SlotsClass: GallopingSlots }), slept),
    breaks: /was acknowledged as/,
  },
  {
    name: "key whose links are told by the number of names",
    about: "The reply to a link was lost; the link is repeated under another number, and one put becomes two versions.",
    scenario: scenarioNamed(keyScenarios({ SlotsClass: CountingSlots }), "key: two puts with lost replies"),
    breaks: /is there twice/,
  },
  {
    name: "key that comes anew under its old names",
    about: "A put that slept takes the first slot of the new key for that of the key it knew.",
    scenario: scenarioNamed(keyScenarios({ SlotsClass: RecurringSlots }), collected),
    breaks: /was acknowledged as|a gap/,
  },
  {
    name: "sweeper that empties a prepared key where it lies",
    about: "A put that slept moves its emptied directory into place, and is acknowledged.",
    scenario: scenarioNamed(
      keyScenarios({
        sweep: async ({ disk }, directory) => {
          for (const name of await disk.list(directory)) await removeTree(disk, `${directory}/${name}`);
        },
      }),
      "key: a put to a new key that sleeps, and a sweeper",
    ),
    breaks: /was acknowledged as/,
  },
  {
    name: "gateway that archives the current version and overwrites it",
    about: "One of two concurrent puts is neither current nor archived.",
    scenario: archivingScenario(),
    breaks: /is lost/,
  },
];
