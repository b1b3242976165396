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
  APPEND_CONDITION_FAILED:
    "Read what matches and decide again: unchanged it fails as long as that is there, with a higher --after it may not.",
};

/** Tells what went wrong, and gives the exit code for it: `exitCodeWanted`, if the user has chosen one for this case. */
export function reportFailure(error: unknown, output: Output, exitCodeWanted?: number): number {
  if (error instanceof CommanderError) return reportUsage(error, output);
  if (isHoldfastError(error)) {
    const exitCode = exitCodeWanted ?? exitCodeOf(error.code);
    const hint = `${error.code}: ${ownHintOf[error.code] ?? hintOf[error.action]} See docs/errors.md.`;
    output.failure({ ...error.toJSON(), exitCode }, error.message, hint);
    return exitCode;
  }
  const message = error instanceof Error ? error.message : String(error);
  const details = { name: error instanceof Error ? error.name : "Error", message, exitCode: exitCodes.failed };
  // Not foreseen, so whoever mends it needs to know where it came from.
  output.failure(details, message, `This is a fault of Holdfast; please report it.\n${stackOf(error)}`);
  return exitCodes.failed;
}

/** Commander ends with 1 for wrong usage; here 1 means that the thing itself failed. */
function reportUsage(error: CommanderError, output: Output): number {
  // Help or the version was asked for, and is written already.
  if (error.exitCode === 0) return exitCodes.done;
  // Nothing was asked for: the help on stderr says it all.
  if (error.code === "commander.help") return exitCodes.wrongUsage;
  const message = error.message.replace(/^error: /, "");
  const details = { name: "UsageError", code: "WRONG_USAGE", action: "fix-caller", message };
  output.failure({ ...details, exitCode: exitCodes.wrongUsage }, message, "See `holdfast --help`.");
  return exitCodes.wrongUsage;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? "").split("\n").slice(1).join("\n") : "";
}
