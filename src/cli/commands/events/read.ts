// The commands `holdfast events read`, `tail` and `head`: the events of a log, new events, and the
// last position.
import { InvalidArgumentError, Option, type Command } from "commander";
import { openEvents, salvageEvents, type Query, type ReadOptions, type SequencedEvent } from "../../../events/index.ts";
import { isHoldfastError } from "../../../index.ts";
import type { Run } from "../../run.ts";
import { watchReader } from "../../stream-errors.ts";
import { LineWriter } from "./lines.ts";
import {
  collect,
  damaged,
  missing,
  parseCount,
  parseMoment,
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
  readonly since?: Date;
  readonly until?: Date;
}

interface TailFlags extends QueryFlags {
  readonly after: number | "head";
}

const queryOptions = (): Option[] => [
  new Option("--type <type>", "only events of this type; repeat for any of several").argParser(collect),
  new Option("--tag <tag>", "only events with this tag; repeat for all of several").argParser(collect),
  new Option("--query <query>", 'only events that match {"types":[…],"tags":[…]}, or any of a list of these').argParser(
    parseQuery,
  ),
];

const exits = { failed, wrongUsage, missing, verificationFailed: damaged };

export function registerRead(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "read", {
    summary: "print events",
    description: "Prints the events of a log as NDJSON, oldest first, up to the current head. Takes no lock.",
    options: [
      ...queryOptions(),
      new Option("--after <position>", "start after this position").argParser(parseCount),
      upToOption("stop at this position; works on a log that is damaged beyond it"),
      new Option("--limit <n>", "print at most this many").argParser(parseCount),
      new Option("--backwards", "newest first"),
      new Option(
        "--since <time>",
        "only events recorded at this time or later: 2026-11-18T08:00:00Z, or 2h for the last two hours",
      ).argParser(parseMoment),
      new Option("--until <time>", "only events recorded before this time").argParser(parseMoment),
    ],
    examples: [
      "holdfast events read /mnt/shop/events --type Sold --tag sku:1",
      "holdfast events read /mnt/shop/events --backwards --limit 10 | jq .data",
      "holdfast events read /mnt/shop/events --since 2h --until 30m",
    ],
    exits: { done: "all printed, even if nothing matches, or the reader has closed the pipe", ...exits },
  });
  command.action(async (directory: string, flags: ReadFlags) => {
    const query = queryOf(flags, command);
    const path = await findPartDirectory(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    const { after, upTo, limit, backwards, since, until } = flags;
    const options = { after, upTo, limit, backwards, since, until, signal: run.signal };
    await print(readAnyway(path, query, options), run);
  });
}

export function registerTail(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "tail", {
    summary: "print new events as they are appended",
    description: "Prints new events as NDJSON until it is stopped (Ctrl-C, SIGTERM) or its reader closes the pipe.",
    options: [
      ...queryOptions(),
      new Option("--after <position>", "start after this position; head: only new events")
        .argParser((text) => (text === "head" ? text : parsePosition(text)))
        .default("head"),
    ],
    examples: [
      "holdfast events tail /mnt/shop/events --type Sold",
      "holdfast events tail /mnt/shop/events --after 0 | jq .type",
    ],
    exits: { done: "stopped, or the reader has closed the pipe", ...exits },
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
    description: "Prints the position of the last event, or 0 if there is none.",
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
 * Checks a log that is too damaged to open, if the caller passes the position up to which it must
 * be intact.
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
    if (upTo === undefined || !isHoldfastError(error, "CORRUPT")) throw error;
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
