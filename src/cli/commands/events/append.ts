// The command `holdfast events append`: events from the command line or from stdin, one append
// after another.
import { Option, type Command } from "commander";
import type { Appended, AppendOptions, EventStore, LogMode, NewEvent, Query } from "../../../events/index.ts";
import { HoldfastError, isHoldfastError } from "../../../index.ts";
import { parseDuration } from "../../duration.ts";
import { explain, storeLockOf } from "../../locking/explained-wait.ts";
import type { Run } from "../../run.ts";
import { badInput, inInput, inputLines, LineWriter, type LineRange } from "./lines.ts";
import { collect, damaged, parseCount, parseJson, parseQuery, withEvents, type LogFlags, logNoun } from "./log.ts";
import { noCreateOption, partDirectoryOf, partVerb, wrongUsage } from "../../part-verb.ts";

interface AppendFlags extends LogFlags {
  readonly type?: string;
  readonly data?: unknown;
  readonly tag?: readonly string[];
  readonly id?: string;
  readonly metadata?: unknown;
  readonly ifNoneMatch?: Query;
  readonly after?: number;
  readonly batch: number;
  readonly timeout: number;
  readonly mode?: LogMode;
}

export const modeOption = (): Option =>
  new Option("--mode <mode>", "the mode of a new log (default: chosen by file system)").choices(["local", "share"]);

export const timeoutOption = (): Option =>
  new Option("--timeout <duration>", "how long to wait for other writers: 30s, 500ms, 2m")
    .argParser(parseDuration)
    .default(5_000, "5s");

export function registerAppend(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "append", {
    summary: "append events",
    description:
      "Appends one event from the options, or NDJSON from stdin; prints {first, last, repeated} once durable.",
    options: [
      new Option("--type <type>", "append one event of this type, instead of reading stdin"),
      new Option("--data <json>", "the data of the event (default: null)").argParser(parseJson),
      new Option("--tag <tag>", "a tag of the event; may be repeated").argParser(collect),
      new Option("--metadata <json>", "the metadata of the event").argParser(parseJson),
      new Option("--id <id>", "the id of the event (default: a new one)"),
      new Option("--if-none-match <query>", 'only if no event matches: {"types":[…],"tags":[…]}, or all').argParser(
        parseQuery,
      ),
      new Option("--after <position>", "with --if-none-match: ignore events up to this position").argParser(parseCount),
      new Option("--batch <n>", "append this many lines of stdin at once: faster, and all or none of them")
        .argParser(parseCount)
        .default(1),
      timeoutOption(),
      modeOption(),
      noCreateOption("log"),
    ],
    examples: [
      "holdfast events append /mnt/shop/events --type Sold --data '{\"sku\":1}' --tag sku:1",
      'holdfast events append /mnt/shop/events --type Opened --tag till:3 --if-none-match \'{"types":["Opened"],"tags":["till:3"]}\'',
      "jq -c '.[]' sales.json | holdfast events append /mnt/shop/events --batch 100",
    ],
    exits: {
      done: "all appended, now or before",
      failed: "the condition failed and nothing was appended; or no permission, disk full",
      wrongUsage,
      verificationFailed: damaged,
      missing: "with --no-create: there is no log in DIR",
      failedForGood: "an event is not valid, or its id belongs to another event",
      tryAgain: "timed out behind other writers, or the answer was lost: try again with the same ids",
    },
  });
  command.action(async (directory: string, flags: AppendFlags) => {
    checkFlags(flags, command);
    const path = await partDirectoryOf(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    const { mode, timeout: lockTimeoutMs } = flags;
    await withEvents(path, { mode, lockTimeoutMs }, (store) => appendAll(store, path, flags, run));
  });
}

function checkFlags({ type, data, tag, id, metadata, after, ifNoneMatch, batch }: AppendFlags, command: Command): void {
  if (type === undefined && (data !== undefined || tag !== undefined || id !== undefined || metadata !== undefined))
    command.error("error: --data, --tag, --metadata and --id describe an event: give it a --type");
  if (after !== undefined && ifNoneMatch === undefined)
    command.error("error: --after is part of a condition: give --if-none-match too");
  if (batch < 1 || batch > 10_000) command.error("error: --batch must be from 1 to 10000");
}

async function appendAll(store: EventStore, path: string, flags: AppendFlags, run: Run): Promise<void> {
  const explained: typeof append = (...args) => explain(run, { ...storeLockOf(path), wait: () => append(...args) });
  using writer = new LineWriter(run.pipes);
  const { type, data = null, tag: tags, id, metadata, ifNoneMatch: failIfEventsMatch, after } = flags;
  const condition = failIfEventsMatch === undefined ? undefined : { failIfEventsMatch, after };
  const options: AppendOptions = { condition, signal: run.signal };
  if (type !== undefined) {
    const event = { type, data, tags, id, metadata } as NewEvent;
    await writer.writeJson(await explained(store, event, options));
  } else
    for await (const { lines, events } of batches(run, flags.batch))
      await writer.writeJson(await explained(store, events, options, lines));
  await writer.end();
}

interface Batch {
  readonly lines: LineRange;
  readonly events: NewEvent | readonly NewEvent[];
}

/** A JSON list of events is always an append of its own. */
async function* batches(run: Run, size: number): AsyncGenerator<Batch, void> {
  let gathered: NewEvent[] = [];
  let lines: LineRange = { first: 0, last: 0 };
  for await (const { number, text } of inputLines(run)) {
    run.signal.throwIfAborted();
    const value = parseLine(number, text);
    if (gathered.length > 0 && (Array.isArray(value) || gathered.length >= size)) {
      yield { lines, events: gathered };
      gathered = [];
    }
    if (Array.isArray(value)) yield { lines: { first: number, last: number }, events: value as readonly NewEvent[] };
    else {
      lines = { first: gathered.length === 0 ? number : lines.first, last: number };
      gathered.push(value as NewEvent);
      // Yields what it has at once: a person at a terminal, or a program that waits for the answer,
      // sends no more input until it arrives.
      if (size === 1) {
        yield { lines, events: gathered };
        gathered = [];
      }
    }
  }
  if (gathered.length > 0) yield { lines, events: gathered };
}

/**
 * Ignores `position` and `time`, which belong to the log that the event came from: thus the output
 * of `read` can be appended.
 */
const fields = new Set(["type", "data", "tags", "metadata", "id", "position", "time"]);

function parseLine(number: number, text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw badInput(number, "it is not JSON", error);
  }
  for (const event of Array.isArray(value) ? (value as unknown[]) : [value])
    if (typeof event === "object" && event !== null)
      for (const field of Object.keys(event))
        // Refuses unknown fields: a misspelt one would be lost.
        if (!fields.has(field)) throw badInput(number, `an event has no field ${JSON.stringify(field)}`);
  return value;
}

/** `lines`: the input lines of the events, so that the error can name the one that failed. */
async function append(
  store: EventStore,
  events: NewEvent | readonly NewEvent[],
  options: AppendOptions,
  lines?: LineRange,
): Promise<Appended> {
  try {
    return await store.append(events, options);
  } catch (error) {
    if (isHoldfastError(error, "EVENT_INVALID", "EVENT_ID_REUSED", "TOO_LARGE", "APPEND_CONDITION_FAILED")) {
      const { name: _name, code: _code, action: _action, message, ...facts } = error.toJSON();
      throw new HoldfastError(error.code, inInput(lines, String(message)), facts, error);
    }
    // Checks the types of the input, as a compiler does in a program.
    if (!isHoldfastError(error) && (error instanceof TypeError || error instanceof RangeError))
      throw new HoldfastError("EVENT_INVALID", inInput(lines, error.message), { type: "", issues: [error.message] }, error); // prettier-ignore
    throw error;
  }
}
