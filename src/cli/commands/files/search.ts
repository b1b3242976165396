// The commands `holdfast files search` and `reindex`: search a tree, and rebuild its index.
import { Argument, InvalidArgumentError, Option, type Command } from "commander";
import { printable } from "../../output.ts";
import { Progress } from "../../progress.ts";
import type { Run } from "../../run.ts";
import { reportNothingDone } from "../handoff/box.ts";
import { exits, inTree, settleForAWhile, treeVerb } from "./tree.ts";

/** How long a search indexes pending changes first. */
const settleMs = 2_000;
const limitMax = 10_000;

interface SearchFlags {
  readonly under?: string;
  readonly limit?: number;
}

export function registerSearch(files: Command, run: Run): void {
  const command = treeVerb(files, "search", {
    summary: "find files by their text",
    description: "Prints files with all words of TEXT, best first, or else with any of them. Quotes make a phrase.",
    tree: "needs",
    examples: [
      "holdfast files search /mnt/team 'wolf tracks'",
      "holdfast files search /mnt/team '\"brown bear\"' --under notes --json | jq -r .path",
    ],
    exits: { done: "found", ...exits, nothingToDo: "nothing was found" },
  })
    .addArgument(new Argument("<TEXT>", "the words to find"))
    .addOption(new Option("--under <path>", "only in this directory"))
    .addOption(new Option("--limit <count>", "at most this many (default: 20)").argParser(parseLimit));
  command.action(async (directory: string, text: string, { under, limit }: SearchFlags) => {
    await inTree(directory, { tree: "needs", works: true }, run, async (tree) => {
      const isSettled = await settleForAWhile(tree, run, settleMs, under);
      if (!isSettled) run.output.note("holdfast: some changes are not indexed yet, and may be missing here");
      const hits = await tree.search(text, { under, limit, signal: run.signal });
      if (hits.length === 0) return reportNothingDone(run, "NOTHING_FOUND", `nothing in ${directory} has these words`);
      run.output.list(hits, () => hits.map(lineOf).join("\n"));
    });
  });
}

export function registerReindex(files: Command, run: Run): void {
  const command = treeVerb(files, "reindex", {
    summary: "rebuild the index",
    description: "Extracts the text of every file again. Searches continue; you can interrupt it at any time.",
    tree: "needs",
    examples: ["holdfast files reindex /mnt/team"],
    exits: { done: "all files are indexed", ...exits },
  }).addOption(
    new Option("--forget-functions", "index without the functions that programs used before (extract, embed)"),
  );
  command.action(async (directory: string, { forgetFunctions }: { readonly forgetFunctions?: boolean }) => {
    const indexed = await inTree(directory, { tree: "needs" }, run, async (tree) => {
      using progress = new Progress(run, "indexed files");
      return await tree.rebuildIndex({ signal: run.signal, onProgress: progress.tell, forgetFunctions });
    });
    if (indexed !== undefined) run.output.result({ directory, indexed }, () => `Indexed ${indexed} file(s).`);
  });
}

function lineOf({ path, excerpt = "" }: { readonly path: string; readonly excerpt?: string }): string {
  const text = printable(excerpt.replaceAll(/\s+/g, " ").trim());
  return text === "" ? printable(path) : `${printable(path)}: ${text}`;
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (/^[0-9]+$/.test(text) && limit >= 1 && limit <= limitMax) return limit;
  throw new InvalidArgumentError(`It is a whole number from 1 to ${limitMax}.`);
}
