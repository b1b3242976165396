// The command `holdfast events`: a log of events in a folder, for shells and pipes.
import type { Command } from "commander";
import { endHelp } from "../../help.ts";
import type { Run } from "../../run.ts";
import { registerAppend } from "./append.ts";
import { registerConsumers } from "./consumers.ts";
import { damaged, missing } from "./log.ts";
import { failed, wrongUsage } from "../../part-verb.ts";
import { registerHead, registerRead, registerTail } from "./read.ts";
import { registerExport, registerImport } from "./transfer.ts";
import { registerRebuild, registerVerify } from "./verify.ts";

const verbs = [
  registerAppend,
  registerRead,
  registerTail,
  registerHead,
  registerConsumers,
  registerVerify,
  registerExport,
  registerImport,
  registerRebuild,
];

export function registerEvents(events: Command, run: Run): void {
  events.description("Appends to, reads and maintains an event log. NDJSON in, NDJSON out. Guide: docs/events.md.");
  endHelp(events, {
    examples: [
      "holdfast events append /mnt/shop/events --type Sold --data '{\"sku\":1}' --tag sku:1",
      "holdfast events read /mnt/shop/events --tag sku:1 | jq .data",
    ],
    exits: {
      done: "done",
      failed: `${failed}; append: the condition failed`,
      wrongUsage,
      missing,
      verificationFailed: damaged,
      failedForGood: "append: an event is not valid, or its id belongs to another event",
      tryAgain: "timed out behind other writers: try again",
    },
  });
  for (const register of verbs) register(events, run);
}
