// Known-wrong variants of the chain of a key.
import { removeTree, unlinkIfThere } from "../../../durable/publish/directory.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import { KeyChain, type Candidate } from "../../../objects/key/key-chain.ts";
import { removeDying } from "../../../objects/key/dying-key.ts";
import { archivingScenario } from "../../scenarios/objects/archiving-gateway.ts";
import { keyScenarios } from "../../scenarios/objects/keys.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Takes the link for the proof: a number that was vacated is won as well. */
class UnaskedChain extends KeyChain {
  protected override async counts(): Promise<boolean> {
    return true;
  }
}

/** Removes the first slot when all others are gone. */
class FirstSlotLastChain extends KeyChain {
  protected override async endKey(incarnation: string): Promise<void> {
    const { disk } = this.place.staging;
    const names: string[] = await disk.list(this.names.directory).catch(() => []);
    for (const name of names.sort().reverse()) await unlinkIfThere(disk, `${this.names.directory}/${name}`);
    await unlinkIfThere(disk, this.names.slotPath(incarnation, 1));
    await removeDying(disk, this.names);
  }
}

/** Takes an entry that can be seen for one that is durable. */
class TrustingChain extends KeyChain {
  protected override async makeDurable(): Promise<void> {
    // Nothing: another process has linked it, and will sync it.
  }
}

/** Links behind an entry without a look at what it says. */
class GallopingChain extends KeyChain {
  protected override isOver(): boolean {
    return false;
  }
}

/**
 * Takes the number of names of a file for the proof that its link was made: where that is answered
 * from a cache, or is always 1.
 */
class CountingChain extends KeyChain {
  protected override async link(incarnation: string, number: number, { temp }: Candidate): Promise<boolean> {
    const namesOfTemp = 1;
    try {
      await this.place.staging.disk.link(temp, this.names.slotPath(incarnation, number));
      return true;
    } catch (error) {
      if (!hasErrno(error, "EEXIST")) throw error;
      return namesOfTemp > 1;
    }
  }
}

/** Gives a key that comes anew the names of the one before it. */
class RecurringChain extends KeyChain {
  protected override newIncarnation(): string {
    return "0".repeat(26);
  }
}

const slept = "key: a put that slept, and a collector";
const collected = "key: a put that slept, a collector and another put";

export const keyMutants: readonly Mutant[] = [
  {
    name: "key without a question after the link",
    about: "A put is acknowledged under a number of a key that is being removed.",
    scenario: scenarioNamed(keyScenarios({ ChainClass: UnaskedChain }), slept),
    breaks: /was acknowledged as/,
  },
  {
    name: "key whose first slot is removed last",
    about: "A put takes a number that was vacated, and finds the first slot still there.",
    scenario: scenarioNamed(keyScenarios({ ChainClass: FirstSlotLastChain }), slept),
    breaks: /was acknowledged as|a gap/,
  },
  {
    name: "key built on an entry that is not durable",
    about: "A power cut takes the entry and leaves the one after it.",
    scenario: scenarioNamed(keyScenarios({ ChainClass: TrustingChain }), "key: two puts, power cuts (weak)"),
    breaks: /a gap/,
  },
  {
    name: "key that goes on behind its last entry",
    about: "A put lands behind the entry that closes the key, and is removed with it.",
    scenario: scenarioNamed(keyScenarios({ ChainClass: GallopingChain }), slept),
    breaks: /was acknowledged as/,
  },
  {
    name: "key whose links are told by the number of names",
    about: "A link was made and its answer spoiled; it is made again, and one put becomes two versions.",
    scenario: scenarioNamed(keyScenarios({ ChainClass: CountingChain }), "key: two puts with lost replies"),
    breaks: /is there twice/,
  },
  {
    name: "key that comes anew under its old names",
    about: "A put that slept finds the first slot of another key under the name of its own.",
    scenario: scenarioNamed(keyScenarios({ ChainClass: RecurringChain }), collected),
    breaks: /was acknowledged as|a gap/,
  },
  {
    name: "sweeper that empties a prepared key where it lies",
    about: "A put that slept moves the empty directory into its place, and is acknowledged.",
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
    about: "Of two puts at the same time one is neither current nor archived.",
    scenario: archivingScenario(),
    breaks: /is lost/,
  },
];
