// Shared by all verbs of `holdfast files`: where the tree is, how it is opened, and how long to
// wait for a lock.
import { posix } from "node:path";
import { Argument, Option, type Command } from "commander";
import { openFiles, type FileOptions } from "../../../files/index.ts";
import { findLockRoot } from "../../../locks/index.ts";
import { isHoldfastError } from "../../../index.ts";
import { parseDuration } from "../../duration.ts";
import { endHelp, type HelpEnd } from "../../help.ts";
import { isBlocking } from "../../locking/chosen-lock.ts";
import { explain, type Blocking } from "../../locking/explained-wait.ts";
import { printable } from "../../output.ts";
import { failed, noCreateOption, reportMissing, wrongUsage } from "../../part-verb.ts";
import { mustBeFolder } from "../location.ts";
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
  /** "makes": the verb creates a tree if it does not exist. */
  readonly tree: "makes" | "needs";
}

export const missing = "there is no tree of files in DIR: is it the right one, and is the share mounted?";
export const busy = "another process holds a conflicting lock: try again";
export const exits: { failed: string; wrongUsage: string; missing: string } = { failed, wrongUsage, missing };

export function treeVerb(files: Command, name: string, { summary, description, tree, ...end }: TreeVerb): Command {
  const command = files
    .command(name)
    .summary(summary)
    .description(description)
    .argument("<DIR>", "the directory of the tree, or a store that has it");
  if (tree === "makes") command.addOption(noCreateOption("tree"));
  return endHelp(command, end);
}

export const pathArgument = (what = "relative to the tree"): Argument => new Argument("<PATH>", what);

export const timeoutOption = (): Option =>
  new Option(
    "--timeout <duration>",
    "how long to wait for a lock: 500ms, 30s; 0s: do not wait (default: 5s)",
  ).argParser(parseDuration);

export function waitingOf(run: Run, { timeout }: TreeFlags): FileOptions {
  return { timeoutMs: timeout, signal: run.signal };
}

/**
 * Opens the tree. If there is none and none may be created, returns undefined and sets the exit
 * code.
 */
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
  mustBeFolder(directory, "a tree of files");
  const found = await findLockRoot(directory);
  const isThere = found?.path === "" && found.hasLocks;
  if (!isThere && (tree === "needs" || create === false)) {
    const message = `there is no tree of files in ${directory}: is it the right directory, and is the share mounted?`;
    return reportMissing(run, "NO_TREE", message, directory);
  }
  if (!isThere) run.output.note(`holdfast: making a new tree of files in ${directory}`);
  // Indexes for other processes only with `works`: most commands end too soon for that.
  await using files = await openFiles(directory, { work: works });
  return await action(files);
}

/** Changes `paths`. Waits for locks that others hold on them, and explains the wait. */
export async function explainChange<T>(
  tree: OpenTree,
  paths: readonly string[],
  run: Run,
  wait: () => Promise<T>,
): Promise<T> {
  const cleaned = paths.map((path) => posix.join("/", path).slice(1));
  const findBlocking = async (): Promise<Blocking[]> =>
    (await (await tree.locks()).list()).filter((lock) => cleaned.some((path) => isBlocking(lock, path, true)));
  return await explain(run, { what: `a lock on ${paths.map(printable).join(" and ")}`, findBlocking, wait });
}

/** Indexes pending changes for at most `ms`. Returns false if some are left. */
export async function settleForAWhile(files: OpenTree, run: Run, ms: number, under?: string): Promise<boolean> {
  const over = AbortSignal.timeout(ms);
  try {
    await files.settled({ under, signal: AbortSignal.any([run.signal, over]) });
    return true;
  } catch (error) {
    // A file that cannot be indexed now must not stop a search.
    if (error !== over.reason && !isHoldfastError(error, "INDEX_FAILED", "RESOURCE_BUSY")) throw error;
    return false;
  }
}
