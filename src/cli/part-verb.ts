// What the verbs of all parts have in common: which part is meant, and what is said when it is not
// there.
import { Option, type Command } from "commander";
import type { Cancel, VerifyOptions, VerifyReport } from "../index.ts";
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
  /** What is said while it is verified. Default "verified bytes". */
  readonly progress?: string;
  locate(directory: string, name: string | undefined): Promise<FoundPart>;
  /** The directories of all parts of this kind in a store; of a part's own directory, that one. */
  list(directory: string): Promise<readonly string[]>;
  verify(directory: string, options: VerifyOptions): Promise<VerifyReport>;
  /** A few numbers that people want to see. */
  stats(directory: string): Promise<Readonly<Record<string, number>>>;
  /** Removes what the retention lets go; says what went. Absent: there is never anything to collect. */
  collect?(directory: string, retention: Retention, options: Cancel): Promise<Readonly<Record<string, number>>>;
}

/** How long finished things stay. Undefined: for ever. */
export interface Retention {
  readonly archiveMs?: number | undefined;
  readonly errorMs?: number | undefined;
  readonly ledgerMs?: number | undefined;
}

/** What a verb needs of a noun. */
export type NamedPart = Pick<PartNoun, "what" | "defaultName" | "locate" | "list">;

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
  { what, defaultName }: NamedPart,
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
  noun: NamedPart,
  directory: string,
  flags: PartFlags,
  command: Command,
  run: Run,
): Promise<string | undefined> {
  const location = await locate(noun, directory, flags, command);
  if (location.isThere) return location.directory;
  run.exitCode = exitCodes.nothingToDo;
  const { what } = noun;
  const others = location.isInStore ? await namesIn(noun, directory) : "";
  const message = `there is no ${what} in ${location.directory}${others}`;
  const name = `No${what[0]?.toUpperCase()}${what.slice(1)}`;
  const details = { name, code: `NO_${what.toUpperCase()}`, action: "fix-caller", message, path: location.directory };
  run.output.failure({ ...details, exitCode: run.exitCode }, message, "");
  return undefined;
}

/** Which parts of the kind a store has. */
async function namesIn({ what, list }: NamedPart, store: string): Promise<string> {
  const names = (await list(store)).map((path) => path.slice(path.lastIndexOf("/") + 1));
  return names.length === 0 ? `; the store has no ${what}` : `; the store has ${names.join(", ")}`;
}

/** Of a verb that makes the part if there is none. */
export function noCreateOption(what: string): Option {
  return new Option("--no-create", `make no ${what} where there is none: DIR may be mistyped, or not mounted`);
}

/**
 * Whether the part is there or not. One that is about to be made is announced: the path may be
 * mistyped.
 */
export async function partDirectoryOf(
  noun: NamedPart,
  directory: string,
  flags: PartFlags,
  command: Command,
  run: Run,
): Promise<string> {
  const location = await locate(noun, directory, flags, command);
  if (!location.isThere) run.output.note(`holdfast: making a new ${noun.what} in ${location.directory}`);
  return location.directory;
}

async function locate(noun: NamedPart, directory: string, flags: PartFlags, command: Command): Promise<FoundPart> {
  const { what } = noun;
  const name = flags[what] as string | undefined;
  const location = await noun.locate(directory, name);
  if (name !== undefined && !location.isInStore)
    command.error(
      `error: ${directory} is no store, so it has no ${what} named '${name}'${location.isThere ? `: leave out --${what}` : ". Is the share mounted?"}`,
    );
  return location;
}
