// One run of the command line as a process: its streams, its signals, its end.
import { reportFailure } from "./failure.ts";
import { Output } from "./output.ts";
import { runCommandLine } from "./program.ts";
import { cannotWrite, checkedStdin, isNobodyReading } from "./stream-errors.ts";

const { stdout, stderr } = process;
const pipes = { stdout, stderr, stdin: checkedStdin(), isStdinTyped: process.stdin.isTTY };
const interruption = new AbortController();
let output = new Output(pipes, {});
let interruptedBy: NodeJS.Signals | undefined;
let wasInterrupted = false;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  // The listener runs once, so a second Ctrl-C ends the process without cleaning up.
  process.once(name, () => {
    interruptedBy = name;
    interruption.abort(new Error(`interrupted by ${name}`));
  });

// A closed reader (`holdfast … | head`) is not a failure: the command continues to its end. A
// command with a listener of its own handles errors there.
stdout.on("error", (error) => {
  if (isNobodyReading(error) || stdout.listenerCount("error") > 1) return;
  process.exit(reportFailure(cannotWrite(error), output));
});
stderr.on("error", () => undefined);

// Shows warnings in our own form instead of Node's. With NODE_NO_WARNINGS, Node emits none.
if (process.listenerCount("warning") > 0)
  process.removeAllListeners("warning").on("warning", ({ name, message }) => output.warning({ name, message }));

// A function, because the bundle is a CommonJS program, which has no top-level await.
void runToEnd();

async function runToEnd(): Promise<never> {
  const exitCode = await runCommandLine(process.argv.slice(2), pipes, interruption.signal, {
    onOutput: (wanted) => {
      output = wanted;
    },
    onInterrupted: () => {
      wasInterrupted = true;
    },
  });

  // Flushes everything before the end: output to a pipe may still be in transit.
  for (const stream of [stdout, stderr]) await new Promise<void>((resolve) => stream.write("", () => resolve()));

  // Ends by the signal itself, as a shell expects of an interrupted program. Nothing catches it any
  // more.
  if (wasInterrupted && interruptedBy !== undefined) process.kill(process.pid, interruptedBy);

  // Exits explicitly: after a cancelled wait for an OS lock, a thread would keep the process alive
  // until the lock is free.
  process.exit(exitCode);
}
