// Known-wrong variants of the change log.
import type { FilesLayout } from "../../../src/files/tree/layout.ts";
import { slotName } from "../../../src/format/name.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { changeLogScenarios } from "../../scenarios/files/change-log.ts";
import { wrapping } from "../../scenarios/files/wrapped-tree.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Acknowledges an announcement before its name is synced. */
function unsynced(disk: Disk): Disk {
  return wrapping(disk, { syncDirectory: async () => undefined });
}

/** Trusts a link without checking whether its block was folded: it finds no segment. */
function withoutSegments(disk: Disk): Disk {
  return wrapping(disk, { canOpen: async (path) => !path.endsWith(".log") && (await disk.canOpen(path)) });
}

/** Treats the last block like an old one. */
function withLaterBlock(disk: Disk): Disk {
  const list: Disk["list"] = async (path) => {
    const names = await disk.list(path);
    return path.endsWith("/changes") ? [...names, slotName(99)] : names;
  };
  return wrapping(disk, { list });
}

/** Folds a block that is not full. */
function oneChangeEach(layout: FilesLayout): FilesLayout {
  const numbersOf: FilesLayout["numbersOf"] = (block) => {
    const { first } = layout.numbersOf(block);
    return { first, last: first };
  };
  return wrapping(layout, { numbersOf });
}

export const changeLogMutants: readonly Mutant[] = [
  {
    name: "announcement that is told before its sync",
    about: "A power cut loses a number that a caller already uses.",
    scenario: scenarioNamed(
      changeLogScenarios({ diskOf: unsynced }),
      "change log: callers that announce together, power cuts",
    ),
    breaks: /is lost/,
  },
  {
    name: "segment that is not durable when its files are removed",
    about: "A power cut loses the segment with all its changes.",
    scenario: scenarioNamed(changeLogScenarios({ folderDiskOf: unsynced }), "change log: a fold and power cuts (weak)"),
    breaks: /was lost in folding/,
  },
  {
    name: "block that is folded before it is full",
    about: "Free numbers of the folded block are given twice, or readers never find their changes.",
    scenario: scenarioNamed(
      changeLogScenarios({ folderDiskOf: withLaterBlock, layoutOf: oneChangeEach }),
      "change log: a reader beside a fold that dies",
    ),
    breaks: /was lost in folding/,
  },
  {
    name: "link into a folded block that counts",
    about: "The name is free only because its change was folded, so the number is given twice.",
    scenario: scenarioNamed(
      changeLogScenarios({ diskOf: withoutSegments }),
      "change log: a caller that slept, beside a fold",
    ),
    breaks: /is lost|was lost|given twice/,
  },
];
