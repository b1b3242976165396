// The commands `holdfast handoff replay`, `pause`, `resume` and `verify`: maintenance of a box.
import { Argument, Option, type Command } from "commander";
import { exitCodes } from "../../exit-codes.ts";
import { findPartDirectory, partVerb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { registerPartVerify, repairOption } from "../../verify-report.ts";
import { boxNoun, exits, reportNothingDone, withHandoff, type BoxFlags } from "./box.ts";
import { parseShortText } from "./input.ts";

interface ReplayFlags extends BoxFlags {
  readonly from: "error" | "archive";
  readonly all?: boolean;
  readonly keepAttempts?: boolean;
}

export function registerReplay(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "replay", {
    summary: "return dead letters or finished tickets to the queue",
    description: "Returns a dead letter, or a finished ticket (--from archive), to the queue, with its attempts reset.",
    options: [
      new Option("--from <state>", "the state to replay from").choices(["error", "archive"]).default("error"),
      new Option("--all", "replay all tickets instead of one"),
      new Option("--keep-attempts", "keep the attempts made so far; a ticket without any left fails at once"),
    ],
    examples: ["holdfast handoff replay /mnt/shop/invoices $id", "holdfast handoff replay /mnt/shop/invoices --all"],
    exits: {
      done: "replayed",
      ...exits,
      nothingToDo: "there is no such ticket in that state",
    },
  }).addArgument(new Argument("[ID]", "the id of the ticket"));
  command.action(async (directory: string, id: string | undefined, flags: ReplayFlags) => {
    if ((id === undefined) !== (flags.all === true)) command.error("error: give the id of a ticket, or --all");
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const resetAttempts = flags.keepAttempts === true ? false : undefined;
    const { from } = flags;
    const { count, ticket } = await withHandoff(path, {}, async (box) => ({
      count: await box.replay({ from, id, resetAttempts }),
      ticket: id === undefined ? undefined : await box.find(id),
    }));
    if (count === 0 && id !== undefined && ticket === undefined)
      return reportNothingDone(run, "NO_SUCH_TICKET", `there is no ticket ${id} in ${path}`);
    if (count === 0 && ticket !== undefined)
      return reportNothingDone(run, "NOTHING_TO_REPLAY", `ticket ${ticket.id} is in ${ticket.state}, not in ${from}`);
    if (count === 0) run.exitCode = exitCodes.nothingToDo;
    run.output.result({ directory: path, replayed: count }, () => `${count} ticket(s) brought back.`);
  });
}

interface PauseFlags extends BoxFlags {
  readonly reason?: string;
}

export function registerPause(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "pause", {
    summary: "stop all workers from claiming tickets",
    description:
      "Stops workers on all machines from claiming tickets until `resume`. They finish what they have claimed.",
    options: [new Option("--reason <text>", "the reason, shown by `stats`").argParser(parseShortText)],
    examples: ["holdfast handoff pause /mnt/shop/invoices --reason 'the ERP is down until 6'"],
    exits: { done: "paused", ...exits },
  });
  command.action(async (directory: string, flags: PauseFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    await withHandoff(path, {}, (box) => box.pause(flags.reason));
    run.output.result({ directory: path, paused: true }, () => `${path} is paused.`);
  });
}

export function registerResume(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "resume", {
    summary: "end a pause",
    description: "Lets workers claim tickets again. Does nothing if the box is not paused.",
    examples: ["holdfast handoff resume /mnt/shop/invoices"],
    exits: { done: "not paused", ...exits },
  });
  command.action(async (directory: string, flags: BoxFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    await withHandoff(path, {}, (box) => box.resume());
    run.output.result({ directory: path, paused: false }, () => `${path} is not paused.`);
  });
}

export function registerVerify(handoff: Command, run: Run): void {
  const verb = {
    summary: "check every ticket, its files, its key and the ledger",
    description: "Reads every ticket, its files and the ledger, and reports damage. Takes no lock.",
    options: [
      repairOption(
        "make damaged tickets dead letters, move stray files to aside/ of the box, and return the tickets of dead processes; deletes nothing",
      ),
    ],
    examples: [
      "holdfast handoff verify /mnt/shop/invoices",
      "holdfast handoff verify /mnt/shop --box invoices --repair",
    ],
    exits: {
      done: "no damage, or all repaired; leftovers of crashes are harmless",
      ...exits,
    },
  };
  registerPartVerify(handoff, boxNoun, verb, run);
}
