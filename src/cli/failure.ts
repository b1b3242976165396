// Turns every failure into a message on stderr and an exit code.
import { CommanderError } from "commander";
import { isHoldfastError, type ErrorAction, type ErrorCode } from "../index.ts";
import { exitCodeOfError, exitCodes, isFileForDirectory } from "./exit-codes.ts";
import type { Output } from "./output.ts";

const hintOf: Readonly<Record<ErrorAction, string>> = {
  retry: "Try again: the same call can succeed later.",
  reopen: "Start again: what was open or held is of no more use.",
  "fix-caller": "Correct the call or its surroundings: unchanged it fails again.",
  "fix-data": "Something on the disk needs a person.",
  report: "If disk and network are sound, report it with this message.",
};

/** Advice for errors whose general advice does not suit a command, which runs once. */
const ownHintOf: Readonly<Partial<Record<ErrorCode, string>>> = {
  CLAIM_LOST: "This claim does not come back: `show` tells what became of the ticket.",
  APPEND_CONDITION_FAILED:
    "Read what matches and decide again: unchanged it fails as long as that is there, with a higher --after it may not.",
};

/** Replaces the names of the library's options by the flags of the command line. */
const flagOf: Readonly<Record<string, string>> = {
  "option timeoutMs": "--timeout",
  "Create it with createBucket": "Create it with `holdfast objects mb`",
  "Open it with bucket(), or choose": "Use it, or choose",
  "set bypassGovernance": "give --bypass-governance",
  "options lockTimeoutMs of the store, timeoutMs of the call": "--timeout",
};

export interface FailureOptions {
  /** The exit code that the user chose for this case, if any. */
  readonly exitCode?: number;
  /** The command that was used wrongly, with its parents: `holdfast events append`. */
  readonly usageOf?: string;
}

/** Reports what went wrong, and returns the exit code. */
export function reportFailure(error: unknown, output: Output, options: FailureOptions = {}): number {
  if (error instanceof CommanderError) return reportUsage(error, output, options.usageOf ?? "holdfast");
  if (isHoldfastError(error)) {
    const exitCode = options.exitCode ?? exitCodeOfError(error);
    const hint = `${error.code}: ${ownHintOf[error.code] ?? hintOf[isFileForDirectory(error) ? "fix-caller" : error.action]} See docs/errors.md.`;
    const message = withFlags(error.message);
    output.failure({ ...error.toJSON(), message, exitCode }, message, hint);
    return exitCode;
  }
  const { name = "Error", stack = "" } = (error ?? {}) as Partial<Error>;
  const message = messageOf(error);
  const details = { name, message, exitCode: exitCodes.failed };
  // An unexpected error: the stack shows where it came from.
  const calls = stack.split("\n").slice(1).join("\n");
  output.failure(details, message, `This is a fault of Holdfast; please report it.\n${calls}`);
  return exitCodes.failed;
}

/** Commander exits with 1 for wrong usage; here 1 means that the operation itself failed. */
function reportUsage(error: CommanderError, output: Output, usageOf: string): number {
  // The user requested the help or the version, which is already written.
  if (error.exitCode === 0) return exitCodes.done;
  // The command line is empty: the help on stderr suffices.
  if (error.code === "commander.help") return exitCodes.wrongUsage;
  const message = error.message.replace(/^error: /, "");
  const details = { name: "UsageError", code: "WRONG_USAGE", action: "fix-caller", message };
  output.failure({ ...details, exitCode: exitCodes.wrongUsage }, message, `See \`${usageOf} --help\`.`);
  return exitCodes.wrongUsage;
}

function withFlags(message: string): string {
  return Object.entries(flagOf).reduce((text, [option, flag]) => text.replaceAll(option, flag), message);
}

/** Returns the message of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  const { message } = (thrown ?? {}) as { readonly message?: unknown };
  return typeof message === "string" ? message : String(thrown);
}
