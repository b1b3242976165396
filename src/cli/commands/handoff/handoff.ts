// The command `holdfast handoff`: a box of tickets in a folder, for shells, cron and pipes.
import type { Command } from "commander";
import { endHelp } from "../../help.ts";
import { failed, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { registerAdopt } from "./adopt.ts";
import { damaged, nothingThere } from "./box.ts";
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
    "Hands files from one program to another: a ticket is claimed by one worker at a time, and done once.",
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
      nothingToDo: `nothing to take, or no such ticket; ${nothingThere}`,
      notHeld: "the claim is gone: it was settled, or its time was over",
      verificationFailed: damaged,
      failedForGood: "show --wait: the ticket has failed for good",
      tryAgain: "the box is full or paused, or the answer was lost: try again, with the same key",
    },
  });
  for (const register of verbs) register(handoff, run);
}
