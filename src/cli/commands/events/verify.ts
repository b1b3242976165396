// The commands `holdfast events verify` and `rebuild`: is the log what it should be, and its
// indexes made anew.
import type { Command } from "commander";
import { rebuildEventIndexes } from "../../../events/index.ts";
import { failed, findPartDirectory, partVerb, wrongUsage } from "../../part-verb.ts";
import { Progress } from "../../progress.ts";
import type { Run } from "../../run.ts";
import { registerPartVerify, repairOption } from "../../verify-report.ts";
import { damaged, logNoun, nothingThere, type LogFlags } from "./log.ts";

const exits = { failed, wrongUsage, nothingToDo: nothingThere };

export function registerVerify(events: Command, run: Run): void {
  const verb = {
    summary: "check every line, and judge every condition again",
    description:
      "Reads the whole log and checks every checksum, every position, every id, and every condition that an append was made under. Names file, line and byte of what is wrong. Takes no lock; needs about 200 bytes of memory for each event.",
    options: [
      repairOption(
        "keep all that is whole, at its position, and move aside what is damaged or of no use (into aside/ of the log); nothing is ever deleted",
      ),
    ],
    examples: ["holdfast events verify /mnt/shop", "holdfast events verify /mnt/shop --log orders --repair --json"],
    exits: {
      done: "no damage, or none any more; there may be leftovers of crashes, which are harmless",
      ...exits,
      verificationFailed: damaged,
    },
  };
  registerPartVerify(events, logNoun, verb, run);
}

export function registerRebuild(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "rebuild", {
    summary: "make the indexes anew",
    description:
      "Moves the indexes of the log aside (into aside/) and makes them anew. Others may read and append meanwhile. Read models are made by the program that defines them, and so is their rebuilding.",
    examples: ["holdfast events rebuild /mnt/shop/events"],
    exits: { done: "made anew", ...exits, verificationFailed: damaged },
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
