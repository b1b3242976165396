// The command `holdfast handoff`: a box of tickets in a folder, for shells, cron and pipes.
import type { Command } from "commander";
import { endHelp } from "../../help.ts";
import { failed, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { registerAdopt } from "./adopt.ts";
import { damaged, missing } from "./box.ts";
import { registerExport } from "./export.ts";
import { registerCat, registerLs, registerShow } from "./look.ts";
import { registerStats, registerWatch } from "./numbers.ts";
import { registerPut } from "./put.ts";
import { registerAck, registerFail, registerRetry, registerTake } from "./take.ts";
import { registerPause, registerReplay, registerResume, registerVerify } from "./tend.ts";
import { registerWork } from "./work.ts";

const verbs = [
  registerPut,
  registerTake,
  registerAck,
  registerRetry,
  registerFail,
  registerWork,
  registerAdopt,
  registerExport,
  registerLs,
  registerShow,
  registerCat,
  registerStats,
  registerWatch,
  registerReplay,
  registerPause,
  registerResume,
  registerVerify,
];

export function registerHandoff(handoff: Command, run: Run): void {
  handoff.description(
    "Passes files between programs: one worker at a time claims a ticket, and it is done once. Guide: docs/handoff.md.",
  );
  endHelp(handoff, {
    examples: [
      "holdfast handoff put /mnt/shop/invoices invoice-7.pdf --key invoice-7",
      "holdfast handoff work /mnt/shop/invoices --exec 'import-invoice \"$HOLDFAST_FILE\"' -j 4",
      "holdfast handoff ls /mnt/shop/invoices --state error",
    ],
    exits: {
      done: "done",
      failed,
      wrongUsage,
      nothingToDo: "no such ticket; with --fail-if-idle: no ticket to take",
      notHeld: "the claim is gone: it was settled, or its time ran out",
      verificationFailed: damaged,
      missing,
      failedForGood: "show --wait: the ticket has failed permanently",
      tryAgain: "the box is full or paused, or the answer was lost: try again with the same key",
    },
  });
  for (const register of verbs) register(handoff, run);
}
