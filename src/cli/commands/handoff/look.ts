// The commands `holdfast handoff ls`, `show` and `cat`: which tickets there are, what became of one, what is in it.
import { Argument, Option, type Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { TicketInfo, TicketState } from "../../../handoff/index.ts";
import { exitCodes } from "../../exit-codes.ts";
import { printable } from "../../output.ts";
import { findPartDirectory, partVerb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import { parseCount } from "../events/log.ts";
import {
  boxNoun,
  exits,
  nothingThere,
  tellNothing,
  ticketArgument,
  withHandoff,
  type BoxFlags,
  type OpenBox,
} from "./box.ts";

const states: readonly TicketState[] = ["incoming", "delayed", "processing", "archive", "error"];

interface LsFlags extends BoxFlags {
  readonly state?: readonly TicketState[];
  readonly group?: string;
  readonly limit?: number;
}

export function registerLs(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "ls", {
    summary: "list tickets",
    description:
      "Prints a line for each ticket: its id, state, attempt, time, key and files, and of a dead letter why it is one. With --json all that is known of it. Takes no lock. Stops quietly when its reader has gone.",
    options: [
      new Option("--state <state>", `only tickets in this state; may be repeated (default: all but archive)`).argParser(
        parseState,
      ),
      new Option("--group <group>", "only tickets of this group"),
      new Option("--limit <n>", "at most so many of each state").argParser(parseCount),
    ],
    examples: [
      "holdfast handoff ls /mnt/shop/invoices",
      "holdfast handoff ls /mnt/shop/invoices --state error --json | jq .history",
    ],
    exits: { done: "all printed, also when there is none", ...exits, nothingToDo: nothingThere },
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
    summary: "print all that is known of a ticket",
    description:
      "Prints the manifest of a ticket, its state, what was tried, and what came of it. With --wait only when it is done or has failed for good: the receipt for a producer.",
    options: [
      new Option("--key", "ID is the key that the ticket was published with"),
      new Option("--wait", "wait until the ticket is done, or has failed for good"),
    ],
    examples: [
      "holdfast handoff show /mnt/shop/invoices $id",
      "holdfast handoff show /mnt/shop/invoices --key 'invoice 4711' --wait --json | jq .result",
    ],
    exits: {
      done: "printed",
      ...exits,
      nothingToDo: `there is no such ticket; ${nothingThere}`,
      failedForGood: "with --wait: the ticket has failed for good",
    },
  }).addArgument(ticketArgument());
  command.action(async (directory: string, id: string, flags: ShowFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const ticket = await withHandoff(path, {}, (box) => find(box, id, flags, run));
    if (ticket === undefined)
      return tellNothing(
        run,
        "NO_SUCH_TICKET",
        `there is no ticket ${flags.key === true ? "with the key " : ""}${id} in ${path}`,
      );
    if (flags.wait === true && ticket.state === "error") run.exitCode = exitCodes.failedForGood;
    run.output.result(ticket, () => describe(ticket));
  });
}

async function find(box: OpenBox, id: string, { key, wait }: ShowFlags, run: Run): Promise<TicketInfo | undefined> {
  const found = key === true ? await box.findByKey(id) : await box.find(id);
  return found === undefined || wait !== true ? found : await box.waitFor(found.id, { signal: run.signal });
}

interface CatFlags extends BoxFlags {
  readonly output?: string;
}

export function registerCat(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "cat", {
    summary: "print a file of a ticket",
    description:
      "Prints the bytes of a file of a ticket, whatever its state, after its checksum was checked. FILE may also be an output of its handler: a file of that name comes first, and --output means the output.",
    options: [new Option("--output <name>", "print this output of its handler")],
    examples: [
      "holdfast handoff cat /mnt/shop/invoices $id",
      "holdfast handoff cat /mnt/shop/invoices $id invoice.pdf > invoice.pdf",
      "holdfast handoff cat /mnt/shop/invoices $id --output receipt.pdf > receipt.pdf",
    ],
    exits: { done: "printed", ...exits, nothingToDo: `there is no such ticket or file; ${nothingThere}` },
  })
    .addArgument(ticketArgument())
    .addArgument(new Argument("[FILE]", "the name of the file; may be left out when there is only one"));
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

async function onlyFile(box: OpenBox, id: string, command: Command): Promise<string> {
  const files = (await box.find(id))?.files ?? [];
  if (files.length > 1)
    command.error(
      `error: the ticket has ${files.length} files: name one of ${files.map(({ name }) => name).join(", ")}`,
    );
  // None: then `content` says that there is no such ticket.
  return files[0]?.name ?? "";
}

/** Of a line for a program or a file. */
const columnsDefault = 200;
/** So much of a reason is told in any case. */
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

/** Why it is a dead letter, or cannot be read, in one line. */
function reasonOf({ state, history, damaged }: TicketInfo): string | undefined {
  const reason = (state === "error" ? history.at(-1)?.reason : undefined) ?? damaged;
  if (reason === undefined || reason === "") return undefined;
  // First: the reason begins with a long path.
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
