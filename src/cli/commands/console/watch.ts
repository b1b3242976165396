// The command `holdfast watch`: what happens in a store, line by line, until it is told to end.
import type { Command } from "commander";
import { watchStore, type Activity } from "../../../console/index.ts";
import { openStore } from "../../../index.ts";
import { endHelp } from "../../help.ts";
import { printable, type Page, type Style } from "../../output.ts";
import { mustBeFolder } from "../location.ts";
import { failed, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";

export function registerWatch(command: Command, run: Run): void {
  command
    .description(
      "Prints what happens in a store: processes, locks, events, tickets and files. Only reads. Guide: docs/console.md.",
    )
    .argument("<DIR>", "the store")
    .action(async (directory: string) => {
      mustBeFolder(directory, "watch");
      await using store = await openStore(directory, { readOnly: true });
      run.output.note(`holdfast: watching ${directory}; Ctrl-C ends it`);
      const onProblem = (message: string): void => run.output.warning({ name: "Watch", message: printable(message) });
      for await (const activity of watchStore(store, { signal: run.signal, onProblem }))
        run.output.result(activity, (page) => lineOf(activity, page));
    });
  endHelp(command, {
    examples: ["holdfast watch /mnt/shop", "holdfast watch /mnt/shop --json | jq 'select(.kind == \"ticket\")'"],
    exits: {
      done: "stopped",
      failed,
      wrongUsage,
      missing: "there is no store in DIR: is the share mounted?",
      verificationFailed: "the store is damaged, or its file system cannot be used",
    },
  });
}

const styleOf: Readonly<Record<string, Style>> = {
  failed: "red",
  died: "red",
  "fell silent": "yellow",
  waits: "yellow",
  delayed: "yellow",
  paused: "yellow",
  done: "green",
};

function lineOf({ at, kind, part, what, subject, by, detail }: Activity, { style }: Page): string {
  const time = at.toISOString().slice(11, 19);
  const place = part === "" ? kind : `${kind} in ${printable(part)}`;
  const verb = style(styleOf[what] ?? "bold", what);
  const who = by === undefined ? "" : ` by ${printable(by)}`;
  const more = detail === undefined ? "" : style("dim", `  ${printable(detail)}`);
  return `${style("dim", time)} ${place}: ${printable(subject)} ${verb}${who}${more}`;
}
