// The commands `holdfast files add`, `write`, `rm` and `mv`: changes of a tree, each in one step.
import { Argument, Option, type Command } from "commander";
import { printable } from "../../output.ts";
import type { Run } from "../../run.ts";
import { inputBody } from "../handoff/input.ts";
import {
  busy,
  exits,
  explainChange,
  inTree,
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
    description: "Writes stdin to PATH in one step, and prints the stamp of the new content.",
    tree: "makes",
    examples: [
      "holdfast files write /mnt/team notes/plan.md < plan.md",
      "holdfast files write /mnt/team notes/plan.md --if-stamp $stamp < plan.md",
    ],
    exits: {
      done: "written, and durable",
      ...exits,
      failed: `${exits.failed}; the file is not as --if-stamp or --if-new wants it`,
      missing: "with --no-create: there is no tree in DIR",
      tryAgain: busy,
    },
  })
    .addArgument(pathArgument())
    .addOption(new Option("--if-stamp <stamp>", "only if the file has this stamp, as `status` and `write` print it"))
    .addOption(new Option("--if-new", "only if the file does not exist").conflicts("ifStamp"))
    .addOption(timeoutOption());
  command.action(async (directory: string, path: string, flags: WriteFlags) => {
    const ifStamp = flags.ifNew === true ? null : flags.ifStamp;
    const options = { ...waitingOf(run, flags), ifStamp };
    const info = await inTree(directory, { ...flags, tree: "makes" }, run, (tree) =>
      explainChange(tree, [path], run, () => tree.write(path, inputBody(run), options)),
    );
    if (info !== undefined)
      run.output.result(info, () => `${info.stamp}  ${printable(info.path)} (${info.size} bytes)`);
  });
}

/** How long a change indexes files afterwards. Other processes index the rest. */
const indexingMs = 60_000;

interface AddFlags extends TreeFlags {
  readonly naming?: "replace" | "fail" | "suffix";
}

export function registerAdd(files: Command, run: Run): void {
  const command = treeVerb(files, "add", {
    summary: "add a prepared directory",
    description: "Moves the directory STAGED to PATH in one step, replacing PATH, and prints the final path.",
    tree: "makes",
    examples: [
      "holdfast files add /mnt/team docs/guide ./guide",
      "holdfast files add /mnt/team inbox/scan ./scan --naming suffix",
    ],
    exits: {
      done: "added, and durable",
      ...exits,
      failed: `${exits.failed}; with --naming fail: PATH exists`,
      missing: "with --no-create: there is no tree in DIR",
      tryAgain: busy,
    },
  })
    .addArgument(pathArgument())
    .addArgument(new Argument("<STAGED>", "the directory to add, from outside the tree"))
    .addOption(
      new Option(
        "--naming <how>",
        "what to do if PATH exists; suffix: use PATH_1, PATH_2, … (default: replace)",
      ).choices(["replace", "fail", "suffix"]),
    )
    .addOption(timeoutOption());
  command.action(async (directory: string, path: string, staged: string, flags: AddFlags) => {
    const options = { ...waitingOf(run, flags), naming: flags.naming };
    const added = await inTree(directory, { ...flags, tree: "makes", works: true }, run, async (tree) => {
      const taken = await explainChange(tree, [path], run, () => tree.add(path, staged, options));
      // Indexes the file at once: it stays locked until it is indexed, and there may be no other
      // process to do that.
      await settleForAWhile(tree, run, indexingMs, taken.path);
      return taken;
    });
    if (added !== undefined) run.output.result(added, () => printable(added.path));
  });
}

export function registerRm(files: Command, run: Run): void {
  const command = treeVerb(files, "rm", {
    summary: "remove a file or a directory",
    description: "Removes PATH, with everything below it, in one step.",
    tree: "needs",
    examples: ["holdfast files rm /mnt/team notes/plan.md", "holdfast files rm /mnt/team docs/guide --timeout 0s"],
    exits: { done: "removed", ...exits, nothingToDo: "there is no such file", tryAgain: busy },
  })
    .addArgument(pathArgument())
    .addOption(timeoutOption());
  command.action(async (directory: string, path: string, flags: TreeFlags) => {
    const removed = await inTree(directory, { tree: "needs" }, run, async (tree) => {
      await explainChange(tree, [path], run, () => tree.remove(path, waitingOf(run, flags)));
      return { directory, removed: path };
    });
    if (removed !== undefined) run.output.result(removed, () => `Removed ${printable(path)}.`);
  });
}

export function registerMv(files: Command, run: Run): void {
  const command = treeVerb(files, "mv", {
    summary: "move a file or a directory",
    description: "Moves PATH to TO. A file may replace a file; a directory needs a TO that does not exist.",
    tree: "needs",
    examples: ["holdfast files mv /mnt/team notes/plan.md archive/plan.md"],
    exits: {
      done: "moved",
      ...exits,
      failed: `${exits.failed}; TO exists`,
      nothingToDo: "there is no such file",
      tryAgain: busy,
    },
  })
    .addArgument(pathArgument("the path to move, relative to the tree"))
    .addArgument(new Argument("<TO>", "the new path, relative to the tree"))
    .addOption(timeoutOption());
  command.action(async (directory: string, path: string, to: string, flags: TreeFlags) => {
    const moved = await inTree(directory, { tree: "needs" }, run, async (tree) => {
      await explainChange(tree, [path, to], run, () => tree.move(path, to, waitingOf(run, flags)));
      return { directory, moved: path, to };
    });
    if (moved !== undefined) run.output.result(moved, () => `Moved ${printable(path)} to ${printable(to)}.`);
  });
}
