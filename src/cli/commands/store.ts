// The commands `holdfast verify`, `stats` and `collect`: all parts of a store, one after another.
import { Option, type Command } from "commander";
import { openStore, storeMetrics, verifyPathLocks, verifyStore, type VerifyReport } from "../../index.ts";
import { parseDuration } from "../duration.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import { isDatabase, shownLocation } from "./location.ts";
import { asGiven } from "../own-words.ts";
import { explainPart, failed, reportMissing, wrongUsage, type PartNoun } from "../part-verb.ts";
import type { Run } from "../run.ts";
import { formatReport, repairOption, spelled, verifyPart, type ReportNoun } from "../verify-report.ts";
import { logNoun } from "./events/log.ts";
import { treeNoun } from "./files/verify.ts";
import { boxNoun } from "./handoff/box.ts";
import { objectsNoun } from "./objects/place.ts";

/** Every kind of part. */
const nouns: readonly PartNoun[] = [logNoun, boxNoun, objectsNoun, treeNoun];

/** The kinds that a database can have, too. */
const databaseNouns: readonly PartNoun[] = [logNoun, boxNoun, objectsNoun];

/** The name, in a report, of the store itself without its parts. */
const storeNoun = { what: "store", unit: "record(s)" };
/** Path locks in a directory that is not a store. */
const locksNoun = { what: "path locks", unit: "lock table(s)" };

interface FoundPart<Noun = PartNoun> {
  readonly noun: Noun;
  readonly directory: string;
}

const missing = "there is no part in DIR: is it the right one, and is the share mounted?";

export function registerVerify(command: Command, run: Run): void {
  command
    .description("Reads every part of a store and reports damage. Takes no lock.")
    .argument("<DIR>", "the store, or one part: a directory, or postgres://…")
    .addOption(repairOption("keep everything intact, and move damaged records aside; deletes nothing"))
    .action(async (directory: string, flags: { readonly repair?: boolean }) => {
      const parts: (FoundPart<ReportNoun> & { readonly report: VerifyReport })[] = [];
      // The record is checked first: without it, the parts of the store are not found under their
      // names.
      const store = await verifyStore(directory, { ...flags, signal: run.signal });
      if (store !== undefined) parts.push({ noun: storeNoun, directory, report: spelled(store, run) });
      const locks = await verifyPathLocks(directory, { ...flags, signal: run.signal });
      if (locks !== undefined) parts.push({ noun: locksNoun, directory, report: spelled(locks, run) });
      if (store?.ok === false || locks?.ok === false) run.exitCode = exitCodes.verificationFailed;
      for (const part of await findParts(directory, run, { mayBeEmpty: parts.length > 0 }))
        parts.push({ ...part, report: await verifyPart(part.noun, part.directory, flags, run) });
      const results = parts.map(({ noun, directory: path, report }) => ({
        part: noun.what,
        directory: path,
        ...report,
      }));
      if (run.exitCode === exitCodes.missing) return;
      run.output.list(results, (page) =>
        parts.map(({ noun, directory: path, report }) => `${path}\n${formatReport(noun, report, page)}`).join("\n"),
      );
    });
  endHelp(command, {
    examples: ["holdfast verify /mnt/shop", "holdfast verify /mnt/shop --repair --json"],
    exits: {
      done: "no damage, or all repaired; leftovers of crashes are harmless",
      failed,
      wrongUsage,
      missing,
      verificationFailed: "a part is damaged, or its file system cannot be used",
    },
  });
}

export function registerStats(command: Command, run: Run): void {
  command
    .description("Prints statistics of every part of a store. Takes no lock.")
    .argument("<DIR>", "the store, or one part: a directory, or postgres://…")
    .addOption(
      new Option(
        "--prom",
        "print the numbers of a store in the Prometheus text format, for the node exporter's textfile collector",
      ).conflicts("json"),
    )
    .action(async (directory: string, { prom = false }: { readonly prom?: boolean }) => {
      if (prom) {
        // A database needs no such care: reading leaves no trace there.
        await using store = await openStore(directory, isDatabase(directory) ? { create: false } : { readOnly: true });
        return void run.pipes.stdout.write(await storeMetrics(store, { location: shownLocation(directory) }));
      }
      const parts: { part: string; directory: string; stats: Readonly<Record<string, number>> }[] = [];
      for (const { noun, directory: path } of await findParts(directory, run))
        parts.push({ part: noun.what, directory: path, stats: await noun.stats(path) });
      if (run.exitCode === exitCodes.missing) return;
      run.output.list(parts, () =>
        parts.length === 0
          ? `${directory} is a store without parts.`
          : parts.map(({ part, directory: path, stats }) => `${path}: ${part}, ${inWords(stats)}`).join("\n"),
      );
    });
  endHelp(command, {
    examples: [
      "holdfast stats /mnt/shop",
      "holdfast stats /mnt/shop --json",
      "holdfast stats /mnt/shop --prom > /var/lib/node_exporter/shop.prom",
    ],
    exits: { done: "printed", failed, wrongUsage, missing, verificationFailed: "a part is damaged" },
  });
}

interface RetentionFlags {
  readonly archive?: number;
  readonly error?: number;
  readonly ledger?: number;
}

const retentionOption = (name: string, what: string): Option =>
  new Option(`--${name} <duration>`, `remove ${what}: 30d, 12h (default: keep)`).argParser(parseDuration);

export function registerCollect(command: Command, run: Run): void {
  command
    .description("Removes leftovers of crashes and, with a duration, old finished entries. Safe while others work.")
    .argument("<DIR>", "the store, or one part: a directory, or postgres://…")
    .addOption(retentionOption("archive", "tickets that were done longer ago than this, with their files"))
    .addOption(retentionOption("error", "dead letters that failed longer ago than this, with their files"))
    .addOption(retentionOption("ledger", "results older than this; their keys can then be published again"))
    .action(async (directory: string, { archive, error, ledger }: RetentionFlags) => {
      const retention = { archiveMs: archive, errorMs: error, ledgerMs: ledger };
      const parts: { part: string; directory: string; collected: Readonly<Record<string, number>> }[] = [];
      const found = await findParts(directory, run);
      if (run.exitCode === exitCodes.missing) return;
      for (const { noun, directory: path } of found) {
        const collected = await explainPart(noun, path, run, async () =>
          noun.collect?.(path, retention, { signal: run.signal }),
        );
        if (collected !== undefined) parts.push({ part: noun.what, directory: path, collected });
      }
      run.output.list(parts, () =>
        parts.length === 0
          ? "There is nothing to collect in parts of this kind."
          : parts.map(({ part, directory: path, collected }) => `${path}: ${part}, ${inWords(collected)}`).join("\n"),
      );
    });
  endHelp(command, {
    examples: ["holdfast collect /mnt/shop", "holdfast collect /mnt/shop --archive 30d --error 90d"],
    exits: { done: "collected, even if there was nothing", failed, wrongUsage, missing },
  });
}

/** Lists the parts. Sets the exit code if DIR is not a store; a store may be empty. */
async function findParts(directory: string, run: Run, { mayBeEmpty = false } = {}): Promise<FoundPart[]> {
  const found: FoundPart[] = [];
  for (const noun of isDatabase(directory) ? databaseNouns : nouns)
    for (const path of await noun.list(directory)) found.push({ noun, directory: asGiven(directory, path) });
  if (found.length > 0 || mayBeEmpty || (await logNoun.locate(directory, undefined)).isInStore) return found;
  const message = `there is no part of a store in ${directory}: is it the right directory, and is the share mounted?`;
  reportMissing(run, "NO_PART", message, directory);
  return found;
}

function inWords(numbers: Readonly<Record<string, number>>): string {
  return Object.entries(numbers)
    .map(([name, number]) => `${name} ${number}`)
    .join(", ");
}
