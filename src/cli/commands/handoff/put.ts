// The command `holdfast handoff put`: files, or what comes in on stdin, become one ticket.
import { Option, type Command } from "commander";
import { basename } from "node:path";
import { fileBody, type Files, type PublishOptions } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { failed, noCreateOption, partVerb, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { parseJson } from "../events/log.ts";
import { boxDirectoryOf, boxNoun, damaged, withHandoff, type BoxFlags } from "./box.ts";
import { collectCounts, inputBody, parsePriority } from "./input.ts";

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
    summary: "hand over files as one ticket",
    description:
      "Publishes the files as one ticket, or what comes in on stdin as a file of the name --name. They are copied and hashed; a consumer sees all of them or none. Prints the id of the ticket when it is durable. With a --key that was published before, it makes no second ticket and prints the id of the first: a call that was cut off can be repeated. Makes the box if there is none.",
    options: [
      new Option("--name <name>", "read the file from stdin, and give it this name"),
      new Option("--key <key>", "publish it once under this key (default: the id of the ticket)"),
      new Option("--group <group>", "tickets of one group are worked in order, one at a time"),
      new Option("--priority <0-9>", "0 first, 9 last (default: 5)").argParser(parsePriority),
      new Option("--delay <duration>", "not before this time has passed: 10m, 2h").argParser(parseDuration),
      new Option("--expires <duration>", "not after this time has passed").argParser(parseDuration),
      new Option("--records <name=count>", "how many records a file has; may be repeated").argParser(collectCounts),
      new Option("--meta <json>", "what else a consumer should know").argParser(parseJson),
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
      nothingToDo: "a file is not there; with --no-create: there is no box in DIR",
      verificationFailed: damaged,
      tryAgain: "the box is full, or the answer was lost: try again, with the same key",
    },
  }).argument("[FILE...]", "the files of the ticket");
  command.action(async (directory: string, paths: readonly string[], flags: PutFlags) => {
    const files = filesOf(paths, flags, command, run);
    // Before a box is made for nothing.
    for (const each of paths) await mustBeReadable(each);
    const path = await boxDirectoryOf(directory, flags, command, run);
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
    if (!Object.hasOwn(files, file)) command.error(`error: --records names '${file}', which is no file of this ticket`);
  return files;
}

/** NO_SUCH_FILE. */
async function mustBeReadable(path: string): Promise<void> {
  for await (const _piece of fileBody(path)) return;
}
