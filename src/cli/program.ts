// The command line as a whole: its commands, what they have in common, and how a run ends.
import { Command } from "commander";
import { version } from "../index.ts";
import { registerDoctor } from "./commands/doctor.ts";
import { registerEvents } from "./commands/events.ts";
import { registerLocks } from "./commands/locks.ts";
import { registerRun } from "./commands/run.ts";
import { registerSemaphore } from "./commands/semaphore.ts";
import { registerDemo } from "./demo/demo-command.ts";
import { exitCodes } from "./exit-codes.ts";
import { reportFailure } from "./failure.ts";
import { endHelp } from "./help.ts";
import { Output, type Streams } from "./output.ts";
import { ownWords } from "./own-words.ts";

/** Adds one command to the program. */
export type Register = (program: Command, run: Run) => void;

/** In the order of the help page. A new command is one more line here. */
const commands: readonly Register[] = [
  registerDemo,
  registerDoctor,
  registerRun,
  registerSemaphore,
  registerLocks,
  registerEvents,
];

/** Where a run reads and writes; a test may give it no input. */
export interface Pipes extends Streams {
  readonly stdin?: AsyncIterable<Uint8Array | string> | undefined;
}

/** One run of the command line, as a command sees it. */
export interface Run {
  /** Aborts when the user presses Ctrl-C or the process is asked to end: a command cleans up and rejects with its reason. */
  readonly signal: AbortSignal;
  /** Not before the command runs. */
  readonly output: Output;
  /** For commands that read or write lines without end; what all others say goes through `output`. */
  readonly pipes: Pipes;
  /** What the run ends with if nothing fails. Starts as `done`. */
  exitCode: number;
}

/** What the process around a run wants to know of it. */
export interface RunNews {
  /** How the user wants to be told things. Before anything is done. */
  onOutput?(output: Output): void;
  /** It was the signal that ended it. A command may also go on to its own end when the signal aborts, and then its exit code is what counts. */
  onInterrupted?(): void;
}

/** Never rejects and never ends the process: gives the exit code. */
export async function runCommandLine(
  args: readonly string[],
  pipes: Pipes,
  signal: AbortSignal,
  news: RunNews = {},
): Promise<number> {
  const program = createProgram(pipes);
  const run: { -readonly [Key in keyof Run]: Run[Key] } = { signal, output: new Output(pipes, false), pipes, exitCode: exitCodes.done }; // prettier-ignore
  for (const register of commands) register(program, run);
  takeJsonEverywhere(program);
  // Found before anything is parsed, because wrong usage is reported in JSON too.
  run.output = new Output(pipes, ownWords(program, args).includes("--json"));
  news.onOutput?.(run.output);
  try {
    await program.parseAsync(args, { from: "user" });
    return run.exitCode;
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) return reportFailure(error, run.output);
    run.output.note("holdfast: interrupted, and cleaned up");
    news.onInterrupted?.();
    return exitCodes.failed;
  }
}

/** Wherever it stands, though options belong to the command that they stand behind. */
function takeJsonEverywhere(command: Command): void {
  command.option("--json", "print results and errors as one line of JSON");
  for (const each of command.commands) takeJsonEverywhere(each);
}

function createProgram(streams: Streams): Command {
  const program = new Command("holdfast")
    .description("Many processes and many machines share one folder without losing a write. No server.")
    .version(version, "--version", "print the version")
    // Before any command is added: commands inherit all of this.
    .exitOverride()
    // Or `run` could not leave the options of what it runs alone.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => void streams.stdout.write(text),
      writeErr: (text) => void streams.stderr.write(text),
      // Errors are told in one place, failure.ts.
      outputError: () => undefined,
    });
  return endHelp(program, {
    examples: ["holdfast doctor /mnt/shop"],
    exits: {
      done: "done",
      failed: "failed",
      wrongUsage: "wrong usage",
      nothingToDo: "nothing to do: what was asked for is not there",
      notHeld: "not held, or lost",
      verificationFailed: "verification failed",
      failedForGood: "failed for good: the same input will fail again",
      tryAgain: "busy or timed out: try again",
    },
  });
}
