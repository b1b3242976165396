// Shared by the verbs of all parts: which part is meant, and what to report if it is missing.
import { Option, type Command } from "commander";
import type { Cancel, VerifyOptions, VerifyReport } from "../index.ts";
import { exitCodes } from "./exit-codes.ts";
import { makeNewStore } from "./commands/new-store.ts";
import { asGiven } from "./own-words.ts";
import { endHelp, type HelpEnd } from "./help.ts";
import { explain, type ExplainedWait } from "./locking/explained-wait.ts";
import type { Run } from "./run.ts";

/** A kind of part, as the command line sees it. */
export interface PartNoun {
  /**
   * The word for people, and the name of the option that selects a part of this kind in a store:
   * "log".
   */
  readonly what: string;
  readonly defaultName: string;
  /** The unit that a report counts: "event(s)". */
  readonly unit: string;
  /** Progress text during a verification. Default "verified bytes". */
  readonly progress?: string;
  locate(directory: string, name: string | undefined): Promise<FoundPart>;
  /**
   * Returns the directories of all parts of this kind in a store. For the directory of one part,
   * returns that directory.
   */
  list(directory: string): Promise<readonly string[]>;
  verify(directory: string, options: VerifyOptions): Promise<VerifyReport>;
  /** Names the lock that a repair or a collection waits for while another process holds it. Absent: it waits for nothing. */
  waitsFor?(directory: string): Pick<ExplainedWait<unknown>, "what" | "findBlocking">;
  /** Returns a few numbers for people. */
  stats(directory: string): Promise<Readonly<Record<string, number>>>;
  /** Removes what the retention allows; returns what was removed. Absent: there is never anything to collect. */
  collect?(directory: string, retention: Retention, options: Cancel): Promise<Readonly<Record<string, number>>>;
}

/** How long finished things stay. Undefined: forever. */
export interface Retention {
  readonly archiveMs?: number | undefined;
  readonly errorMs?: number | undefined;
  readonly ledgerMs?: number | undefined;
}

/** Runs work that may have to wait for another process. Explains such a wait. */
export async function explainPart<T>(
  { waitsFor }: Pick<PartNoun, "waitsFor">,
  directory: string,
  run: Run,
  wait: () => Promise<T>,
): Promise<T> {
  return waitsFor === undefined ? await wait() : await explain(run, { ...waitsFor(directory), wait });
}

/** The members of a noun that a verb needs. */
export type NamedPart = Pick<PartNoun, "what" | "defaultName" | "locate" | "list">;

export interface FoundPart {
  readonly directory: string;
  readonly isInStore: boolean;
  readonly isThere: boolean;
}

/** The values of a verb's options. That of the noun is under the noun's own word, such as `log`. */
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
    .argument("<DIR>", `the ${what}, or a store that has it: a directory, or postgres://…`)
    .addOption(new Option(`--${what} <name>`, `which ${what} of a store`).default(undefined, defaultName));
  for (const option of options) command.addOption(option);
  return endHelp(command, end);
}

/**
 * Returns the directory of the part. If there is none, returns undefined and sets the exit code:
 * opening it would create one.
 */
export async function findPartDirectory(
  noun: NamedPart,
  directory: string,
  flags: PartFlags,
  command: Command,
  run: Run,
): Promise<string | undefined> {
  const location = await locate(noun, directory, flags, command);
  const path = asGiven(directory, location.directory);
  if (location.isThere) return path;
  const { what } = noun;
  const others = location.isInStore ? await namesIn(noun, directory) : ": is it the right directory, and is the share mounted?"; // prettier-ignore
  return reportMissing(run, `NO_${what.toUpperCase()}`, `there is no ${what} in ${path}${others}`, path);
}

/**
 * Reports that the named location is missing, and sets the exit code. All commands use it, so they
 * agree.
 */
export function reportMissing(run: Run, code: string, message: string, path: string): undefined {
  run.exitCode = exitCodes.missing;
  const details = { name: "Missing", code, action: "fix-caller", message, path, exitCode: run.exitCode };
  run.output.failure(details, message, "");
}

/** Lists the parts of this kind in a store. */
async function namesIn({ what, list }: NamedPart, store: string): Promise<string> {
  const names = (await list(store)).map((path) => path.slice(path.lastIndexOf("/") + 1));
  return names.length === 0 ? `; the store has no ${what}` : `; the store has ${names.join(", ")}`;
}

/** Adds the options of a verb that creates the part if there is none. */
export function noCreateOption(what: string): Option {
  return new Option("--no-create", `do not create a missing ${what}: DIR may be mistyped or not mounted`);
}

/**
 * Returns the directory of the part, for a verb that creates it. Prints a note if the part is about
 * to be created, because the path may be mistyped. If the part is missing and `--no-create` is
 * given, returns undefined and sets the exit code.
 */
export async function partDirectoryOf(
  noun: NamedPart,
  directory: string,
  flags: PartFlags,
  command: Command,
  run: Run,
): Promise<string | undefined> {
  if (flags["create"] === false) return await findPartDirectory(noun, directory, flags, command, run);
  const name = flags[noun.what] as string | undefined;
  const before = await noun.locate(directory, name);
  // Only a part in a store has a name.
  if (name !== undefined && !before.isInStore && !before.isThere) await makeNewStore(directory, run);
  const location = await locate(noun, directory, flags, command);
  const path = asGiven(directory, location.directory);
  if (!location.isThere) run.output.note(`holdfast: making a new ${noun.what} in ${path}`);
  return path;
}

async function locate(noun: NamedPart, directory: string, flags: PartFlags, command: Command): Promise<FoundPart> {
  const { what } = noun;
  const name = flags[what] as string | undefined;
  const location = await noun.locate(directory, name);
  if (name !== undefined && !location.isInStore && location.isThere)
    command.error(`error: ${directory} is not a store, so it has no ${what} named '${name}': leave out --${what}`);
  return location;
}
