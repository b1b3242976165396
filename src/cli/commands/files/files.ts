// The command `holdfast files`: a tree of plain files that many processes change, for shells and cron.
import type { Command } from "commander";
import { endHelp } from "../../help.ts";
import type { Run } from "../../run.ts";
import { registerAdd, registerMv, registerRm, registerWrite } from "./change.ts";
import { registerLs } from "./list.ts";
import { registerCat, registerStatus } from "./look.ts";
import { registerReindex, registerSearch } from "./search.ts";
import { busy, exits } from "./tree.ts";
import { registerVerify } from "./verify.ts";
import { registerWork } from "./work.ts";

const verbs = [
  registerAdd,
  registerWrite,
  registerCat,
  registerRm,
  registerMv,
  registerLs,
  registerSearch,
  registerReindex,
  registerStatus,
  registerVerify,
  registerWork,
];

export function registerFiles(files: Command, run: Run): void {
  files.description(
    "Changes a shared tree of plain files in whole steps, under locks, and searches it. Guide: docs/files.md.",
  );
  endHelp(files, {
    examples: [
      "holdfast files write /mnt/team notes/plan.md < plan.md",
      "holdfast files add /mnt/team docs/guide ./guide",
      "holdfast files mv /mnt/team notes/plan.md archive/plan.md",
      "holdfast files search /mnt/team 'wolf tracks'",
    ],
    exits: { done: "done", ...exits, nothingToDo: "there is no such file", tryAgain: busy },
  });
  for (const register of verbs) register(files, run);
}
