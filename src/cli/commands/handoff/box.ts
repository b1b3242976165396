// Shared by all verbs of `holdfast handoff`: the box as a part of a store, and how it is opened.
import { Argument, Option } from "commander";
import {
  listHandoffs,
  locateHandoff,
  openHandoff,
  verifyHandoff,
  type DeadLetter,
  type Handoff,
  type HandoffOptions,
} from "../../../handoff/index.ts";
import { exitCodes } from "../../exit-codes.ts";
import { printable } from "../../output.ts";
import type { Run } from "../../run.ts";
import { failed, wrongUsage, type PartFlags, type PartNoun } from "../../part-verb.ts";

export interface BoxFlags extends PartFlags {
  readonly box?: string;
  /** False for `--no-create`. */
  readonly create?: boolean;
}

export const missing = "there is no box in DIR: is it the right one, and is the share mounted?";
export const damaged = "the box or the ticket is damaged, or its file system cannot be used";
export const exits: { failed: string; wrongUsage: string; verificationFailed: string; missing: string } = {
  failed,
  wrongUsage,
  verificationFailed: damaged,
  missing,
};

export const boxNoun: PartNoun = {
  what: "box",
  defaultName: "main",
  unit: "ticket(s)",
  progress: "verified entries",
  locate: (directory, box) => locateHandoff(directory, { box }),
  list: listHandoffs,
  verify: verifyHandoff,
  stats: (directory) =>
    withHandoff(directory, {}, async (box) => {
      const { incoming, delayed, processing, archive, error, holders } = await box.stats();
      return { incoming, delayed, processing, archive, error, holders };
    }),
  collect: (directory, retention, options) =>
    withHandoff(directory, { retention }, async (box) => ({ ...(await box.collect(options)) })),
};

/**
 * Reports that nothing was done, which is not a failure: a note for people, an object for programs,
 * and the exit code.
 */
export function reportNothingDone(
  run: Run,
  code: string,
  message: string,
  exitCode: number = exitCodes.nothingToDo,
): void {
  run.exitCode = exitCode;
  if (!run.output.isJson) return run.output.note(`holdfast: ${message}`);
  run.output.failure({ name: "NothingDone", code, action: "retry", message, exitCode }, message, "");
}

export function failIfIdleOption(description: string): Option {
  return new Option("--fail-if-idle", description);
}

/** Returns the exit code for a box without a ticket: 0, or 3 with `--fail-if-idle`. */
export function reportIdle(run: Run, message: string, { failIfIdle }: { readonly failIfIdle?: boolean }): void {
  if (failIfIdle === true) reportNothingDone(run, "NO_TICKET", message);
  else run.output.note(`holdfast: ${message}`);
}

export function pausedText(directory: string, reason: string | undefined): string {
  return `${directory} is paused${reason === undefined ? "" : `: ${printable(reason)}`}`;
}

/** Reports a dead letter that no command has reported. */
export function warnOfDeadLetter(run: Run, { id, reason }: DeadLetter): void {
  run.output.warning({ name: "DeadLetter", message: `ticket ${id} went to the dead letters: ${printable(reason)}` });
}

export const ticketArgument = (): Argument => new Argument("<ID>", "the id of the ticket, as printed by `put` or `ls`");

export async function withHandoff<T>(
  directory: string,
  options: HandoffOptions,
  action: (box: Handoff) => Promise<T>,
): Promise<T> {
  await using box = await openHandoff(directory, options);
  return await action(box);
}
