// The command `holdfast handoff put`: turns files, or stdin, into one ticket.
import { Option, type Command } from "commander";
import { basename } from "node:path";
import { fileBody, type Files, type PublishOptions } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { failed, noCreateOption, partDirectoryOf, partVerb, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { parseJson } from "../events/log.ts";
import { boxNoun, damaged, withHandoff, type BoxFlags } from "./box.ts";
import { collectCounts, inputBody, parsePriority, parseShortText } from "./input.ts";

interface PutFlags extends BoxFlags {
  readonly name?: string;
  readonly key?: string;
  readonly group?: string;
  readonly priority?: number;
  readonly delay?: number;
  readonly expires?: number;
  readonly records?: Readonly<Record<string, number>>;
  readonly meta?: unknown;
}

export function registerPut(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "put", {
    summary: "publish files as one ticket",
    description: "Publishes files, or stdin, as one ticket, and prints its id once it is durable.",
    options: [
      new Option("--name <name>", "read one file from stdin and give it this name"),
      new Option(
        "--key <key>",
        "publish once under this key; a repeat prints the first id (default: the id of the ticket)",
      ).argParser(parseShortText),
      new Option("--group <group>", "work on the tickets of this group in order, one at a time").argParser(
        parseShortText,
      ),
      new Option("--priority <0-9>", "0 first, 9 last (default: 5)").argParser(parsePriority),
      new Option("--delay <duration>", "deliver no earlier than after this time: 10m, 2h").argParser(parseDuration),
      new Option("--expires <duration>", "deliver no later than after this time").argParser(parseDuration),
      new Option("--records <name=count>", "the number of records in a file; may be repeated").argParser(collectCounts),
      new Option("--meta <json>", "further information for the consumer").argParser(parseJson),
      noCreateOption("box"),
    ],
    examples: [
      "holdfast handoff put /mnt/shop/invoices invoice-7.pdf invoice-7.xml --key invoice-7",
      "pg_dump shop | holdfast handoff put /mnt/shop/dumps --name shop.sql",
    ],
    exits: {
      done: "published, or published before under that key",
      failed,
      wrongUsage,
      nothingToDo: "a file does not exist",
      verificationFailed: damaged,
      missing: "with --no-create: there is no box in DIR",
      tryAgain: "the box is full, or the answer was lost: try again with the same key",
    },
  }).argument("[FILE...]", "the files of the ticket");
  command.action(async (directory: string, paths: readonly string[], flags: PutFlags) => {
    const files = filesOf(paths, flags, command, run);
    // Checked before a box is created in vain.
    for (const each of paths) await mustBeReadable(each);
    const path = await partDirectoryOf(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const { key, group, priority, delay: delayMs, expires: expiresMs, records, meta } = flags;
    const options: PublishOptions = { key, group, priority, delayMs, expiresMs, records, meta, signal: run.signal };
    const published = await withHandoff(path, {}, (box) => box.publish(files, options));
    if (published.duplicate) run.output.note("holdfast: it was published before under this key");
    run.output.result(published, () => published.id);
  });
}

function filesOf(paths: readonly string[], { name, records = {} }: PutFlags, command: Command, run: Run): Files {
  if ((name === undefined) === (paths.length === 0))
    command.error("error: name the files, or give --name and the file on stdin");
  const files = Object.fromEntries(
    name === undefined ? paths.map((path) => [basename(path), fileBody(path)]) : [[name, inputBody(run)]],
  );
  if (name === undefined && Object.keys(files).length < paths.length)
    command.error("error: two of the files have the same name, and a ticket has each name once");
  for (const file of Object.keys(records))
    if (!Object.hasOwn(files, file))
      command.error(`error: --records names '${file}', which is not a file of this ticket`);
  return files;
}

/** Throws NO_SUCH_FILE. */
async function mustBeReadable(path: string): Promise<void> {
  for await (const _piece of fileBody(path)) return;
}
