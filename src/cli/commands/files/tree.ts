// What all verbs of `holdfast files` have in common: where the tree is, how it is opened, and how long a lock is waited for.
import { Argument, Option, type Command } from "commander";
import { openFiles, type FileOptions } from "../../../files/index.ts";
import { findLockRoot } from "../../../locks/index.ts";
import { isHoldfastError } from "../../../index.ts";
import { parseDuration } from "../../duration.ts";
import { exitCodes } from "../../exit-codes.ts";
import { endHelp, type HelpEnd } from "../../help.ts";
import { failed, noCreateOption, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";

/** An open tree. */
export type OpenTree = Awaited<ReturnType<typeof openFiles>>;

export interface TreeFlags {
  readonly timeout?: number;
  /** False for `--no-create`. */
  readonly create?: boolean;
}

interface TreeVerb extends HelpEnd {
  readonly summary: string;
  readonly description: string;
  /** "makes": the verb makes a tree where there is none. */
  readonly tree: "makes" | "needs";
}

export const nothingThere = "there is no tree of files in DIR: is it the right one, and is the share mounted?";
export const busy = "another process holds a lock in the way: try again";
export const exits: { failed: string; wrongUsage: string } = { failed, wrongUsage };

export function treeVerb(files: Command, name: string, { summary, description, tree, ...end }: TreeVerb): Command {
  const command = files
    .command(name)
    .summary(summary)
    .description(description)
    .argument("<DIR>", "the directory of the files, or a store that has them");
  if (tree === "makes") command.addOption(noCreateOption("tree"));
  return endHelp(command, end);
}

export const pathArgument = (what = "relative to the files"): Argument => new Argument("<PATH>", what);

export const timeoutOption = (): Option =>
  new Option("--timeout <duration>", "wait so long for a lock: 500ms, 30s; 0s: not at all (default: 5s)").argParser(
    parseDuration,
  );

export function waitingOf(run: Run, { timeout }: TreeFlags): FileOptions {
  return { timeoutMs: timeout, signal: run.signal };
}

/** Undefined, with the exit code for it, where there is no tree and none may be made. */
export async function inTree<T>(
  directory: string,
  {
    create,
    tree,
    works = false,
  }: { readonly create?: boolean | undefined; readonly tree: TreeVerb["tree"]; readonly works?: boolean },
  run: Run,
  action: (files: OpenTree) => Promise<T>,
): Promise<T | undefined> {
  const found = await findLockRoot(directory);
  const isThere = found?.path === "" && found.hasLocks;
  if (!isThere && (tree === "needs" || create === false)) return tellMissing(directory, run);
  if (!isThere) run.output.note(`holdfast: making a new tree of files in ${directory}`);
  // Most commands end too soon to work for others.
  await using files = await openFiles(directory, { work: works });
  return await action(files);
}

/** Works on what has changed, at most so long. False when some of it is left for others. */
export async function settleForAWhile(files: OpenTree, run: Run, ms: number, under?: string): Promise<boolean> {
  const over = AbortSignal.timeout(ms);
  try {
    await files.settled({ under, signal: AbortSignal.any([run.signal, over]) });
    return true;
  } catch (error) {
    // What cannot be indexed now is no reason to find nothing.
    if (error !== over.reason && !isHoldfastError(error, "INDEX_FAILED", "RESOURCE_BUSY")) throw error;
    return false;
  }
}

function tellMissing(directory: string, run: Run): undefined {
  run.exitCode = exitCodes.nothingToDo;
  const message = `there is no tree of files in ${directory}. Is it the right directory, and is the share mounted?`;
  const details = { name: "NoTree", code: "NO_TREE", action: "fix-caller", message, path: directory };
  run.output.failure({ ...details, exitCode: run.exitCode }, message, "");
}
