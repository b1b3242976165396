// The one place that turns what went wrong into words on stderr and an exit code.
import { CommanderError } from "commander";
import { isHoldfastError, type ErrorAction, type ErrorCode } from "../index.ts";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";
import type { Output } from "./output.ts";

const hintOf: Readonly<Record<ErrorAction, string>> = {
  retry: "Try again: the same call can succeed later.",
  reopen: "Start again: what was open or held is of no more use.",
  "fix-caller": "Correct the call or its surroundings: unchanged it fails again.",
  "fix-data": "Something on the disk needs a person.",
  report: "If disk and network are sound, report it with this message.",
};

/** Where the action says too much for the command line, which does one thing once. */
const ownHintOf: Readonly<Partial<Record<ErrorCode, string>>> = {
  CLAIM_LOST: "This claim does not come back: `show` tells what became of the ticket.",
  APPEND_CONDITION_FAILED:
    "Read what matches and decide again: unchanged it fails as long as that is there, with a higher --after it may not.",
};

/** The library names its options; a user of the command line has flags. */
const flagOf: Readonly<Record<string, string>> = {
  "option timeoutMs": "--timeout",
  "Make it with createBucket": "Make it with `holdfast objects mb`",
  "Open it with bucket(), or choose": "Use it, or choose",
  "set bypassGovernance": "give --bypass-governance",
  "options lockTimeoutMs of the store, timeoutMs of the call": "--timeout",
};

export interface FailureOptions {
  /** What to end with, if the user has chosen it for this case. */
  readonly exitCode?: number;
  /** The command that was used wrongly, with the words before it: `holdfast events append`. */
  readonly usageOf?: string;
}

/** Tells what went wrong, and gives the exit code for it. */
export function reportFailure(error: unknown, output: Output, options: FailureOptions = {}): number {
  if (error instanceof CommanderError) return reportUsage(error, output, options.usageOf ?? "holdfast");
  if (isHoldfastError(error)) {
    const exitCode = options.exitCode ?? exitCodeOf(error.code);
    const hint = `${error.code}: ${ownHintOf[error.code] ?? hintOf[error.action]} See docs/errors.md.`;
    const message = withFlags(error.message);
    output.failure({ ...error.toJSON(), message, exitCode }, message, hint);
    return exitCode;
  }
  const message = error instanceof Error ? error.message : String(error);
  const details = { name: error instanceof Error ? error.name : "Error", message, exitCode: exitCodes.failed };
  // Not foreseen: the stack says where it came from.
  output.failure(details, message, `This is a fault of Holdfast; please report it.\n${stackOf(error)}`);
  return exitCodes.failed;
}

/** Commander ends with 1 for wrong usage; here 1 means that the thing itself failed. */
function reportUsage(error: CommanderError, output: Output, usageOf: string): number {
  // Help or the version was asked for, and is written already.
  if (error.exitCode === 0) return exitCodes.done;
  // Nothing was asked for: the help on stderr says it all.
  if (error.code === "commander.help") return exitCodes.wrongUsage;
  const message = error.message.replace(/^error: /, "");
  const details = { name: "UsageError", code: "WRONG_USAGE", action: "fix-caller", message };
  output.failure({ ...details, exitCode: exitCodes.wrongUsage }, message, `See \`${usageOf} --help\`.`);
  return exitCodes.wrongUsage;
}

function withFlags(message: string): string {
  return Object.entries(flagOf).reduce((text, [option, flag]) => text.replaceAll(option, flag), message);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? "").split("\n").slice(1).join("\n") : "";
}
