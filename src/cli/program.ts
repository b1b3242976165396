// The command line as a whole: its commands, what they share, and how a run ends.
import { Command } from "commander";
import { version } from "../index.ts";
import { exitCodes } from "./exit-codes.ts";
import { reportFailure } from "./failure.ts";
import { endHelp } from "./help.ts";
import { hidingPasswords } from "./commands/location.ts";
import { Output, type Streams } from "./output.ts";
import { findUnknownVerb, ownArguments, spellingOf, wordsOf } from "./own-words.ts";
import type { Pipes, RegisterCommand, Run } from "./run.ts";

interface ListedCommand {
  readonly summary: string;
  /** Loads only the command that is used: short commands in scripts must start fast. */
  readonly load: () => Promise<RegisterCommand>;
}

/** All commands, in the order of the help page. */
const commands: Readonly<Record<string, ListedCommand>> = {
  demo: {
    summary: "show many workstations share one folder and lose nothing",
    load: async () => (await import("./demo/demo-command.ts")).registerDemo,
  },
  console: {
    summary: "show what is going on in a store, in a browser",
    load: async () => (await import("./commands/console/console.ts")).registerConsole,
  },
  watch: {
    summary: "print what happens in a store",
    load: async () => (await import("./commands/console/watch.ts")).registerWatch,
  },
  init: {
    summary: "create a store in a folder",
    load: async () => (await import("./commands/init.ts")).registerInit,
  },
  doctor: {
    summary: "check whether a file system is safe to use",
    load: async () => (await import("./commands/doctor.ts")).registerDoctor,
  },
  run: {
    summary: "run a command under a lock",
    load: async () => (await import("./commands/run.ts")).registerRun,
  },
  semaphore: {
    summary: "acquire and release a lock file that any program can use",
    load: async () => (await import("./commands/semaphore.ts")).registerSemaphore,
  },
  locks: {
    summary: "list the holders of locks, and evict them",
    load: async () => (await import("./commands/locks.ts")).registerLocks,
  },
  events: {
    summary: "append to and read an event log",
    load: async () => (await import("./commands/events/events.ts")).registerEvents,
  },
  handoff: {
    summary: "pass files between programs, claimed once and never lost",
    load: async () => (await import("./commands/handoff/handoff.ts")).registerHandoff,
  },
  objects: {
    summary: "store versioned objects in buckets",
    load: async () => (await import("./commands/objects/objects.ts")).registerObjects,
  },
  s3: {
    summary: "serve a folder as S3",
    load: async () => (await import("./commands/s3/s3.ts")).registerS3,
  },
  files: {
    summary: "change and search a shared tree of plain files",
    load: async () => (await import("./commands/files/files.ts")).registerFiles,
  },
  mcp: {
    summary: "serve a folder to agents by the Model Context Protocol",
    load: async () => (await import("./commands/mcp.ts")).registerMcp,
  },
  publish: {
    summary: "write a file from stdin, whole or not at all",
    load: async () => (await import("./commands/publish.ts")).registerPublish,
  },
  verify: {
    summary: "check all parts of a store for damage",
    load: async () => (await import("./commands/store.ts")).registerVerify,
  },
  stats: {
    summary: "print statistics of all parts of a store",
    load: async () => (await import("./commands/store.ts")).registerStats,
  },
  collect: {
    summary: "remove old finished entries and leftovers from a store",
    load: async () => (await import("./commands/store.ts")).registerCollect,
  },
  backup: {
    summary: "back up a store while programs use it",
    load: async () => (await import("./commands/backup.ts")).registerBackup,
  },
  restore: {
    summary: "restore a store from a backup",
    load: async () => (await import("./commands/backup.ts")).registerRestore,
  },
  backups: {
    summary: "list, verify and remove backups",
    load: async () => (await import("./commands/backup.ts")).registerBackups,
  },
  copy: {
    summary: "copy a store between folders and databases",
    load: async () => (await import("./commands/copy.ts")).registerCopy,
  },
  upgrade: {
    summary: "upgrade a store to the newest format",
    load: async () => (await import("./commands/upgrade.ts")).registerUpgrade,
  },
  completion: {
    summary: "print the completion of a shell",
    load: async () => (await import("./commands/completion.ts")).registerCompletion,
  },
};

/** Callbacks to the surrounding process. */
export interface RunCallbacks {
  /** Called with the output settings, before the command runs. */
  onOutput?(output: Output): void;
  /**
   * Called if the signal ended the run. If a command continues to its own end although the signal
   * aborted, its exit code counts.
   */
  onInterrupted?(): void;
}

/** Never rejects and never ends the process: returns the exit code. */
export async function runCommandLine(
  args: readonly string[],
  pipes: Pipes,
  signal: AbortSignal,
  news: RunCallbacks = {},
): Promise<number> {
  const program = createProgram(pipes);
  const hide = hidingPasswords([...args, process.env["HOLDFAST_STORE"] ?? ""]);
  const output = new Output(pipes, { hide });
  const loadProgram = (): Promise<Command> => loadWholeProgram(pipes);
  const run: { -readonly [Key in keyof Run]: Run[Key] } = {
    signal,
    output,
    pipes,
    loadProgram,
    exitCode: exitCodes.done,
  };
  let wrong: Command = program;
  const wanted = args.find((word) => Object.hasOwn(commands, word));
  for (const [name, { summary, load }] of Object.entries(commands)) {
    const command = program.command(name).summary(summary);
    if (name === wanted) (await load())(command, run);
  }
  prepareAll(program, (command) => (wrong = command));
  program.hook("preAction", (_, command) => void (run.output.spell = spellingOf(wordsOf(command))));
  // Determined before the words are parsed, because wrong usage is also reported as JSON.
  const own = ownArguments(program, args);
  run.output = new Output(pipes, { isJson: own.includes("--json"), isQuiet: own.includes("--quiet"), hide });
  news.onOutput?.(run.output);
  try {
    const unknown = own.some((word) => word === "--help" || word === "-h") && findUnknownVerb(program, own);
    if (unknown) unknown.command.error(`error: unknown command '${unknown.word}'`);
    await program.parseAsync(args, { from: "user" });
    return run.exitCode;
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) return reportFailure(error, run.output, { usageOf: nameOf(wrong) });
    run.output.note("holdfast: interrupted, and cleaned up");
    news.onInterrupted?.();
    return exitCodes.failed;
  }
}

/**
 * Returns the program with all commands loaded, for the texts that are made from all of them:
 * completion and the man page. It is not for running.
 */
export async function loadWholeProgram(streams: Streams): Promise<Command> {
  const program = createProgram(streams);
  const loadProgram = (): Promise<Command> => Promise.resolve(program);
  const { signal } = new AbortController();
  const run: Run = { signal, output: new Output(streams, {}), pipes: streams, loadProgram, exitCode: exitCodes.done };
  for (const [name, { summary, load }] of Object.entries(commands))
    (await load())(program.command(name).summary(summary), run);
  prepareAll(program, () => undefined);
  return program;
}

/**
 * Adds the options that every command accepts, wherever they stand on the command line. `onWrong`
 * receives the command that was used wrongly.
 */
function prepareAll(command: Command, onWrong: (command: Command) => void): void {
  command
    .option("--json", "print results and errors as JSON, one per line")
    .option("--quiet", "print only results, warnings and errors")
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
    .description("Lets many processes and machines share one folder without losing a write. No server.")
    .version(version, "-V, --version", "print the version")
    // These settings precede the commands, which inherit them.
    .exitOverride()
    // With this, `run` leaves the options of the command that it runs alone.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => void streams.stdout.write(text),
      writeErr: (text) => void streams.stderr.write(text),
      // failure.ts reports all errors.
      outputError: () => undefined,
    });
  return endHelp(program, {
    examples: ["holdfast doctor /mnt/shop"],
    exits: {
      done: "done",
      failed: "failed",
      wrongUsage: "wrong usage",
      nothingToDo: "nothing to do: DIR does not have it",
      notHeld: "not held, or lost",
      verificationFailed: "verification failed",
      failedForGood: "failed permanently: the same input will fail again",
      missing: "DIR is missing, or has no such store, log, box, bucket or tree: is the share mounted?",
      tryAgain: "busy or timed out: try again",
    },
  });
}
