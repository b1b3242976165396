// The command line as a whole: its commands, what they have in common, and how a run ends.
import { Command } from "commander";
import { version } from "../index.ts";
import { exitCodes } from "./exit-codes.ts";
import { reportFailure } from "./failure.ts";
import { endHelp } from "./help.ts";
import { Output, type Streams } from "./output.ts";
import { ownWords } from "./own-words.ts";
import type { Pipes, Register, Run } from "./run.ts";

interface ListedCommand {
  readonly summary: string;
  /** Only the command that is used is loaded: `--version` in a script must not cost a second. */
  readonly load: () => Promise<Register>;
}

/** In the order of the help page. A new command is one more entry here. */
const commands: Readonly<Record<string, ListedCommand>> = {
  demo: {
    summary: "many workstations, one folder, nothing lost",
    load: async () => (await import("./demo/demo-command.ts")).registerDemo,
  },
  doctor: {
    summary: "what a file system can be trusted with",
    load: async () => (await import("./commands/doctor.ts")).registerDoctor,
  },
  run: {
    summary: "a command under a lock",
    load: async () => (await import("./commands/run.ts")).registerRun,
  },
  semaphore: {
    summary: "a lock file that any program can honour",
    load: async () => (await import("./commands/semaphore.ts")).registerSemaphore,
  },
  locks: {
    summary: "which process holds which path, and how to evict it",
    load: async () => (await import("./commands/locks.ts")).registerLocks,
  },
  events: {
    summary: "a log of events that many processes append to",
    load: async () => (await import("./commands/events/events.ts")).registerEvents,
  },
  handoff: {
    summary: "files passed between programs, claimed once, never lost",
    load: async () => (await import("./commands/handoff/handoff.ts")).registerHandoff,
  },
  objects: {
    summary: "buckets of objects, of which every version is kept",
    load: async () => (await import("./commands/objects/objects.ts")).registerObjects,
  },
  s3: {
    summary: "an S3 gateway on a folder",
    load: async () => (await import("./commands/s3/s3.ts")).registerS3,
  },
  files: {
    summary: "a tree of plain files that many processes change",
    load: async () => (await import("./commands/files/files.ts")).registerFiles,
  },
  publish: {
    summary: "a file from stdin, whole or not at all",
    load: async () => (await import("./commands/publish.ts")).registerPublish,
  },
  verify: {
    summary: "whether all parts of a store are whole",
    load: async () => (await import("./commands/store.ts")).registerVerify,
  },
  stats: {
    summary: "a few numbers about all parts of a store",
    load: async () => (await import("./commands/store.ts")).registerStats,
  },
  collect: {
    summary: "remove from all parts of a store what was finished long ago",
    load: async () => (await import("./commands/store.ts")).registerCollect,
  },
};

/** What the process around a run wants to know of it. */
export interface RunNews {
  /** How the user wants to be told things. Before anything is done. */
  onOutput?(output: Output): void;
  /**
   * The signal ended the run. A command may also go on to its own end when the signal aborts; then
   * its exit code counts.
   */
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
  const output = new Output(pipes, {});
  const run: { -readonly [Key in keyof Run]: Run[Key] } = { signal, output, pipes, exitCode: exitCodes.done };
  let wrong: Command = program;
  const wanted = args.find((word) => Object.hasOwn(commands, word));
  for (const [name, { summary, load }] of Object.entries(commands)) {
    const command = program.command(name).summary(summary);
    if (name === wanted) (await load())(command, run);
  }
  prepareAll(program, (command) => (wrong = command));
  // Found before anything is parsed, because wrong usage is reported in JSON too.
  const own = ownWords(program, args);
  run.output = new Output(pipes, { isJson: own.includes("--json"), isQuiet: own.includes("--quiet") });
  news.onOutput?.(run.output);
  try {
    if (own.some((word) => word === "--help" || word === "-h")) mustKnowVerb(program, own);
    await program.parseAsync(args, { from: "user" });
    return run.exitCode;
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) return reportFailure(error, run.output, { usageOf: nameOf(wrong) });
    run.output.note("holdfast: interrupted, and cleaned up");
    news.onInterrupted?.();
    return exitCodes.failed;
  }
}

/** Or the help of the noun would be shown, with success, for a verb that there is not. */
function mustKnowVerb(program: Command, words: readonly string[]): void {
  const [noun, verb] = words.filter((word) => !word.startsWith("-"));
  const command = program.commands.find((each) => each.name() === noun);
  if (command === undefined || verb === undefined || verb === "help" || command.commands.length === 0) return;
  if (command.commands.some((each) => each.name() === verb || each.aliases().includes(verb))) return;
  command.error(`error: unknown command '${verb}'`, { code: "commander.unknownCommand" });
}

/**
 * What every command takes wherever it stands, though options belong to the command that they stand
 * behind; `onWrong` is told which command was used wrongly.
 */
function prepareAll(command: Command, onWrong: (command: Command) => void): void {
  command
    .option("--json", "print results and errors as one line of JSON")
    .option("--quiet", "print results, warnings and errors, and nothing else")
    .exitOverride((error) => {
      onWrong(command);
      throw error;
    });
  for (const each of command.commands) prepareAll(each, onWrong);
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function createProgram(streams: Streams): Command {
  const program = new Command("holdfast")
    .description("Many processes and many machines share one folder without losing a write. No server.")
    .version(version, "-V, --version", "print the version")
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
