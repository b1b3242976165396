// The command `holdfast handoff export`: tickets become files in a plain folder, done files last.
import { Option, type Command } from "commander";
import { checkFolder, type DeadLetter, type ExportRule } from "../../../handoff/index.ts";
import { failed, findPartDirectory, partVerb, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { boxNoun, damaged, nothingThere, warnOfDeadLetter, withHandoff, type BoxFlags } from "./box.ts";

interface ExportFlags extends BoxFlags {
  /** False for `--no-done`. */
  readonly done?: string | false;
  readonly content?: ExportRule["content"];
  readonly once?: true;
}

export function registerExport(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "export", {
    summary: "hand tickets to a folder of other programs",
    description:
      "Puts the files of every ticket into FOLDER, and a done file behind them, until it is stopped; with --once only of what can be taken now, and prints how many tickets those were. A file that is still there is never replaced: the next ticket with that name waits until its receiver has taken it. After a crash a ticket may be handed over twice, and never not at all.",
    options: [
      new Option("--done <name>", "the name of the done file (default: {name}.done)"),
      new Option("--no-done", "without done files"),
      new Option("--content <what>", "what a done file says (default: manifest)").choices([
        "manifest",
        "sha256sum",
        "empty",
      ]),
      new Option("--once", "end when there is nothing more to take, for cron"),
    ],
    examples: [
      "holdfast handoff export /mnt/shop/invoices /mnt/erp/in --done '{base}.ok' --content empty",
      "holdfast handoff export /mnt/shop/invoices /mnt/erp/in --once",
    ],
    exits: {
      done: "stopped; --once: what could be taken is in the folder, or there was nothing",
      failed,
      wrongUsage,
      nothingToDo: nothingThere,
      verificationFailed: damaged,
    },
  }).argument("<FOLDER>", "the folder that other programs read from");
  command.action(async (directory: string, folder: string, { done, content, once, ...flags }: ExportFlags) => {
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
