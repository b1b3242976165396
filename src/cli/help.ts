// The end of every help page: an example that can be copied, and what each exit code means.
import type { Command } from "commander";
import { exitCodes } from "./exit-codes.ts";

export interface HelpEnd {
  /** Commands, each on a line of its own. */
  readonly examples: readonly string[];
  /** What the codes mean for this command, in its own words; only those that it can end with. */
  readonly exits: Readonly<Partial<Record<keyof typeof exitCodes, string>>>;
  /** Codes that no other command ends with. */
  readonly ownExits?: Readonly<Record<number, string>>;
}

export function endHelp(command: Command, { examples, exits, ownExits = {} }: HelpEnd): Command {
  const common = (Object.keys(exitCodes) as (keyof typeof exitCodes)[]).flatMap((name) => {
    const meaning = exits[name];
    return meaning === undefined ? [] : [[String(exitCodes[name]), meaning] as const];
  });
  const all = [...common, ...Object.entries(ownExits)];
  const width = Math.max(2, ...all.map(([code]) => code.length));
  const codes = all.map(([code, meaning]) => `  ${code.padStart(width)}  ${meaning}`);
  const lines = ["", examples.length === 1 ? "Example:" : "Examples:", ...examples.map((line) => `  ${line}`)];
  return command.addHelpText("after", [...lines, "", "Exit codes:", ...codes].join("\n"));
}
