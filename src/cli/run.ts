// One run of the command line, as a command sees it.
import type { Command } from "commander";
import type { Output, Streams } from "./output.ts";

/** Where a run reads and writes; a test may give it no input. */
export interface Pipes extends Streams {
  readonly stdin?: AsyncIterable<Uint8Array | string> | undefined;
}

export interface Run {
  /**
   * Aborts when the user presses Ctrl-C or the process is asked to end: a command cleans up and
   * rejects with its reason.
   */
  readonly signal: AbortSignal;
  /** Not before the command runs. */
  readonly output: Output;
  /** For commands that read or write lines without end; all other output goes through `output`. */
  readonly pipes: Pipes;
  /** What the run ends with if nothing fails. Starts as `done`. */
  exitCode: number;
}

/** Gives a command, which has its name and summary, its options, its verbs and its action. */
export type Register = (command: Command, run: Run) => void;
