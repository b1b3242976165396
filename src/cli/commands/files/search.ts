// The commands `holdfast files search` and `reindex`: what is found in a tree, and its index built anew.
import { Argument, InvalidArgumentError, Option, type Command } from "commander";
import { printable } from "../../output.ts";
import { Progress } from "../../progress.ts";
import type { Run } from "../../run.ts";
import { tellNothing } from "../handoff/box.ts";
import { exits, inTree, nothingThere, settleForAWhile, treeVerb } from "./tree.ts";

/** So long a search works on what has changed and is not indexed yet. */
const settleMs = 2_000;
const limitMax = 10_000;

interface SearchFlags {
  readonly under?: string;
  readonly limit?: number;
}

export function registerSearch(files: Command, run: Run): void {
  const command = treeVerb(files, "search", {
    summary: "find files by their text",
    description:
      "Prints the files that have all words of TEXT, the best first; where there are none, those with any of them. Words between quotes are a phrase. Every file that is printed is there, with that content. Works on what has changed for up to 2 seconds before.",
    tree: "needs",
    examples: [
      "holdfast files search /mnt/team 'wolf tracks'",
      "holdfast files search /mnt/team '\"brown bear\"' --under notes --json | jq -r .hits[].path",
    ],
    exits: { done: "found", ...exits, nothingToDo: `nothing was found; ${nothingThere}` },
  })
    .addArgument(new Argument("<TEXT>", "the words to look for"))
    .addOption(new Option("--under <path>", "only in this directory"))
    .addOption(new Option("--limit <count>", "at most so many (default: 20)").argParser(parseLimit));
  command.action(async (directory: string, text: string, { under, limit }: SearchFlags) => {
    await inTree(directory, { tree: "needs", works: true }, run, async (tree) => {
      const isSettled = await settleForAWhile(tree, run, settleMs, under);
      if (!isSettled) run.output.note("holdfast: some changes are not indexed yet, and may be missing here");
      const hits = await tree.search(text, { under, limit, signal: run.signal });
      if (hits.length === 0) return tellNothing(run, "NOTHING_FOUND", `nothing in ${tree.root} has these words`);
      run.output.result({ root: tree.root, hits }, () => hits.map(lineOf).join("\n"));
    });
  });
}

export function registerReindex(files: Command, run: Run): void {
  const command = treeVerb(files, "reindex", {
    summary: "build the index anew",
    description:
      "Extracts the text of every file anew, and shows how far it is. Searches go on meanwhile. It can be interrupted at any moment. Where programs open the tree with functions of their own (`extract`, `embed`), which this command has not, it refuses: what it would make is less. With --forget-functions those are not used any more.",
    tree: "needs",
    examples: ["holdfast files reindex /mnt/team"],
    exits: { done: "all files are indexed", ...exits, nothingToDo: nothingThere },
  }).addOption(new Option("--forget-functions", "index without the functions that programs were opened with before"));
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
