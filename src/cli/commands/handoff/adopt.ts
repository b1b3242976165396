// The command `holdfast handoff adopt`: turns files of programs that do not know Holdfast into
// tickets.
import { Option, type Command } from "commander";
import { checkFolder, type AdoptRule, type Problem, type Handoff } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { printable } from "../../output.ts";
import { failed, noCreateOption, partDirectoryOf, partVerb, wrongUsage } from "../../part-verb.ts";
import { mustBeFolder } from "../location.ts";
import type { Run } from "../../run.ts";
import { collect, parseJson } from "../events/log.ts";
import { boxNoun, damaged, withHandoff, type BoxFlags } from "./box.ts";
import { parseShortText } from "./input.ts";

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
    summary: "turn files that other programs drop into a folder into tickets",
    description: "Turns every complete file in FOLDER into a ticket and removes it there; prints how many.",
    options: [
      new Option("--done <name>", "a file is complete if this file exists: {name}.done, {base}.ok"),
      new Option("--manifest <name>", "a file is complete if a manifest names it: SHA256SUMS, {name}.json"),
      new Option("--renamed", "a file is complete if it has its name: the producer renames it"),
      new Option("--ignore <glob>", "with --renamed: names of files still being written; may be repeated").argParser(
        collect,
      ),
      new Option(
        "--guess-by-quiet-size <duration>",
        "a guess: a file is complete if its size has not changed for this long",
      ).argParser(parseDuration),
      new Option("--include <glob>", "only files with these names; may be repeated").argParser(collect),
      new Option("--key-by-content", "hand over files with the same name and bytes only once"),
      new Option("--group <group>", "work on these tickets in order, one at a time").argParser(parseShortText),
      new Option("--meta <json>", "further information for the consumer").argParser(parseJson),
      new Option("--watch", "continue until stopped"),
      new Option("--every <duration>", "with --watch: check at least this often (default: 1s)").argParser(
        parseDuration,
      ),
      noCreateOption("box"),
    ],
    examples: [
      "holdfast handoff adopt /mnt/shop/invoices /mnt/erp/out --done '{name}.done' --include '*.csv'",
      "holdfast handoff adopt /mnt/shop/invoices /mnt/erp/out --renamed --ignore '*.tmp' --watch",
    ],
    exits: {
      done: "all complete files are now tickets, or there were none; --watch: stopped",
      failed,
      wrongUsage,
      verificationFailed: damaged,
      missing: "FOLDER is missing; with --no-create: there is no box in DIR",
      tryAgain: "the box is full, or an answer was lost: try again",
    },
  }).argument("<FOLDER>", "the folder that other programs write to");
  command.action(async (directory: string, folder: string, flags: AdoptFlags) => {
    mustBeFolder(directory, "handoff adopt");
    const rule = ruleOf(flags, command);
    // Checked before a box is created in vain.
    await checkFolder(folder);
    const path = await partDirectoryOf(boxNoun, directory, flags, command, run);
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

async function adopt(box: Handoff, folder: string, rule: AdoptRule, flags: AdoptFlags, run: Run): Promise<void> {
  const onProblem = ({ what, remedy }: Problem): void =>
    run.output.warning({ name: "NotAdopted", message: printable(`${what} ${remedy}`) });
  if (flags.watch === undefined) {
    const tickets = await box.adopt(folder, rule, { signal: run.signal, onProblem });
    run.output.result({ tickets }, () => `${tickets} ticket(s)`);
    return;
  }
  run.output.note(`holdfast: adopting from ${folder}; Ctrl-C ends it`);
  await box.keepAdopting(folder, rule, { everyMs: flags.every, signal: run.signal, onProblem }).done;
}
