// The commands `holdfast handoff ls`, `show` and `cat`: list tickets, show the history of one,
// print its content.
import { Argument, Option, type Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { TicketInfo, TicketState, Handoff } from "../../../handoff/index.ts";
import { exitCodes } from "../../exit-codes.ts";
import { explain } from "../../locking/explained-wait.ts";
import { printable } from "../../output.ts";
import { findPartDirectory, partVerb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import { parseCount } from "../events/log.ts";
import { boxNoun, exits, reportNothingDone, ticketArgument, withHandoff, type BoxFlags } from "./box.ts";
import { parseShortText } from "./input.ts";

const states: readonly TicketState[] = ["incoming", "delayed", "processing", "archive", "error"];

interface LsFlags extends BoxFlags {
  readonly state?: readonly TicketState[];
  readonly group?: string;
  readonly limit?: number;
}

export function registerLs(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "ls", {
    summary: "list tickets",
    description: "Prints a line per ticket: id, state, attempt, time, key, files, and why it failed. Takes no lock.",
    options: [
      new Option("--state <state>", `only tickets in this state; may be repeated (default: all but archive)`).argParser(
        parseState,
      ),
      new Option("--group <group>", "only tickets of this group").argParser(parseShortText),
      new Option("--limit <n>", "at most this many per state").argParser(parseCount),
    ],
    examples: [
      "holdfast handoff ls /mnt/shop/invoices",
      "holdfast handoff ls /mnt/shop/invoices --state error --json | jq .history",
    ],
    exits: { done: "all printed, even if there are none", ...exits },
  });
  command.action(async (directory: string, flags: LsFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const { state = states.filter((each) => each !== "archive"), group, limit } = flags;
    await withHandoff(path, {}, async (box) => {
      using writer = new LineWriter(run.pipes);
      for (const each of state)
        for await (const ticket of box.list(each, { group, limit })) {
          run.signal.throwIfAborted();
          if (run.output.isJson) await writer.writeJson(ticket);
          else await writer.write(`${lineOf(ticket, run.pipes.stdout.columns ?? columnsDefault)}\n`);
          if (writer.isUnread) return;
        }
      await writer.end();
    });
  });
}

interface ShowFlags extends BoxFlags {
  readonly key?: boolean;
  readonly wait?: boolean;
}

export function registerShow(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "show", {
    summary: "print everything about a ticket",
    description: "Prints the manifest of a ticket, its state, its attempts and its result.",
    options: [
      new Option("--key", "ID is the key that the ticket was published with"),
      new Option("--wait", "wait until the ticket is done or has failed permanently"),
    ],
    examples: [
      "holdfast handoff show /mnt/shop/invoices $id",
      "holdfast handoff show /mnt/shop/invoices --key 'invoice 4711' --wait --json | jq .result",
    ],
    exits: {
      done: "printed",
      ...exits,
      nothingToDo: "there is no such ticket",
      failedForGood: "with --wait: the ticket has failed permanently",
    },
  }).addArgument(ticketArgument());
  command.action(async (directory: string, id: string, flags: ShowFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const ticket = await withHandoff(path, {}, (box) => find(box, path, id, flags, run));
    if (ticket === undefined)
      return reportNothingDone(
        run,
        "NO_SUCH_TICKET",
        `there is no ticket ${flags.key === true ? "with the key " : ""}${id} in ${path}`,
      );
    if (flags.wait === true && ticket.state === "error") run.exitCode = exitCodes.failedForGood;
    run.output.result(ticket, () => describe(ticket));
  });
}

async function find(
  box: Handoff,
  directory: string,
  id: string,
  { key, wait }: ShowFlags,
  run: Run,
): Promise<TicketInfo | undefined> {
  const found = key === true ? await box.findByKey(id) : await box.find(id);
  if (found === undefined || wait !== true) return found;
  return await explain(run, {
    what: `ticket ${found.id} in ${directory}`,
    findBlocking: async () => {
      const ticket = await box.find(found.id);
      return ticket?.holder === undefined ? [] : [{ path: ticket.id, holder: ticket.holder, does: "works on it" }];
    },
    wait: () => box.waitFor(found.id, { signal: run.signal }),
    isCertain: true,
  });
}

interface CatFlags extends BoxFlags {
  readonly output?: string;
}

export function registerCat(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "cat", {
    summary: "print a file of a ticket",
    description: "Prints a file of a ticket, or an output of its handler, after checking its checksum.",
    options: [new Option("--output <name>", "print this output of the handler")],
    examples: [
      "holdfast handoff cat /mnt/shop/invoices $id",
      "holdfast handoff cat /mnt/shop/invoices $id invoice.pdf > invoice.pdf",
      "holdfast handoff cat /mnt/shop/invoices $id --output receipt.pdf > receipt.pdf",
    ],
    exits: { done: "printed", ...exits, nothingToDo: "there is no such ticket or file" },
  })
    .addArgument(ticketArgument())
    .addArgument(new Argument("[FILE]", "the name of the file; optional if there is only one"));
  command.action(async (directory: string, id: string, file: string | undefined, flags: CatFlags) => {
    const { output } = flags;
    if (file !== undefined && output !== undefined) command.error("error: name a FILE or an --output, not both");
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    await withHandoff(path, {}, async (box) => {
      const name = output ?? file ?? (await onlyFile(box, id, command));
      const options = { output: output !== undefined, signal: run.signal };
      using writer = new LineWriter(run.pipes);
      for await (const piece of box.content(id, name, options)) {
        await writer.write(piece);
        if (writer.isUnread) return;
      }
      await writer.end();
    });
  });
}

async function onlyFile(box: Handoff, id: string, command: Command): Promise<string> {
  const files = (await box.find(id))?.files ?? [];
  if (files.length > 1)
    command.error(
      `error: the ticket has ${files.length} files: name one of ${files.map(({ name }) => name).join(", ")}`,
    );
  // No file name: `content` then reports that there is no such ticket.
  return files[0]?.name ?? "";
}

/** Width of a line if the output is not a terminal. */
const columnsDefault = 200;
/** At least this much of a reason is always shown. */
const reasonColumnsMin = 40;

function lineOf(ticket: TicketInfo, columns: number): string {
  const { id, state, attempt, createdAt, key, files } = ticket;
  const names = files.map(({ name }) => name).join(" ");
  const shownKey = key === id || key === "" ? "-" : key;
  const words = [id, state.padEnd(10), String(attempt), createdAt.toISOString(), shownKey, names || "-"];
  const line = words.map(printable).join("  ");
  const reason = reasonOf(ticket);
  if (reason === undefined) return line;
  const left = Math.max(reasonColumnsMin, columns - line.length - 2);
  return `${line}  ${reason.length <= left ? reason : `${reason.slice(0, left - 1)}…`}`;
}

/** Returns why a ticket is a dead letter, or cannot be read, in one line. */
function reasonOf({ state, history, damaged }: TicketInfo): string | undefined {
  const reason = (state === "error" ? history.at(-1)?.reason : undefined) ?? damaged;
  if (reason === undefined || reason === "") return undefined;
  // The reason begins with a long path, so the remedy comes first.
  const words = damaged === undefined ? reason : `its file is damaged: ${reason}`;
  return printable(words.trim().replaceAll(/\s+/g, " "));
}

function describe(ticket: TicketInfo): string {
  const { history, files, outputs, holder, ...rest } = ticket;
  const facts = Object.entries(rest).map(([name, value]): [string, unknown] => [name, value]);
  const who = holder && `${holder.host}, process ${holder.pid}, ${holder.state}`;
  const lines = [
    ...facts,
    ...(who === undefined ? [] : [["holder", who] as const]),
    ...files.map(({ name, size, sha256 }) => ["file", `${name}, ${size} bytes, sha256 ${sha256}`] as const),
    ...outputs.map(({ name, size, sha256 }) => ["output", `${name}, ${size} bytes, sha256 ${sha256}`] as const),
    ...history.map(
      ({ attempt, at, outcome, reason }) => ["tried", `${attempt}: ${at.toISOString()} ${outcome}: ${reason}`] as const,
    ),
  ];
  return lines.map(([name, value]) => `${name.padEnd(10)}${printable(textOf(value))}`).join("\n");
}

function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === "string" ? value : JSON.stringify(value);
}

function parseState(text: string, before: readonly TicketState[] = []): readonly TicketState[] {
  const state = states.find((each) => each === text);
  if (state === undefined) throw new InvalidArgumentError(`Write one of ${states.join(", ")}.`);
  return [...before, state];
}
