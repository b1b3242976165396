// The command `holdfast handoff export`: turns tickets into files in a plain folder, done files
// last.
import { Option, type Command } from "commander";
import { checkFolder, type DeadLetter, type ExportRule } from "../../../handoff/index.ts";
import { failed, findPartDirectory, partVerb, wrongUsage } from "../../part-verb.ts";
import { mustBeFolder } from "../location.ts";
import type { Run } from "../../run.ts";
import { boxNoun, damaged, missing, warnOfDeadLetter, withHandoff, type BoxFlags } from "./box.ts";

interface ExportFlags extends BoxFlags {
  /** False for `--no-done`. */
  readonly done?: string | false;
  readonly content?: ExportRule["content"];
  readonly once?: true;
}

export function registerExport(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "export", {
    summary: "write tickets to a folder of other programs",
    description: "Writes the files of each ticket to FOLDER, then a done file, until stopped. Never replaces a file.",
    options: [
      new Option("--done <name>", "the name of the done file (default: {name}.done)"),
      new Option("--no-done", "write no done files"),
      new Option("--content <what>", "the content of a done file (default: manifest)").choices([
        "manifest",
        "sha256sum",
        "empty",
      ]),
      new Option("--once", "export what is available, print how many tickets, and end: for cron"),
    ],
    examples: [
      "holdfast handoff export /mnt/shop/invoices /mnt/erp/in --done '{base}.ok' --content empty",
      "holdfast handoff export /mnt/shop/invoices /mnt/erp/in --once",
    ],
    exits: {
      done: "stopped; --once: all available tickets are exported, or there were none",
      failed,
      wrongUsage,
      missing: `FOLDER is missing; ${missing}`,
      verificationFailed: damaged,
    },
  }).argument("<FOLDER>", "the folder that other programs read from");
  command.action(async (directory: string, folder: string, { done, content, once, ...flags }: ExportFlags) => {
    mustBeFolder(directory, "handoff export");
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const rule: ExportRule = { done: done === false ? null : done, content };
    await checkFolder(folder);
    const options = { signal: run.signal, onDeadLetter: (ticket: DeadLetter) => warnOfDeadLetter(run, ticket) };
    await withHandoff(path, {}, async (box) => {
      if (once === true) {
        const tickets = await box.export(folder, rule, options);
        return run.output.result({ tickets }, () => `${tickets} ticket(s)`);
      }
      run.output.note(`holdfast: exporting to ${folder}; Ctrl-C ends it`);
      await box.keepExporting(folder, rule, options).done;
    });
  });
}
