// The commands `holdfast files cat` and `status`: the content of a file, and the status of a file
// or of the whole tree.
import { Argument, type Command } from "commander";
import type { FileInfo, TreeStats } from "../../../files/index.ts";
import type { HeldLock } from "../../../locks/index.ts";
import { formatHeldLocks, isOfUser } from "../../locking/held-locks.ts";
import { printable, type Page } from "../../output.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import { reportNothingDone } from "../handoff/box.ts";
import { exits, inTree, pathArgument, treeVerb, type OpenTree } from "./tree.ts";

export function registerCat(files: Command, run: Run): void {
  const command = treeVerb(files, "cat", {
    summary: "print a file",
    description: "Prints the bytes of PATH, as they are before or after any change. Takes no lock.",
    tree: "needs",
    examples: ["holdfast files cat /mnt/team notes/plan.md"],
    exits: { done: "printed", ...exits, nothingToDo: "there is no such file" },
  }).addArgument(pathArgument());
  command.action(async (directory: string, path: string) => {
    const bytes = await inTree(directory, { tree: "needs" }, run, (tree) => tree.read(path, { signal: run.signal }));
    if (bytes === undefined) return;
    using writer = new LineWriter(run.pipes);
    await writer.write(bytes);
    await writer.end();
  });
}

/** The status of one path, or of the tree. */
interface Status {
  readonly root: string;
  readonly path?: string;
  readonly info?: FileInfo;
  readonly stats?: TreeStats;
  readonly locks: readonly HeldLock[];
}

export function registerStatus(files: Command, run: Run): void {
  const command = treeVerb(files, "status", {
    summary: "print the status of a file or of the whole tree",
    description: "Prints size, time, stamp and locks of PATH; without PATH the state of the tree and its index.",
    tree: "needs",
    examples: [
      "holdfast files status /mnt/team",
      "holdfast files status /mnt/team notes/plan.md --json | jq -r .info.stamp",
    ],
    exits: { done: "printed", ...exits, nothingToDo: "there is no such file" },
  }).addArgument(new Argument("[PATH]", "relative to the tree"));
  command.action(async (directory: string, path: string | undefined) => {
    await inTree(directory, { tree: "needs" }, run, async (tree) => {
      const root = run.output.spell(tree.root);
      const status = path === undefined ? await statusOfTree(tree, root, run) : await statusOfPath(tree, root, path);
      if (path !== undefined && status.info === undefined)
        return reportNothingDone(run, "NO_SUCH_FILE", `there is no ${printable(path)} in ${directory}`);
      // The JSON has the numbers of the tree beside its locks, as in earlier releases.
      const { stats, ...rest } = status;
      run.output.result({ ...rest, ...stats }, (page) => describe(status, page));
    });
  });
}

async function statusOfTree(tree: OpenTree, root: string, run: Run): Promise<Status> {
  const stats = await tree.stats({ signal: run.signal });
  return { root, stats, locks: await userLocks(tree) };
}

async function statusOfPath(tree: OpenTree, root: string, path: string): Promise<Status> {
  const info = await tree.stat(path);
  const locks = await userLocks(tree, { under: path });
  return { root, path, ...(info === undefined ? {} : { info }), locks };
}

/** Lists locks without the leases of Holdfast itself, which are in the same table. */
async function userLocks(tree: OpenTree, options: { readonly under?: string } = {}): Promise<HeldLock[]> {
  return (await (await tree.locks()).list(options)).filter(isOfUser);
}

function describe({ root, info, stats, locks }: Status, page: Page): string {
  const held = locks.length === 0 ? "Nothing is locked." : formatHeldLocks(locks, page);
  if (stats !== undefined) return [`${root}: ${describeStats(stats)}`, held].join("\n");
  if (info === undefined) return held;
  const { path, directory, size, modifiedAt, stamp, indexed } = info;
  const facts = directory ? "a directory" : `${size} bytes, stamp ${stamp}, ${indexed ? "indexed" : "not indexed"}`;
  return `${printable(path)}: ${facts}, of ${modifiedAt.toISOString()}\n${held}`;
}

function describeStats({ files, bytes, odd, changes, backlog, givenUp, sessions }: TreeStats): string {
  return [
    `${files} file(s), ${bytes} bytes, ${changes} change(s), ${sessions} session(s)`,
    backlog === 0 ? "All changes are indexed." : `${backlog} change(s) are not indexed yet.`,
    ...givenUp.map(({ path, reason }) => `Given up: ${printable(path)}: ${printable(reason)}`),
    ...(odd === 0 ? [] : [`${odd} entries cannot be used: \`holdfast files verify\` names them.`]),
  ].join("\n");
}
