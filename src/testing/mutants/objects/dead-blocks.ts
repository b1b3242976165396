// Known-wrong variants of dropping a block of a key.
import { removeTree, unlinkIfThere } from "../../../durable/publish/directory.ts";
import { dropBlock, emptyBlock } from "../../../objects/key/dropped-block.ts";
import { KeyChain } from "../../../objects/key/key-chain.ts";
import { deadBlockScenarios } from "../../scenarios/objects/dead-blocks.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Asks only whether the key is there, not whether the block is. */
class KeyAskingChain extends KeyChain {
  protected override async counts(incarnation: string, _number: number): Promise<boolean> {
    return await super.counts(incarnation, 1);
  }
}

const inTheMiddle = "block: dropped under a put in the middle of it";

export const deadBlockMutants: readonly Mutant[] = [
  {
    name: "block that a put does not ask for",
    about: "A process that slept takes a number of a block that was dropped, and is acknowledged.",
    scenario: scenarioNamed(
      deadBlockScenarios({ ChainClass: KeyAskingChain }),
      "block: dropped under a put on a share",
    ),
    breaks: /was acknowledged as/,
  },
  {
    name: "block whose first slot is removed last",
    about: "A process that slept takes a number that was vacated, and finds the first slot still there.",
    scenario: scenarioNamed(
      deadBlockScenarios({
        drop: async (place, at, ids) => {
          await emptyBlock(place.staging.disk, at);
          await dropBlock(place, at, ids);
        },
      }),
      inTheMiddle,
    ),
    breaks: /was acknowledged as|a gap/,
  },
  {
    name: "block that goes with its directory",
    about: "A process that slept begins the block anew, and is acknowledged.",
    scenario: scenarioNamed(
      deadBlockScenarios({
        drop: async (place, at, ids) => {
          await dropBlock(place, at, ids);
          await removeTree(place.staging.disk, at.names.blockPath(at.incarnation, at.block));
        },
      }),
      "block: dropped under a put that would begin it",
    ),
    breaks: /was acknowledged as|a gap/,
  },
  {
    name: "block whose first slot comes back",
    about: "Other slots are removed before the removal of the first one is durable.",
    scenario: scenarioNamed(
      deadBlockScenarios({
        drop: async (place, at) => {
          const { disk } = place.staging;
          await unlinkIfThere(disk, at.names.slotPath(at.incarnation, at.names.firstOf(at.block)));
          await emptyBlock(disk, at);
        },
      }),
      "block: dropped, power cuts",
    ),
    breaks: /a gap/,
  },
];
