// The end of every help page: an example to copy, and the meaning of each exit code.
import type { Command } from "commander";
import { exitCodes } from "./exit-codes.ts";

export interface HelpEnd {
  /** Commands, one per line. */
  readonly examples: readonly string[];
  /** The meaning of each exit code that this command can have. */
  readonly exits: Readonly<Partial<Record<keyof typeof exitCodes, string>>>;
  /** Exit codes that only this command has. */
  readonly ownExits?: Readonly<Record<number, string>>;
}

/** The ends of all commands, for texts that are made from the same source as the help pages. */
const ends = new WeakMap<Command, HelpEnd>();

/** Returns the examples of a command. */
export function examplesOf(command: Command): readonly string[] {
  return ends.get(command)?.examples ?? [];
}

/** Returns the exit codes of a command with their meanings. */
export function exitsOf(command: Command): readonly (readonly [code: string, meaning: string])[] {
  const { exits = {}, ownExits = {} } = ends.get(command) ?? {};
  const common = (Object.keys(exitCodes) as (keyof typeof exitCodes)[]).flatMap((name) => {
    const meaning = exits[name];
    return meaning === undefined ? [] : [[String(exitCodes[name]), meaning] as const];
  });
  return [...common, ...Object.entries(ownExits)];
}

export function endHelp(command: Command, end: HelpEnd): Command {
  ends.set(command, end);
  const { examples } = end;
  const all = exitsOf(command);
  const width = Math.max(2, ...all.map(([code]) => code.length));
  const codes = all.map(([code, meaning]) => `  ${code.padStart(width)}  ${meaning}`);
  const lines = ["", examples.length === 1 ? "Example:" : "Examples:", ...examples.map((line) => `  ${line}`)];
  return command.addHelpText("after", [...lines, "", "Exit codes:", ...codes].join("\n"));
}
