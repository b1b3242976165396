// The commands `holdfast files cat` and `status`: what a file says, and what is known of it or of the whole tree.
import { Argument, type Command } from "commander";
import type { FileInfo } from "../../../files/index.ts";
import type { HeldLock } from "../../../locks/index.ts";
import { formatHeldLocks } from "../../locking/held-locks.ts";
import { printable, type Page } from "../../output.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import { tellNothing } from "../handoff/box.ts";
import { exits, inTree, nothingThere, pathArgument, treeVerb, type OpenTree } from "./tree.ts";

export function registerCat(files: Command, run: Run): void {
  const command = treeVerb(files, "cat", {
    summary: "print a file",
    description: "Prints the bytes of PATH, as they were before a change or after it. Takes no lock.",
    tree: "needs",
    examples: ["holdfast files cat /mnt/team notes/plan.md"],
    exits: { done: "printed", ...exits, nothingToDo: `there is no such file; ${nothingThere}` },
  }).addArgument(pathArgument());
  command.action(async (directory: string, path: string) => {
    const bytes = await inTree(directory, { tree: "needs" }, run, (tree) => tree.read(path, { signal: run.signal }));
    if (bytes === undefined) return;
    using writer = new LineWriter(run.pipes);
    await writer.write(bytes);
    await writer.end();
  });
}

/** What is known of one path, or of the tree. */
interface Status {
  readonly root: string;
  readonly path?: string;
  readonly info?: FileInfo;
  readonly files?: number;
  readonly bytes?: number;
  readonly locks: readonly HeldLock[];
}

export function registerStatus(files: Command, run: Run): void {
  const command = treeVerb(files, "status", {
    summary: "what is known of a file, or of the whole tree",
    description:
      "With PATH: its size, time and stamp, and who has a lock in its way. Without: how many files the tree has, and all locks in it.",
    tree: "needs",
    examples: [
      "holdfast files status /mnt/team",
      "holdfast files status /mnt/team notes/plan.md --json | jq -r .info.stamp",
    ],
    exits: { done: "printed", ...exits, nothingToDo: `there is no such file; ${nothingThere}` },
  }).addArgument(new Argument("[PATH]", "relative to the files"));
  command.action(async (directory: string, path: string | undefined) => {
    await inTree(directory, { tree: "needs" }, run, async (tree) => {
      const status = path === undefined ? await statusOfTree(tree, run) : await statusOfPath(tree, path);
      if (path !== undefined && status.info === undefined)
        return tellNothing(run, "NO_SUCH_FILE", `there is no ${printable(path)} in ${tree.root}`);
      run.output.result(status, (page) => describe(status, page));
    });
  });
}

async function statusOfTree(tree: OpenTree, run: Run): Promise<Status> {
  let [files, bytes] = [0, 0];
  for await (const { directory, size } of tree.list("", { deep: true, signal: run.signal }))
    if (!directory) [files, bytes] = [files + 1, bytes + size];
  return { root: tree.root, files, bytes, locks: await (await tree.locks()).list() };
}

async function statusOfPath(tree: OpenTree, path: string): Promise<Status> {
  const info = await tree.stat(path);
  const locks = await (await tree.locks()).list({ under: path });
  return { root: tree.root, path, ...(info === undefined ? {} : { info }), locks };
}

function describe({ root, info, files, bytes, locks }: Status, page: Page): string {
  const held = locks.length === 0 ? "Nothing is locked." : formatHeldLocks(locks, page);
  if (info === undefined) return `${root}: ${files} file(s), ${bytes} bytes\n${held}`;
  const { path, directory, size, modifiedAt, stamp, indexed } = info;
  const facts = directory ? "a directory" : `${size} bytes, stamp ${stamp}, ${indexed ? "indexed" : "not indexed"}`;
  return `${printable(path)}: ${facts}, of ${modifiedAt.toISOString()}\n${held}`;
}
