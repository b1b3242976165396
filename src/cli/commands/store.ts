// The commands `holdfast verify` and `holdfast stats`: all parts of a store, one after the other.
import type { Command } from "commander";
import type { VerifyReport } from "../../index.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import { failed, wrongUsage, type PartNoun } from "../part-verb.ts";
import type { Run } from "../run.ts";
import { formatReport, repairOption, verifyPart } from "../verify-report.ts";
import { logNoun } from "./events/log.ts";

/** Every kind of part. A new one is a line here. */
const nouns: readonly PartNoun[] = [logNoun];

interface FoundPart {
  readonly noun: PartNoun;
  readonly directory: string;
}

const nothingToDo = "there is no part in DIR: is it the right one, and is the share mounted?";

export function registerVerify(command: Command, run: Run): void {
  command
    .description("Verifies every part of a store, and says for each what is wrong with it. Takes no lock.")
    .argument("<DIR>", "the store, or the directory of one part")
    .addOption(repairOption("keep all that is whole, and move aside what is damaged; nothing is ever deleted"))
    .action(async (directory: string, flags: { readonly repair?: boolean }) => {
      const found = await findParts(directory, run);
      const parts: (FoundPart & { readonly report: VerifyReport })[] = [];
      for (const part of found)
        parts.push({ ...part, report: await verifyPart(part.noun, part.directory, flags, run) });
      const results = parts.map(({ noun, directory: path, report }) => ({
        part: noun.what,
        directory: path,
        ...report,
      }));
      run.output.result({ directory, parts: results }, (page) =>
        parts.map(({ noun, directory: path, report }) => `${path}\n${formatReport(noun, report, page)}`).join("\n"),
      );
    });
  endHelp(command, {
    examples: ["holdfast verify /mnt/shop", "holdfast verify /mnt/shop --repair --json"],
    exits: {
      done: "no damage, or none any more; leftovers of crashes are harmless",
      failed,
      wrongUsage,
      nothingToDo,
      verificationFailed: "a part is damaged, or its file system cannot be used",
    },
  });
}

export function registerStats(command: Command, run: Run): void {
  command
    .description("Prints a few numbers about every part of a store. Takes no lock.")
    .argument("<DIR>", "the store, or the directory of one part")
    .action(async (directory: string) => {
      const parts: { part: string; directory: string; stats: Readonly<Record<string, number>> }[] = [];
      for (const { noun, directory: path } of await findParts(directory, run))
        parts.push({ part: noun.what, directory: path, stats: await noun.stats(path) });
      run.output.result({ directory, parts }, () =>
        parts.map(({ part, directory: path, stats }) => `${path}: ${part}, ${inWords(stats)}`).join("\n"),
      );
    });
  endHelp(command, {
    examples: ["holdfast stats /mnt/shop", "holdfast stats /mnt/shop --json"],
    exits: { done: "printed", failed, wrongUsage, nothingToDo, verificationFailed: "a part is damaged" },
  });
}

/** With the exit code for it where there is none. */
async function findParts(directory: string, run: Run): Promise<FoundPart[]> {
  const found: FoundPart[] = [];
  for (const noun of nouns) for (const path of await noun.list(directory)) found.push({ noun, directory: path });
  if (found.length > 0) return found;
  run.exitCode = exitCodes.nothingToDo;
  run.output.note(`holdfast: there is no part of a store in ${directory}`);
  return found;
}

function inWords(numbers: Readonly<Record<string, number>>): string {
  return Object.entries(numbers)
    .map(([name, number]) => `${name} ${number}`)
    .join(", ");
}
