// The commands `holdfast handoff take`, `ack`, `retry` and `fail`: a claim that is held between the calls of a script.
import { Argument, Option, type Command } from "commander";
import type { Delivery } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { exitCodes } from "../../exit-codes.ts";
import { printable } from "../../output.ts";
import { findPartDirectory, partVerb, type Verb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { inputChunks } from "../events/lines.ts";
import { parseJson } from "../events/log.ts";
import {
  boxNoun,
  exits,
  nothingThere,
  pausedText,
  tellNothing,
  warnOfDeadLetter,
  withHandoff,
  type BoxFlags,
} from "./box.ts";

interface TakeFlags extends BoxFlags {
  readonly for: number;
  readonly wait: number;
}

export function registerTake(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "take", {
    summary: "claim the next ticket for a while",
    description:
      "Claims the next ticket, checks its files, and prints the claim on the first line and then the path of each file; with --json all that is known of it. The claim is kept when this command ends: settle it with `ack`, `retry` or `fail` before its time is over, or the ticket goes back and its attempt counts. Copy the files elsewhere if you need them after that. A ticket that went to the dead letters on the way is told on stderr. For a command that runs at once, `work` is simpler.",
    options: [
      new Option("--for <duration>", "how long the claim is kept: 10m, 2h")
        .argParser(parseDuration)
        .default(600_000, "10m"),
      new Option("--wait <duration>", "wait so long for a ticket to come").argParser(parseDuration).default(0, "0s"),
    ],
    examples: [
      "holdfast handoff take /mnt/shop/invoices --for 10m",
      "claim=$(holdfast handoff take /mnt/shop/invoices | head -1) && … && holdfast handoff ack /mnt/shop/invoices $claim",
    ],
    exits: {
      done: "a ticket was claimed",
      ...exits,
      nothingToDo: `there is no ticket to take; ${nothingThere}`,
      tryAgain: "the box is paused",
    },
  });
  command.action(async (directory: string, flags: TakeFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const ticket = await withHandoff(path, {}, async (box) => {
      const taken = await box.takeParked(flags.for, {
        waitMs: flags.wait,
        signal: run.signal,
        onDeadLetter: (dead) => warnOfDeadLetter(run, dead),
      });
      if (taken !== undefined) return taken;
      const { paused, pauseReason } = await box.stats();
      if (paused) tellNothing(run, "PAUSED", pausedText(path, pauseReason), exitCodes.tryAgain);
      else tellNothing(run, "NO_TICKET", `there is no ticket to take in ${path}`);
      return undefined;
    });
    if (ticket === undefined) return;
    run.output.result(ticket, () => [ticket.claim, ...Object.values(ticket.paths)].map(printable).join("\n"));
  });
}

interface AckFlags extends BoxFlags {
  readonly result?: unknown;
  readonly output?: string;
}

export function registerAck(handoff: Command, run: Run): void {
  settling<AckFlags>(handoff, run, "ack", {
    summary: "say that a claimed ticket is done",
    description:
      "Commits the result of a ticket that `take` has claimed, once for its key, and moves the ticket to the archive.",
    options: [
      new Option("--result <json>", "what came of it: kept in the ledger, and seen by `show`").argParser(parseJson),
      new Option("--output <name>", "keep what comes in on stdin as an output file of this name"),
    ],
    examples: [
      "holdfast handoff ack /mnt/shop/invoices $claim",
      "holdfast handoff ack /mnt/shop/invoices $claim --result '{\"booked\":17}' --output receipt.pdf < receipt.pdf",
    ],
    settle: async (delivery, { result, output }) => {
      if (output !== undefined) await delivery.output(output, stdinOf(run));
      await delivery.ack(result);
    },
  });
}

interface RetryFlags extends BoxFlags {
  readonly delay: number;
  readonly reason: string;
}

export function registerRetry(handoff: Command, run: Run): void {
  settling<RetryFlags>(handoff, run, "retry", {
    summary: "give a claimed ticket back, to be tried again",
    description: "Gives back a ticket that `take` has claimed. The attempt counts.",
    options: [
      new Option("--delay <duration>", "not before that: 30s, 5m").argParser(parseDuration).default(0, "0s"),
      new Option("--reason <text>", "why, for people who look at it").default("", "none"),
    ],
    examples: ["holdfast handoff retry /mnt/shop/invoices $claim --delay 5m --reason 'the ERP is down'"],
    settle: (delivery, { delay, reason }) => delivery.retry({ delayMs: delay, reason }),
  });
}

interface FailFlags extends BoxFlags {
  readonly reason: string;
}

export function registerFail(handoff: Command, run: Run): void {
  settling<FailFlags>(handoff, run, "fail", {
    summary: "put a claimed ticket with the dead letters",
    description:
      "Moves a ticket that `take` has claimed to the dead letters: it is not tried again, until `replay` brings it back.",
    options: [new Option("--reason <text>", "why, for people who look at it").makeOptionMandatory()],
    examples: ["holdfast handoff fail /mnt/shop/invoices $claim --reason 'no such customer'"],
    settle: (delivery, { reason }) => delivery.fail(reason),
  });
}

interface Settling<F> extends Omit<Verb, "exits"> {
  readonly settle: (delivery: Delivery, flags: F) => Promise<void>;
}

function settling<F extends BoxFlags>(
  handoff: Command,
  run: Run,
  name: string,
  { settle, ...verb }: Settling<F>,
): void {
  const command = partVerb(handoff, boxNoun, name, {
    ...verb,
    exits: {
      done: "settled",
      ...exits,
      nothingToDo: nothingThere,
      notHeld: "the claim is gone: it was settled before, or its time was over and the ticket went back",
    },
  }).addArgument(new Argument("<CLAIM>", "what `take` has printed, or the id of the ticket"));
  command.action(async (directory: string, claim: string, flags: F) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const id = await withHandoff(path, {}, async (box) => {
      // Unsettled, when the disk is full for example, it goes back at once.
      await using delivery = await box.resumeParked(claim, { signal: run.signal });
      await settle(delivery, flags);
      return delivery.id;
    });
    run.output.result({ directory: path, id, settled: name }, () => `${name} ${id}`);
  });
}

async function* stdinOf(run: Run): AsyncGenerator<Uint8Array> {
  for await (const chunk of inputChunks(run)) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}
