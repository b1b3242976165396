// The commands `holdfast handoff replay`, `pause`, `resume` and `verify`: looking after a box.
import { Argument, Option, type Command } from "commander";
import { exitCodes } from "../../exit-codes.ts";
import { findPartDirectory, partVerb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { registerPartVerify, repairOption } from "../../verify-report.ts";
import { boxNoun, exits, nothingThere, tellNothing, withHandoff, type BoxFlags } from "./box.ts";

interface ReplayFlags extends BoxFlags {
  readonly from: "error" | "archive";
  readonly all?: boolean;
  readonly keepAttempts?: boolean;
}

export function registerReplay(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "replay", {
    summary: "bring dead letters or done tickets back",
    description:
      "Brings a dead letter back to be tried again, its attempts forgiven, or with --from archive a ticket that was done, which is then delivered and done once more.",
    options: [
      new Option("--from <state>", "where to take it from").choices(["error", "archive"]).default("error"),
      new Option("--all", "all of them, instead of one"),
      new Option("--keep-attempts", "count the attempts that were made: one that had its last fails at once"),
    ],
    examples: ["holdfast handoff replay /mnt/shop/invoices $id", "holdfast handoff replay /mnt/shop/invoices --all"],
    exits: {
      done: "it is back",
      ...exits,
      nothingToDo: `there is no such ticket in that state; ${nothingThere}`,
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
      return tellNothing(run, "NO_SUCH_TICKET", `there is no ticket ${id} in ${path}`);
    if (count === 0 && ticket !== undefined)
      return tellNothing(run, "NOTHING_TO_REPLAY", `ticket ${ticket.id} is in ${ticket.state}, not in ${from}`);
    if (count === 0) run.exitCode = exitCodes.nothingToDo;
    run.output.result({ directory: path, replayed: count }, () => `${count} ticket(s) brought back.`);
  });
}

interface PauseFlags extends BoxFlags {
  readonly reason?: string;
}

export function registerPause(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "pause", {
    summary: "let no worker on any machine take a ticket",
    description:
      "From now on no worker on any machine takes a ticket of this box, until `resume`. What they have in hand they finish; producers go on.",
    options: [new Option("--reason <text>", "why, for people who look at `stats`")],
    examples: ["holdfast handoff pause /mnt/shop/invoices --reason 'the ERP is down until 6'"],
    exits: { done: "paused", ...exits, nothingToDo: nothingThere },
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
    description: "Lets workers take tickets again. Does nothing when the box is not paused.",
    examples: ["holdfast handoff resume /mnt/shop/invoices"],
    exits: { done: "not paused any more", ...exits, nothingToDo: nothingThere },
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
    description:
      "Reads every ticket, the files of each and every entry of the ledger, and says what is wrong. Takes no lock; workers go on meanwhile.",
    options: [
      repairOption(
        "put damaged tickets with the dead letters, with the reason; move what belongs to no ticket into aside/ of the box; give back what dead processes had in hand; nothing is ever deleted",
      ),
    ],
    examples: [
      "holdfast handoff verify /mnt/shop/invoices",
      "holdfast handoff verify /mnt/shop --box invoices --repair",
    ],
    exits: {
      done: "no damage, or none any more; there may be leftovers of crashes, which are harmless",
      ...exits,
      nothingToDo: nothingThere,
    },
  };
  registerPartVerify(handoff, boxNoun, verb, run);
}
