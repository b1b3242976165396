// The command `holdfast files`: a tree of plain files that many processes change, for shells and cron.
import type { Command } from "commander";
import { endHelp } from "../../help.ts";
import type { Run } from "../../run.ts";
import { registerAdd, registerMv, registerRm, registerWrite } from "./change.ts";
import { registerCat, registerStatus } from "./look.ts";
import { registerReindex, registerSearch } from "./search.ts";
import { busy, exits, nothingThere } from "./tree.ts";

const verbs = [
  registerAdd,
  registerWrite,
  registerCat,
  registerRm,
  registerMv,
  registerSearch,
  registerReindex,
  registerStatus,
];

export function registerFiles(files: Command, run: Run): void {
  files.description("A tree of plain files: changes happen in one step, under locks, and none of them is lost.");
  endHelp(files, {
    examples: [
      "holdfast files write /mnt/team notes/plan.md < plan.md",
      "holdfast files add /mnt/team docs/guide ./guide",
      "holdfast files mv /mnt/team notes/plan.md archive/plan.md",
      "holdfast files search /mnt/team 'wolf tracks'",
    ],
    exits: { done: "done", ...exits, nothingToDo: `there is no such file; ${nothingThere}`, tryAgain: busy },
  });
  for (const register of verbs) register(files, run);
}
