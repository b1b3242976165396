// What the verbs of all parts have in common: which part is meant, and what is said when it is not
// there.
import { Option, type Command } from "commander";
import type { VerifyOptions, VerifyReport } from "../index.ts";
import { exitCodes } from "./exit-codes.ts";
import { endHelp, type HelpEnd } from "./help.ts";
import type { Run } from "./run.ts";

/** A kind of part, as the command line sees it. */
export interface PartNoun {
  /** For people, and the name of the option that picks one in a store: "log". */
  readonly what: string;
  readonly defaultName: string;
  /** What a report counts: "event(s)". */
  readonly unit: string;
  locate(directory: string, name: string | undefined): Promise<FoundPart>;
  /** The directories of all parts of this kind in a store; of a part's own directory, that one. */
  list(directory: string): Promise<readonly string[]>;
  verify(directory: string, options: VerifyOptions): Promise<VerifyReport>;
  /** A few numbers that people want to see. */
  stats(directory: string): Promise<Readonly<Record<string, number>>>;
}

export interface FoundPart {
  readonly directory: string;
  readonly isInStore: boolean;
  readonly isThere: boolean;
}

/** The option of the noun, under its own name. */
export type PartFlags = Readonly<Record<string, unknown>>;

export interface Verb extends HelpEnd {
  readonly summary: string;
  readonly description: string;
  readonly options?: readonly Option[];
}

export const failed = "failed: no permission, disk full";
export const wrongUsage = "wrong usage";

export function partVerb(
  parent: Command,
  { what, defaultName }: PartNoun,
  name: string,
  { summary, description, options = [], ...end }: Verb,
): Command {
  const command = parent
    .command(name)
    .summary(summary)
    .description(description)
    .argument("<DIR>", `the directory of the ${what}, or a store that has it`)
    .addOption(new Option(`--${what} <name>`, `which ${what} of a store`).default(undefined, defaultName));
  for (const option of options) command.addOption(option);
  return endHelp(command, end);
}

/**
 * The directory of the part; undefined, with the exit code for it, where there is none: to open it
 * would make one.
 */
export async function findPartDirectory(
  noun: PartNoun,
  directory: string,
  flags: PartFlags,
  command: Command,
  run: Run,
): Promise<string | undefined> {
  const location = await locate(noun, directory, flags, command);
  if (location.isThere) return location.directory;
  run.exitCode = exitCodes.nothingToDo;
  const { what } = noun;
  const message = `there is no ${what} in ${location.directory}`;
  const name = `No${what[0]?.toUpperCase()}${what.slice(1)}`;
  const details = { name, code: `NO_${what.toUpperCase()}`, action: "fix-caller", message, path: location.directory };
  run.output.failure({ ...details, exitCode: run.exitCode }, message, "");
  return undefined;
}

/**
 * Whether the part is there or not. One that is about to be made is announced: the path may be
 * mistyped.
 */
export async function partDirectoryOf(
  noun: PartNoun,
  directory: string,
  flags: PartFlags,
  command: Command,
  run: Run,
): Promise<string> {
  const location = await locate(noun, directory, flags, command);
  if (!location.isThere) run.output.note(`holdfast: making a new ${noun.what} in ${location.directory}`);
  return location.directory;
}

async function locate(noun: PartNoun, directory: string, flags: PartFlags, command: Command): Promise<FoundPart> {
  const { what } = noun;
  const name = flags[what] as string | undefined;
  const location = await noun.locate(directory, name);
  if (name !== undefined && !location.isInStore)
    command.error(`error: ${directory} is no store, so it has no ${what} named '${name}': leave out --${what}`);
  return location;
}
