// What all verbs of `holdfast events` have in common: which log is meant, and what is said when it is not there.
import { InvalidArgumentError, Option, type Command } from "commander";
import {
  locateEvents,
  openEvents,
  type EventStore,
  type EventStoreOptions,
  type Query,
} from "../../../events/index.ts";
import { exitCodes } from "../../exit-codes.ts";
import { endHelp, type HelpEnd } from "../../help.ts";
import type { Run } from "../../run.ts";

export interface LogFlags {
  readonly log?: string;
}

export interface Verb extends HelpEnd {
  readonly summary: string;
  readonly description: string;
  readonly options?: readonly Option[];
}

export const failed = "failed: no permission, disk full";
export const wrongUsage = "wrong usage";
export const nothingThere = "there is no log in DIR: is it the right one, and is the share mounted?";
export const damaged = "the log is damaged, or its file system cannot be used";

export function verb(events: Command, name: string, { summary, description, options = [], ...end }: Verb): Command {
  const command = events
    .command(name)
    .summary(summary)
    .description(description)
    .argument("<DIR>", "the directory of the log, or a store that has it")
    .addOption(new Option("--log <name>", "which log of a store").default(undefined, "main"));
  for (const option of options) command.addOption(option);
  return endHelp(command, end);
}

/** The directory of the log; undefined, with the exit code for it, where there is none: to open it would make one. */
export async function findLogDirectory(
  directory: string,
  { log }: LogFlags,
  command: Command,
  run: Run,
): Promise<string | undefined> {
  const location = await locate(directory, log, command);
  if (location.isThere) return location.directory;
  run.exitCode = exitCodes.nothingToDo;
  const message = `there is no log in ${location.directory}`;
  const details = { name: "NoLog", code: "NO_LOG", action: "fix-caller", message, path: location.directory };
  run.output.failure({ ...details, exitCode: run.exitCode }, message, "");
  return undefined;
}

/** Whether there is a log or not. One that is about to be made is announced: the path may be mistyped. */
export async function logDirectoryOf(
  directory: string,
  { log }: LogFlags,
  command: Command,
  run: Run,
): Promise<string> {
  const location = await locate(directory, log, command);
  if (!location.isThere) run.output.note(`holdfast: making a new log in ${location.directory}`);
  return location.directory;
}

async function locate(directory: string, log: string | undefined, command: Command): ReturnType<typeof locateEvents> {
  const location = await locateEvents(directory, { log });
  if (log !== undefined && !location.isInStore)
    command.error(`error: ${directory} is no store, so it has no log named '${log}': leave out --log`);
  return location;
}

export async function withEvents<T>(
  directory: string,
  options: EventStoreOptions,
  action: (store: EventStore) => Promise<T>,
): Promise<T> {
  await using store = await openEvents(directory, options);
  return await action(store);
}

export function upToOption(description: string): Option {
  return new Option("--up-to <position>", description).argParser(parseCount);
}

export function parseCount(text: string): number {
  const count = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(count)) return count;
  throw new InvalidArgumentError("Write a whole number from 0.");
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("Write JSON.");
  }
}

/** `"all"`, `{"types":[…],"tags":[…]}`, or a list of such. */
export function parseQuery(text: string): Query {
  const query = text === "all" ? text : parseJson(text);
  const isTexts = (value: unknown): boolean =>
    value === undefined || (Array.isArray(value) && value.every((each) => typeof each === "string"));
  const isItem = (value: unknown): boolean => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    const { types, tags, ...rest } = value as Record<string, unknown>;
    // A word that is misspelt would mean every event.
    return isTexts(types) && isTexts(tags) && Object.keys(rest).length === 0;
  };
  const isQuery = query === "all" || isItem(query) || (Array.isArray(query) && query.length > 0 && query.every(isItem));
  if (isQuery) return query as Query;
  throw new InvalidArgumentError('Write all, {"types":["Sold"],"tags":["sku:1"]}, or a list of such.');
}

export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
