// The command `holdfast files verify`: checks that every file is indexed as it is, and that every
// record is readable.
import type { Command } from "commander";
import { listTrees, openFiles } from "../../../files/index.ts";
import { failed, wrongUsage, type PartNoun } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { formatReport, repairOption, verifyPart } from "../../verify-report.ts";
import { inTree, missing, treeVerb } from "./tree.ts";

/**
 * The kind of part for `verify`: the tree of a store, or a tree alone. A directory has only one
 * tree, without a name.
 */
export const treeNoun: PartNoun = {
  what: "files",
  defaultName: "",
  unit: "file(s)",
  progress: "verified files and records",
  locate: async (directory) => {
    const found = await listTrees(directory);
    return { directory, isInStore: false, isThere: found.length > 0 };
  },
  list: listTrees,
  verify: async (directory, options) => {
    await using files = await openFiles(directory, { work: false });
    return await files.verify(options);
  },
  stats: async (directory) => {
    await using files = await openFiles(directory, { work: false });
    const { givenUp, ...numbers } = await files.stats();
    return { ...numbers, givenUp: givenUp.length };
  },
};

export function registerVerify(files: Command, run: Run): void {
  const command = treeVerb(files, "verify", {
    summary: "compare every file with the index, and read every record",
    description: "Compares every file with the index, reads every record, and reports damage and unusable entries.",
    tree: "needs",
    examples: ["holdfast files verify /mnt/team", "holdfast files verify /mnt/team --repair --json"],
    exits: {
      done: "no damage, or all repaired",
      failed,
      wrongUsage,
      missing,
      verificationFailed: "a record is damaged",
    },
  }).addOption(repairOption("index differing files again, and set damaged changes aside; deletes nothing"));
  command.action(async (directory: string, flags: { readonly repair?: boolean }) => {
    await inTree(directory, { tree: "needs" }, run, async (tree) => {
      const noun: PartNoun = { ...treeNoun, verify: (_, options) => tree.verify(options) };
      const report = await verifyPart(noun, directory, flags, run);
      run.output.result({ part: treeNoun.what, directory, ...report }, (page) => formatReport(treeNoun, report, page));
    });
  });
}
