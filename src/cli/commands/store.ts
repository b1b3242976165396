// The commands `holdfast verify`, `stats` and `collect`: all parts of a store, one after the other.
import { Option, type Command } from "commander";
import { verifyStore, type VerifyReport } from "../../index.ts";
import { parseDuration } from "../duration.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import { failed, wrongUsage, type PartNoun } from "../part-verb.ts";
import type { Run } from "../run.ts";
import { formatReport, repairOption, verifyPart, type ReportNoun } from "../verify-report.ts";
import { logNoun } from "./events/log.ts";
import { boxNoun } from "./handoff/box.ts";
import { objectsNoun } from "./objects/place.ts";

/** Every kind of part. A new one is a line here. */
const nouns: readonly PartNoun[] = [logNoun, boxNoun, objectsNoun];

/** What a store has beside its parts, as a report names it. */
const storeNoun = { what: "store", unit: "record(s)" };

interface FoundPart<Noun = PartNoun> {
  readonly noun: Noun;
  readonly directory: string;
}

const nothingToDo = "there is no part in DIR: is it the right one, and is the share mounted?";

export function registerVerify(command: Command, run: Run): void {
  command
    .description("Verifies every part of a store, and says for each what is wrong with it. Takes no lock.")
    .argument("<DIR>", "the store, or the directory of one part")
    .addOption(repairOption("keep all that is whole, and move aside what is damaged; nothing is ever deleted"))
    .action(async (directory: string, flags: { readonly repair?: boolean }) => {
      const parts: (FoundPart<ReportNoun> & { readonly report: VerifyReport })[] = [];
      // First: without its record, the parts of a store are not found under their names.
      const store = await verifyStore(directory, { ...flags, signal: run.signal });
      if (store !== undefined) parts.push({ noun: storeNoun, directory, report: store });
      if (store?.ok === false) run.exitCode = exitCodes.verificationFailed;
      for (const part of await findParts(directory, run, { mayBeEmpty: store !== undefined }))
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

interface RetentionFlags {
  readonly archive?: number;
  readonly error?: number;
  readonly ledger?: number;
}

const retentionOption = (name: string, what: string): Option =>
  new Option(`--${name} <duration>`, `remove ${what}: 30d, 12h (default: for ever)`).argParser(parseDuration);

export function registerCollect(command: Command, run: Run): void {
  command
    .description(
      "Removes from every part of a store what was finished long ago, and what crashes have left. Without a duration only the latter. Any number of processes may do it at once, while others go on.",
    )
    .argument("<DIR>", "the store, or the directory of one part")
    .addOption(retentionOption("archive", "tickets that were done longer ago than this, with their files"))
    .addOption(retentionOption("error", "dead letters that failed longer ago than this, with their files"))
    .addOption(retentionOption("ledger", "results that are older than this: their keys can be published again"))
    .action(async (directory: string, { archive, error, ledger }: RetentionFlags) => {
      const retention = { archiveMs: archive, errorMs: error, ledgerMs: ledger };
      const parts: { part: string; directory: string; collected: Readonly<Record<string, number>> }[] = [];
      const found = await findParts(directory, run);
      if (found.length === 0) return;
      for (const { noun, directory: path } of found) {
        const collected = await noun.collect?.(path, retention, { signal: run.signal });
        if (collected !== undefined) parts.push({ part: noun.what, directory: path, collected });
      }
      run.output.result({ directory, parts }, () =>
        parts.length === 0
          ? "There is nothing to collect in parts of this kind."
          : parts.map(({ part, directory: path, collected }) => `${path}: ${part}, ${inWords(collected)}`).join("\n"),
      );
    });
  endHelp(command, {
    examples: ["holdfast collect /mnt/shop", "holdfast collect /mnt/shop --archive 30d --error 90d"],
    exits: { done: "collected, also when there was nothing", failed, wrongUsage, nothingToDo },
  });
}

/** With the exit code for it where there is none. */
async function findParts(directory: string, run: Run, { mayBeEmpty = false } = {}): Promise<FoundPart[]> {
  const found: FoundPart[] = [];
  for (const noun of nouns) for (const path of await noun.list(directory)) found.push({ noun, directory: path });
  if (found.length > 0 || mayBeEmpty) return found;
  run.exitCode = exitCodes.nothingToDo;
  const message = `there is no part of a store in ${directory}. Is it the right directory, and is the share mounted?`;
  const details = { name: "NoPart", code: "NO_PART", action: "fix-caller", message, path: directory };
  run.output.failure({ ...details, exitCode: run.exitCode }, message, "");
  return found;
}

function inWords(numbers: Readonly<Record<string, number>>): string {
  return Object.entries(numbers)
    .map(([name, number]) => `${name} ${number}`)
    .join(", ");
}
