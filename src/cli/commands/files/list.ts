// The command `holdfast files ls`: lists the files and directories of a tree.
import { Argument, Option, type Command } from "commander";
import type { FileInfo } from "../../../files/index.ts";
import { printable } from "../../output.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import { exits, inTree, treeVerb } from "./tree.ts";

const sizeWidth = 12;

export function registerLs(files: Command, run: Run): void {
  const command = treeVerb(files, "ls", {
    summary: "list files and directories",
    description: "Prints a line per file and directory in PATH: time, size and path. Leaves out symbolic links.",
    tree: "needs",
    examples: ["holdfast files ls /mnt/team", "holdfast files ls /mnt/team notes -r --json | jq -r .path"],
    exits: { done: "all printed, even if there is nothing", ...exits },
  })
    .addArgument(new Argument("[PATH]", "a directory, relative to the tree").default("", "the whole tree"))
    .addOption(new Option("-r, --recursive", "also list everything below"));
  command.action(async (directory: string, path: string, { recursive = false }: { readonly recursive?: boolean }) => {
    await inTree(directory, { tree: "needs" }, run, async (tree) => {
      const { output, pipes, signal } = run;
      using lines = new LineWriter(pipes);
      const onProblem = (problem: { readonly path: string; readonly what: string }): void =>
        output.warning({ name: "OddEntry", message: `${printable(problem.path)}: ${printable(problem.what)}` });
      for await (const info of tree.list(path, { deep: recursive, signal, onProblem })) {
        if (lines.isUnread) break;
        if (output.isJson) await lines.writeJson(info);
        else await lines.write(`${lineOf(info)}\n`);
      }
      await lines.end();
    });
  });
}

function lineOf({ path, directory, size, modifiedAt }: FileInfo): string {
  const shown = directory ? `${printable(path)}/` : printable(path);
  return `${modifiedAt.toISOString()}  ${String(size).padStart(sizeWidth)}  ${shown}`;
}
