// Known-wrong variants of dropping a block of a key.
import { removeTree, unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { dropBlock, emptyBlock } from "../../../src/objects/key/dropped-block.ts";
import type { KeySlot } from "../../../src/objects/key/key-storage.ts";
import { KeySlots } from "../../../src/objects/key/key-slots.ts";
import { deadBlockScenarios } from "../../scenarios/objects/dead-blocks.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Checks only that the key exists, not that the block does. */
class KeyAskingSlots extends KeySlots {
  override async counts({ incarnation }: KeySlot): Promise<boolean> {
    return await super.counts({ incarnation, number: 1 });
  }
}

const inTheMiddle = "block: dropped under a put in the middle of it";

export const deadBlockMutants: readonly Mutant[] = [
  {
    name: "block that a put does not ask for",
    about: "A process that slept wins a number in a dropped block, and is acknowledged.",
    scenario: scenarioNamed(
      deadBlockScenarios({ SlotsClass: KeyAskingSlots }),
      "block: dropped under a put on a share",
    ),
    breaks: /was acknowledged as/,
  },
  {
    name: "block whose first slot is removed last",
    about: "A process that slept wins a vacated number while the first slot still exists.",
    scenario: scenarioNamed(
      deadBlockScenarios({
        drop: async (storage, at, ids) => {
          await emptyBlock(storage.staging.disk, at);
          await dropBlock(storage, at, ids);
        },
      }),
      inTheMiddle,
    ),
    breaks: /was acknowledged as|a gap/,
  },
  {
    name: "block that goes with its directory",
    about: "A process that slept creates the dropped block again, and is acknowledged.",
    scenario: scenarioNamed(
      deadBlockScenarios({
        drop: async (storage, at, ids) => {
          await dropBlock(storage, at, ids);
          await removeTree(storage.staging.disk, at.names.blockPath(at.incarnation, at.block));
        },
      }),
      "block: dropped under a put that would begin it",
    ),
    breaks: /was acknowledged as|a gap/,
  },
  {
    name: "block whose first slot comes back",
    about:
      "Other slots are removed before the removal of the first one is durable, so a power cut restores the first one alone.",
    scenario: scenarioNamed(
      deadBlockScenarios({
        drop: async (storage, at) => {
          const { disk } = storage.staging;
          await unlinkIfThere(disk, at.names.slotPath(at.incarnation, at.names.firstOf(at.block)));
          await emptyBlock(disk, at);
        },
      }),
      "block: dropped, power cuts",
    ),
    breaks: /a gap/,
  },
];
