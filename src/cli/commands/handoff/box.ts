// What all verbs of `holdfast handoff` have in common: the box as a part of a store, and how it is opened.
import { Argument, type Command } from "commander";
import {
  listHandoffs,
  locateHandoff,
  openHandoff,
  verifyHandoff,
  type DeadLetter,
  type HandoffOptions,
} from "../../../handoff/index.ts";
import { exitCodes } from "../../exit-codes.ts";
import { printable } from "../../output.ts";
import type { Run } from "../../run.ts";
import {
  failed,
  findPartDirectory,
  partDirectoryOf,
  wrongUsage,
  type PartFlags,
  type PartNoun,
} from "../../part-verb.ts";

/** An open box. */
export type OpenBox = Awaited<ReturnType<typeof openHandoff>>;

export interface BoxFlags extends PartFlags {
  readonly box?: string;
  /** False for `--no-create`. */
  readonly create?: boolean;
}

export const nothingThere = "there is no box in DIR: is it the right one, and is the share mounted?";
export const damaged = "the box or the ticket is damaged, or its file system cannot be used";
export const exits: { failed: string; wrongUsage: string; verificationFailed: string } = {
  failed,
  wrongUsage,
  verificationFailed: damaged,
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

/** Where nothing is done, and that is no failure: a note for people, an object for programs, and the exit code. */
export function tellNothing(run: Run, code: string, message: string, exitCode: number = exitCodes.nothingToDo): void {
  run.exitCode = exitCode;
  if (!run.output.isJson) return run.output.note(`holdfast: ${message}`);
  run.output.failure({ name: "NothingDone", code, action: "retry", message, exitCode }, message, "");
}

export function pausedText(directory: string, reason: string | undefined): string {
  return `${directory} is paused${reason === undefined ? "" : `: ${printable(reason)}`}`;
}

/** No command has told of it. */
export function warnOfDeadLetter(run: Run, { id, reason }: DeadLetter): void {
  run.output.warning({ name: "DeadLetter", message: `ticket ${id} went to the dead letters: ${printable(reason)}` });
}

export const ticketArgument = (): Argument => new Argument("<ID>", "the id of the ticket, as `put` or `ls` says it");

/** For a verb that makes the box if there is none; undefined, with the exit code for it, if `--no-create` forbids that. */
export async function boxDirectoryOf(
  directory: string,
  flags: BoxFlags,
  command: Command,
  run: Run,
): Promise<string | undefined> {
  const find = flags.create === false ? findPartDirectory : partDirectoryOf;
  return await find(boxNoun, directory, flags, command, run);
}

export async function withHandoff<T>(
  directory: string,
  options: HandoffOptions,
  action: (box: OpenBox) => Promise<T>,
): Promise<T> {
  await using box = await openHandoff(directory, options);
  return await action(box);
}
