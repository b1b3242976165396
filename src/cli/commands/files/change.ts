// The commands `holdfast files add`, `write`, `rm` and `mv`: changes of a tree, each in one step.
import { Argument, Option, type Command } from "commander";
import { printable } from "../../output.ts";
import type { Run } from "../../run.ts";
import { inputBody } from "../handoff/input.ts";
import {
  busy,
  exits,
  inTree,
  nothingThere,
  pathArgument,
  settleForAWhile,
  timeoutOption,
  treeVerb,
  waitingOf,
  type TreeFlags,
} from "./tree.ts";

interface WriteFlags extends TreeFlags {
  readonly ifStamp?: string;
  readonly ifNew?: true;
}

export function registerWrite(files: Command, run: Run): void {
  const command = treeVerb(files, "write", {
    summary: "write a file from stdin",
    description:
      "Writes stdin to PATH, with the directories that are missing: a reader sees the old file or the new one. Prints the stamp of the new content. With --if-stamp only if the file is still as it was read: `status` and `write` say its stamp.",
    tree: "makes",
    examples: [
      "holdfast files write /mnt/team notes/plan.md < plan.md",
      "holdfast files write /mnt/team notes/plan.md --if-stamp $stamp < plan.md",
    ],
    exits: {
      done: "written, and durable",
      ...exits,
      failed: `${exits.failed}; the file is not as --if-stamp or --if-new wants it`,
      nothingToDo: "with --no-create: there is no tree in DIR",
      tryAgain: busy,
    },
  })
    .addArgument(pathArgument())
    .addOption(new Option("--if-stamp <stamp>", "only if the file has this stamp"))
    .addOption(new Option("--if-new", "only if there is no such file").conflicts("ifStamp"))
    .addOption(timeoutOption());
  command.action(async (directory: string, path: string, flags: WriteFlags) => {
    const ifStamp = flags.ifNew === true ? null : flags.ifStamp;
    const options = { ...waitingOf(run, flags), ifStamp };
    const info = await inTree(directory, { ...flags, tree: "makes" }, run, (tree) =>
      tree.write(path, inputBody(run), options),
    );
    if (info !== undefined)
      run.output.result(info, () => `${info.stamp}  ${printable(info.path)} (${info.size} bytes)`);
  });
}

/** What is not indexed by then is left for others. */
const indexingMs = 60_000;

interface AddFlags extends TreeFlags {
  readonly naming?: "replace" | "fail" | "suffix";
}

export function registerAdd(files: Command, run: Run): void {
  const command = treeVerb(files, "add", {
    summary: "take a prepared directory in",
    description:
      "Takes the directory STAGED in as PATH, in one step, and removes STAGED. What is at PATH is replaced. Prints where it is: with --naming suffix that may be PATH_1, PATH_2, and so on.",
    tree: "makes",
    examples: [
      "holdfast files add /mnt/team docs/guide ./guide",
      "holdfast files add /mnt/team inbox/scan ./scan --naming suffix",
    ],
    exits: {
      done: "added, and durable",
      ...exits,
      failed: `${exits.failed}; with --naming fail: PATH is there`,
      nothingToDo: "with --no-create: there is no tree in DIR",
      tryAgain: busy,
    },
  })
    .addArgument(pathArgument())
    .addArgument(new Argument("<STAGED>", "the directory to take in, outside of the tree"))
    .addOption(
      new Option("--naming <how>", "what to do when PATH is there (default: replace)").choices([
        "replace",
        "fail",
        "suffix",
      ]),
    )
    .addOption(timeoutOption());
  command.action(async (directory: string, path: string, staged: string, flags: AddFlags) => {
    const options = { ...waitingOf(run, flags), naming: flags.naming };
    const added = await inTree(directory, { ...flags, tree: "makes", works: true }, run, async (tree) => {
      const taken = await tree.add(path, staged, options);
      // It is locked until it is indexed, and there may be no other process that works on it.
      await settleForAWhile(tree, run, indexingMs, taken.path);
      return taken;
    });
    if (added !== undefined) run.output.result(added, () => printable(added.path));
  });
}

export function registerRm(files: Command, run: Run): void {
  const command = treeVerb(files, "rm", {
    summary: "remove a file or a directory",
    description: "Removes PATH with all that is below it, in one step: it is not found any more, and then it is gone.",
    tree: "needs",
    examples: ["holdfast files rm /mnt/team notes/plan.md", "holdfast files rm /mnt/team docs/guide --timeout 0s"],
    exits: { done: "removed", ...exits, nothingToDo: `there is no such file; ${nothingThere}`, tryAgain: busy },
  })
    .addArgument(pathArgument())
    .addOption(timeoutOption());
  command.action(async (directory: string, path: string, flags: TreeFlags) => {
    const removed = await inTree(directory, { tree: "needs" }, run, async (tree) => {
      await tree.remove(path, waitingOf(run, flags));
      return { directory, removed: path };
    });
    if (removed !== undefined) run.output.result(removed, () => `Removed ${printable(path)}.`);
  });
}

export function registerMv(files: Command, run: Run): void {
  const command = treeVerb(files, "mv", {
    summary: "move a file or a directory",
    description:
      "Moves PATH to TO, with the directories that are missing. A file replaces a file; a directory goes only to where nothing is.",
    tree: "needs",
    examples: ["holdfast files mv /mnt/team notes/plan.md archive/plan.md"],
    exits: {
      done: "moved",
      ...exits,
      failed: `${exits.failed}; something is at TO`,
      nothingToDo: `there is no such file; ${nothingThere}`,
      tryAgain: busy,
    },
  })
    .addArgument(pathArgument("what to move, relative to the files"))
    .addArgument(new Argument("<TO>", "where to, relative to the files"))
    .addOption(timeoutOption());
  command.action(async (directory: string, path: string, to: string, flags: TreeFlags) => {
    const moved = await inTree(directory, { tree: "needs" }, run, async (tree) => {
      await tree.move(path, to, waitingOf(run, flags));
      return { directory, moved: path, to };
    });
    if (moved !== undefined) run.output.result(moved, () => `Moved ${printable(path)} to ${printable(to)}.`);
  });
}
