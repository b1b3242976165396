// The command `holdfast files work`: a process that indexes the changes of all others.
import { Option, type Command } from "commander";
import { printable } from "../../output.ts";
import type { Run } from "../../run.ts";
import { parsePositive } from "../handoff/work.ts";
import { exits, inTree, treeVerb, type OpenTree } from "./tree.ts";

interface WorkFlags {
  readonly once?: boolean;
  readonly jobs?: number;
}

export function registerWork(files: Command, run: Run): void {
  const command = treeVerb(files, "work", {
    summary: "index the changes of all processes",
    description:
      "Indexes the changes of all processes until it is told to end. Commands that write end too soon to index what they wrote: run one worker beside them. If a program opened the tree with functions of its own (extract, embed), its changes wait for that program.",
    tree: "needs",
    examples: ["holdfast files work /mnt/team", "*/5 * * * * holdfast files work /mnt/team --once --quiet"],
    exits: { done: "stopped; with --once: all changes made before it are indexed", ...exits },
  })
    .addOption(new Option("--once", "end when all changes made before are indexed"))
    .addOption(new Option("-j, --jobs <n>", "index this many files at once (default: 4)").argParser(parsePositive));
  command.action(async (directory: string, { once = false, jobs }: WorkFlags) => {
    await inTree(directory, { tree: "needs" }, run, async (tree) => {
      const working = tree.work({ concurrency: jobs });
      try {
        if (once) await tree.settled({ signal: run.signal });
        else await untilTold(tree, working.done, run);
      } finally {
        await working.stop();
      }
      const { backlog, givenUp } = await tree.stats();
      for (const { path, reason } of givenUp)
        run.output.note(`holdfast: given up: ${printable(path)}: ${printable(reason)}`);
      if (once)
        run.output.result({ directory, backlog, givenUp: givenUp.length }, () =>
          backlog === 0 ? "All changes are indexed." : `${backlog} later change(s) are not indexed yet.`,
        );
    });
  });
}

async function untilTold(tree: OpenTree, done: Promise<void>, { output, signal }: Run): Promise<void> {
  output.note(`holdfast: indexing the changes of ${output.spell(tree.root)}`);
  const told = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([told, done]);
}
