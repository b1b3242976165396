// One run of the command line, as the code of a command sees it.
import type { Command } from "commander";
import type { Output, Streams } from "./output.ts";

/** Where a run reads and writes; a test may give it no input. */
export interface Pipes extends Streams {
  readonly stdin?: AsyncIterable<Uint8Array | string> | undefined;
  /** True if stdin is a terminal. Default false. */
  readonly isStdinTyped?: boolean | undefined;
}

export interface Run {
  /**
   * Aborts when the user presses Ctrl-C or the process is asked to end: a command cleans up and
   * rejects with its reason.
   */
  readonly signal: AbortSignal;
  /** The output of the run. Available once the command runs. */
  readonly output: Output;
  /**
   * The streams, for commands that read or write many lines. All other output goes through
   * `output`.
   */
  readonly pipes: Pipes;
  /** Loads all commands, for texts about every one of them. */
  readonly loadProgram: () => Promise<Command>;
  /** The exit code if nothing fails. Starts as `done`. */
  exitCode: number;
}

/** Adds options, verbs and the action to a command, which has its name and summary. */
export type RegisterCommand = (command: Command, run: Run) => void;
