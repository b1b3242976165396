// The commands `holdfast events verify` and `rebuild`: check a log, and rebuild its indexes.
import type { Command } from "commander";
import { rebuildEventIndexes } from "../../../events/index.ts";
import { failed, findPartDirectory, partVerb, wrongUsage } from "../../part-verb.ts";
import { Progress } from "../../progress.ts";
import type { Run } from "../../run.ts";
import { registerPartVerify, repairOption } from "../../verify-report.ts";
import { damaged, logNoun, missing, type LogFlags } from "./log.ts";

const exits = { failed, wrongUsage, missing };

export function registerVerify(events: Command, run: Run): void {
  const verb = {
    summary: "check every line and every condition",
    description:
      "Checks every checksum, position, id and condition, and reports file, line and byte of damage. Takes no lock.",
    options: [
      repairOption("keep everything intact at its position, and move the rest to aside/ of the log; deletes nothing"),
    ],
    examples: ["holdfast events verify /mnt/shop", "holdfast events verify /mnt/shop --log orders --repair --json"],
    exits: {
      done: "no damage, or all repaired; leftovers of crashes are harmless",
      ...exits,
      verificationFailed: damaged,
    },
  };
  registerPartVerify(events, logNoun, verb, run);
}

export function registerRebuild(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "rebuild", {
    summary: "rebuild the indexes",
    description: "Moves the indexes of the log to aside/ and rebuilds them. Others may read and append meanwhile.",
    examples: ["holdfast events rebuild /mnt/shop/events"],
    exits: { done: "rebuilt", ...exits, verificationFailed: damaged },
  });
  command.action(async (directory: string, flags: LogFlags) => {
    const path = await findPartDirectory(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    const rebuilt = await rebuild(path, run);
    run.output.result({ directory: path, ...rebuilt }, () =>
      rebuilt.segments === 0
        ? "There is nothing to index yet: the segment that is written to is indexed in memory."
        : `Indexed ${rebuilt.segments} segment(s), ${rebuilt.events} event(s).`,
    );
  });
}

async function rebuild(path: string, run: Run): ReturnType<typeof rebuildEventIndexes> {
  using progress = new Progress(run, "indexed segments");
  return await rebuildEventIndexes(path, { signal: run.signal, onProgress: progress.tell });
}
