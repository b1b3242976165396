// The commands `holdfast events read`, `tail` and `head`: what is in a log, what comes, and how far
// it goes.
import { InvalidArgumentError, Option, type Command } from "commander";
import { openEvents, salvageEvents, type Query, type ReadOptions, type SequencedEvent } from "../../../events/index.ts";
import { HoldfastError } from "../../../index.ts";
import type { Run } from "../../run.ts";
import { watchReader } from "../../stream-errors.ts";
import { LineWriter } from "./lines.ts";
import {
  collect,
  damaged,
  nothingThere,
  parseCount,
  parseQuery,
  upToOption,
  withEvents,
  type LogFlags,
  logNoun,
} from "./log.ts";
import { failed, findPartDirectory, partVerb, wrongUsage } from "../../part-verb.ts";

interface QueryFlags extends LogFlags {
  readonly type?: readonly string[];
  readonly tag?: readonly string[];
  readonly query?: Query;
}

interface ReadFlags extends QueryFlags {
  readonly after?: number;
  readonly upTo?: number;
  readonly limit?: number;
  readonly backwards?: boolean;
}

interface TailFlags extends QueryFlags {
  readonly after: number | "head";
}

const queryOptions = (): Option[] => [
  new Option("--type <type>", "only events of this type; may be repeated: any of them").argParser(collect),
  new Option("--tag <tag>", "only events with this tag; may be repeated: all of them").argParser(collect),
  new Option("--query <query>", 'only what matches {"types":[…],"tags":[…]}, or one of a list of such').argParser(
    parseQuery,
  ),
];

const exits = { failed, wrongUsage, nothingToDo: nothingThere, verificationFailed: damaged };

export function registerRead(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "read", {
    summary: "print events",
    description:
      "Prints the events of a log as NDJSON, oldest first, up to the head at the beginning. Takes no lock. Stops quietly when its reader has gone. With --up-to also of a log that is damaged behind that position: `holdfast events verify` tells which one.",
    options: [
      ...queryOptions(),
      new Option("--after <position>", "begin behind this position").argParser(parseCount),
      upToOption("end with this position"),
      new Option("--limit <n>", "at most so many").argParser(parseCount),
      new Option("--backwards", "newest first"),
    ],
    examples: [
      "holdfast events read /mnt/shop/events --type Sold --tag sku:1",
      "holdfast events read /mnt/shop/events --backwards --limit 10 | jq .data",
    ],
    exits: { done: "all printed, also when nothing matches, or when its reader has gone", ...exits },
  });
  command.action(async (directory: string, flags: ReadFlags) => {
    const query = queryOf(flags, command);
    const path = await findPartDirectory(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    const { after, upTo, limit, backwards } = flags;
    await print(readAnyway(path, query, { after, upTo, limit, backwards, signal: run.signal }), run);
  });
}

export function registerTail(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "tail", {
    summary: "print events as they come",
    description:
      "Prints the events that come from now on, or from a position on, as NDJSON, until it is told to end (Ctrl-C, SIGTERM), or until its reader has gone (`| head -2`; without GNU tail on this machine that shows only with the next event).",
    options: [
      ...queryOptions(),
      new Option("--after <position>", "begin behind this position; head: with what comes from now on")
        .argParser((text) => (text === "head" ? text : parsePosition(text)))
        .default("head"),
    ],
    examples: [
      "holdfast events tail /mnt/shop/events --type Sold",
      "holdfast events tail /mnt/shop/events --after 0 | jq .type",
    ],
    exits: { done: "it was told to end, or its reader has gone", ...exits },
  });
  command.action(async (directory: string, flags: TailFlags) => {
    const query = queryOf(flags, command);
    const path = await findPartDirectory(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    await withEvents(path, {}, async (store) => {
      const after = flags.after === "head" ? await store.head() : flags.after;
      run.output.note(`holdfast: following ${path} after position ${after}`);
      using reader = watchReader();
      const signal = AbortSignal.any([run.signal, reader.signal]);
      try {
        await print(store.subscribe(query, { after, signal }), run);
      } catch (error) {
        if (!reader.signal.aborted || run.signal.aborted) throw error;
      }
    });
  });
}

export function registerHead(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "head", {
    summary: "print the position of the last event",
    description: "Prints the position of the last event; 0 when there is none.",
    examples: ["holdfast events head /mnt/shop/events"],
    exits: { done: "printed", ...exits },
  });
  command.action(async (directory: string, flags: LogFlags) => {
    const path = await findPartDirectory(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    const position = await withEvents(path, {}, (store) => store.head());
    run.output.result({ directory: path, position }, () => String(position));
  });
}

/**
 * Goes on without opening the log where that is too damaged for it, if there is a position up to
 * which it is to be whole.
 */
async function* readAnyway(path: string, query: Query, options: ReadOptions): AsyncGenerator<SequencedEvent, void> {
  let last: number | undefined;
  let left = options.limit ?? Infinity;
  try {
    await using store = await openEvents(path);
    for await (const event of store.read(query, options)) {
      yield event;
      last = event.position;
      left--;
    }
  } catch (error) {
    const { upTo, backwards } = options;
    if (upTo === undefined || !(error instanceof HoldfastError && error.code === "CORRUPT")) throw error;
    const rest = last === undefined ? { upTo } : backwards ? { upTo: last - 1 } : { upTo, after: last };
    yield* salvageEvents(path, query, { ...options, ...rest, limit: left });
  }
}

async function print(events: AsyncIterable<SequencedEvent>, { pipes }: Run): Promise<void> {
  using writer = new LineWriter(pipes);
  for await (const event of events) {
    await writer.writeJson(event);
    if (writer.isUnread) return;
  }
  await writer.end();
}

function queryOf({ type: types, tag: tags, query }: QueryFlags, command: Command): Query {
  const hasParts = types !== undefined || tags !== undefined;
  if (query !== undefined && hasParts) command.error("error: give either --query, or --type and --tag");
  return query ?? (hasParts ? { types, tags } : "all");
}

function parsePosition(text: string): number {
  if (/^\d/.test(text)) return parseCount(text);
  throw new InvalidArgumentError("Write a position, or head.");
}
