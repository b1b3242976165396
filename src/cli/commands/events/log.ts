// Shared by all verbs of `holdfast events`: the log as a part of a store, and the parsing of
// queries and times.
import { InvalidArgumentError, Option } from "commander";
import {
  listEventLogs,
  locateEvents,
  openEvents,
  verifyEvents,
  type EventStore,
  type EventStoreOptions,
  type Query,
} from "../../../events/index.ts";
import { parseDuration } from "../../duration.ts";
import { storeLockOf } from "../../locking/explained-wait.ts";
import type { PartFlags, PartNoun } from "../../part-verb.ts";

export interface LogFlags extends PartFlags {
  readonly log?: string;
}

export const missing = "there is no log in DIR: is it the right one, and is the share mounted?";
export const damaged = "the log is damaged, or its file system cannot be used";

export const logNoun: PartNoun = {
  what: "log",
  defaultName: "main",
  unit: "event(s)",
  locate: (directory, log) => locateEvents(directory, { log }),
  list: listEventLogs,
  verify: verifyEvents,
  waitsFor: storeLockOf,
  stats: (directory) => withEvents(directory, {}, async (store) => ({ events: await store.head() })),
};

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

/** Parses a time in ISO 8601 with its zone, a date (midnight UTC), or a duration before now. */
export function parseMoment(text: string): Date {
  if (/^\d+[a-z]+$/.test(text)) return new Date(Date.now() - parseDuration(text));
  const isTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2}))?$/.test(text);
  const time = new Date(isTime ? text : Number.NaN);
  if (!Number.isNaN(time.getTime())) return time;
  throw new InvalidArgumentError("Write a time with its zone, as 2026-11-18T08:00:00Z, a date, or a duration, as 2h.");
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("Write JSON.");
  }
}

/** Parses `"all"`, `{"types":[…],"tags":[…]}`, or a list of such objects. */
export function parseQuery(text: string): Query {
  const query = text === "all" ? text : parseJson(text);
  const isTexts = (value: unknown): boolean =>
    value === undefined || (Array.isArray(value) && value.every((each) => typeof each === "string"));
  const isItem = (value: unknown): boolean => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    const { types, tags, ...rest } = value as Record<string, unknown>;
    // Refuses unknown fields: without the misspelt one, the query would match every event.
    return isTexts(types) && isTexts(tags) && Object.keys(rest).length === 0;
  };
  const isQuery = query === "all" || isItem(query) || (Array.isArray(query) && query.length > 0 && query.every(isItem));
  if (isQuery) return query as Query;
  throw new InvalidArgumentError('Write all, {"types":["Sold"],"tags":["sku:1"]}, or a list of such.');
}

export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
