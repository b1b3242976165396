// The command `holdfast handoff adopt`: files of programs that know nothing of Holdfast become tickets.
import { Option, type Command } from "commander";
import { checkFolder, type AdoptRule } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { failed, noCreateOption, partVerb, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { collect, parseJson } from "../events/log.ts";
import { boxDirectoryOf, boxNoun, damaged, withHandoff, type BoxFlags, type OpenBox } from "./box.ts";

interface AdoptFlags extends BoxFlags {
  readonly done?: string;
  readonly manifest?: string;
  readonly renamed?: true;
  readonly ignore?: readonly string[];
  readonly guessByQuietSize?: number;
  readonly include?: readonly string[];
  readonly keyByContent?: true;
  readonly group?: string;
  readonly meta?: unknown;
  readonly watch?: true;
  readonly every?: number;
}

export function registerAdopt(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "adopt", {
    summary: "make tickets of files that other programs put into a folder",
    description:
      "Looks once through FOLDER and makes a ticket of every file that is complete; with --watch until it is stopped. One option says how the producer tells that a file is complete. Any number of adopters may work on one folder: each file makes one ticket. The files are gone from the folder then. Prints how many tickets it made. Makes the box if there is none.",
    options: [
      new Option("--done <name>", "complete when this file is there, as {name}.done or {base}.ok"),
      new Option("--manifest <name>", "complete when a manifest names it: SHA256SUMS, {name}.json"),
      new Option("--renamed", "complete as soon as it has its name: the producer renames"),
      new Option("--ignore <glob>", "with --renamed: names that are still written; may be repeated").argParser(collect),
      new Option("--guess-by-quiet-size <duration>", "a guess: its size did not change for so long").argParser(
        parseDuration,
      ),
      new Option("--include <glob>", "only files of these names; may be repeated").argParser(collect),
      new Option("--key-by-content", "an equal name with equal bytes is handed over once"),
      new Option("--group <group>", "the tickets are worked in order, one at a time"),
      new Option("--meta <json>", "what else a consumer should know").argParser(parseJson),
      new Option("--watch", "go on until stopped"),
      new Option("--every <duration>", "with --watch: look at least so often (default: 1s)").argParser(parseDuration),
      noCreateOption("box"),
    ],
    examples: [
      "holdfast handoff adopt /mnt/shop/invoices /mnt/erp/out --done '{name}.done' --include '*.csv'",
      "holdfast handoff adopt /mnt/shop/invoices /mnt/erp/out --renamed --ignore '*.tmp' --watch",
    ],
    exits: {
      done: "all complete files are tickets now, or there was none; --watch: stopped",
      failed,
      wrongUsage,
      nothingToDo: "with --no-create: there is no box in DIR",
      verificationFailed: damaged,
      tryAgain: "the box is full, or an answer was lost: try again",
    },
  }).argument("<FOLDER>", "the folder that other programs write to");
  command.action(async (directory: string, folder: string, flags: AdoptFlags) => {
    const rule = ruleOf(flags, command);
    // Before a box is made for nothing.
    await checkFolder(folder);
    const path = await boxDirectoryOf(directory, flags, command, run);
    if (path === undefined) return;
    await withHandoff(path, {}, (box) => adopt(box, folder, rule, flags, run));
  });
}

function ruleOf(flags: AdoptFlags, command: Command): AdoptRule {
  const { done, manifest, renamed, ignore, guessByQuietSize: quietMs, include, keyByContent, group, meta } = flags;
  if ([done, manifest, renamed, quietMs].filter((each) => each !== undefined).length !== 1)
    command.error("error: give one of --done, --manifest, --renamed and --guess-by-quiet-size");
  if (ignore !== undefined && renamed === undefined) command.error("error: --ignore goes with --renamed");
  if (flags.every !== undefined && flags.watch === undefined) command.error("error: --every goes with --watch");
  const common = { include, key: keyByContent === undefined ? undefined : ("content" as const), group, meta };
  if (done !== undefined) return { ...common, by: "done-file", done };
  if (manifest !== undefined) return { ...common, by: "manifest", manifest };
  if (quietMs !== undefined) return { ...common, by: "guess-by-quiet-size", quietMs };
  return { ...common, by: "rename", ignore: ignore ?? [] };
}

async function adopt(box: OpenBox, folder: string, rule: AdoptRule, flags: AdoptFlags, run: Run): Promise<void> {
  if (flags.watch === undefined) {
    const tickets = await box.adopt(folder, rule, { signal: run.signal });
    run.output.result({ tickets }, () => `${tickets} ticket(s)`);
    return;
  }
  run.output.note(`holdfast: adopting from ${folder}; Ctrl-C ends it`);
  await box.keepAdopting(folder, rule, { everyMs: flags.every, signal: run.signal }).done;
}
