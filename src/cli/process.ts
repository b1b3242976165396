// One run of the command line as a process: its streams, its signals, its end.
import { reportFailure } from "./failure.ts";
import { Output } from "./output.ts";
import { runCommandLine } from "./program.ts";
import { cannotWrite, checkedStdin, isNobodyReading } from "./stream-errors.ts";

const { stdout, stderr } = process;
const pipes = { stdout, stderr, stdin: checkedStdin() };
const interruption = new AbortController();
let output = new Output(pipes, {});
let interruptedBy: NodeJS.Signals | undefined;
let wasInterrupted = false;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  // Once: a second Ctrl-C ends the process without the cleaning up.
  process.once(name, () => {
    interruptedBy = name;
    interruption.abort(new Error(`interrupted by ${name}`));
  });

// The reader may be gone (`holdfast … | head`): the command goes on to its end, which may be soon.
// A stream that has a listener of its own deals with it there.
stdout.on("error", (error) => {
  if (isNobodyReading(error) || stdout.listenerCount("error") > 1) return;
  process.exit(reportFailure(cannotWrite(error), output));
});
stderr.on("error", () => undefined);

// In our own form, instead of Node's. With NODE_NO_WARNINGS Node emits none, and there is nothing
// to show.
if (process.listenerCount("warning") > 0)
  process.removeAllListeners("warning").on("warning", ({ name, message }) => output.warning({ name, message }));

const exitCode = await runCommandLine(process.argv.slice(2), pipes, interruption.signal, {
  onOutput: (wanted) => {
    output = wanted;
  },
  onInterrupted: () => {
    wasInterrupted = true;
  },
});

// All of it, before the end: what is written to a pipe may still be on its way.
for (const stream of [stdout, stderr]) await new Promise<void>((resolve) => stream.write("", () => resolve()));

// Ends as a shell expects of an interrupted program; by now nothing catches the signal.
if (wasInterrupted && interruptedBy !== undefined) process.kill(process.pid, interruptedBy);

// Not left to the event loop: a wait for an OS lock that was called off keeps a thread, and with it
// the process, until the lock is free.
process.exit(exitCode);
