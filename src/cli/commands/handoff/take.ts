// The commands `holdfast handoff take`, `ack`, `retry` and `fail`: a claim that a script holds
// between calls.
import { Argument, Option, type Command } from "commander";
import type { Delivery, Handoff } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { exitCodes } from "../../exit-codes.ts";
import { explain, type Blocking } from "../../locking/explained-wait.ts";
import { printable } from "../../output.ts";
import { findPartDirectory, partVerb, type Verb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { parseJson } from "../events/log.ts";
import {
  boxNoun,
  exits,
  failIfIdleOption,
  pausedText,
  reportIdle,
  reportNothingDone,
  warnOfDeadLetter,
  withHandoff,
  type BoxFlags,
} from "./box.ts";
import { inputBody } from "./input.ts";

interface TakeFlags extends BoxFlags {
  readonly for: number;
  readonly wait: number;
  readonly failIfIdle?: boolean;
}

export function registerTake(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "take", {
    summary: "claim the next ticket for a limited time",
    description:
      "Claims the next ticket, and prints the claim and then the path of each file. Settle it with ack, retry or fail.",
    options: [
      new Option("--for <duration>", "how long the claim lasts: 10m, 2h")
        .argParser(parseDuration)
        .default(600_000, "10m"),
      new Option("--wait <duration>", "wait this long for a ticket").argParser(parseDuration).default(0, "0s"),
      failIfIdleOption("exit with 3 if there is no ticket to take"),
    ],
    examples: [
      "holdfast handoff take /mnt/shop/invoices --for 10m",
      'claim=$(holdfast handoff take /mnt/shop/invoices | head -1); [ -n "$claim" ] && … && holdfast handoff ack /mnt/shop/invoices $claim',
    ],
    exits: {
      done: "a ticket was claimed and printed; or there was none, and nothing was printed",
      ...exits,
      nothingToDo: "with --fail-if-idle: there is no ticket to take",
      tryAgain: "the box is paused",
    },
  });
  command.action(async (directory: string, flags: TakeFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const ticket = await withHandoff(path, {}, async (box) => {
      const taken = await explain(run, {
        what: `a ticket in ${path}`,
        findBlocking: () => findWorkers(box),
        wait: () =>
          box.takeParked(flags.for, {
            waitMs: flags.wait,
            signal: run.signal,
            onDeadLetter: (dead) => warnOfDeadLetter(run, dead),
          }),
        isCertain: flags.wait > 0,
      });
      if (taken !== undefined) return taken;
      const { paused, pauseReason } = await box.stats();
      if (paused) reportNothingDone(run, "PAUSED", pausedText(path, pauseReason), exitCodes.tryAgain);
      else reportIdle(run, `there is no ticket to take in ${path}`, flags);
      return undefined;
    });
    if (ticket === undefined) return;
    const { spell } = run.output;
    const paths = Object.fromEntries(Object.entries(ticket.paths).map(([name, file]) => [name, spell(file)]));
    run.output.result({ ...ticket, paths }, () => [ticket.claim, ...Object.values(paths)].map(printable).join("\n"));
  });
}

/**
 * Returns the holders of the tickets in progress that block waiting tickets: by their group, or by
 * the limit in flight.
 */
async function findWorkers(box: Handoff): Promise<Blocking[]> {
  if ((await box.stats()).incoming === 0) return [];
  const workers: Blocking[] = [];
  for await (const { id, holder } of box.list("processing"))
    if (holder !== undefined) workers.push({ path: id, holder, does: `works on ticket ${id}` });
  return workers;
}

interface AckFlags extends BoxFlags {
  readonly result?: unknown;
  readonly output?: string;
}

export function registerAck(handoff: Command, run: Run): void {
  settling<AckFlags>(handoff, run, "ack", {
    summary: "complete a claimed ticket",
    description: "Commits the result of a claimed ticket, once for its key, and moves the ticket to the archive.",
    options: [
      new Option("--result <json>", "the result, stored in the ledger and printed by `show`").argParser(parseJson),
      new Option("--output <name>", "store stdin as an output file with this name"),
    ],
    examples: [
      "holdfast handoff ack /mnt/shop/invoices $claim",
      "holdfast handoff ack /mnt/shop/invoices $claim --result '{\"booked\":17}' --output receipt.pdf < receipt.pdf",
    ],
    settle: async (delivery, { result, output }) => {
      if (output !== undefined) await delivery.output(output, inputBody(run));
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
    summary: "return a claimed ticket for another attempt",
    description: "Returns a claimed ticket to the queue. The attempt counts.",
    options: [
      new Option("--delay <duration>", "deliver no earlier than after this time: 30s, 5m")
        .argParser(parseDuration)
        .default(0, "0s"),
      new Option("--reason <text>", "the reason, for people").default("", "none"),
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
    summary: "move a claimed ticket to the dead letters",
    description: "Moves a claimed ticket to the dead letters. It is not tried again unless you `replay` it.",
    options: [new Option("--reason <text>", "the reason, for people").makeOptionMandatory()],
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
      notHeld: "the claim is gone: it was settled, or its time ran out and the ticket returned to the queue",
    },
  }).addArgument(new Argument("<CLAIM>", "the claim that `take` printed, or the id of the ticket"));
  command.action(async (directory: string, claim: string, flags: F) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const id = await withHandoff(path, {}, async (box) => {
      // If the ticket cannot be settled, for example on a full disk, it returns to the queue at
      // once.
      await using delivery = await box.resumeParked(claim, { signal: run.signal });
      await settle(delivery, flags);
      return delivery.id;
    });
    run.output.result({ directory: path, id, settled: name }, () => `${name} ${id}`);
  });
}
