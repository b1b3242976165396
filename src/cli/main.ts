#!/usr/bin/env node
// The command `holdfast`: one run of the command line as a process.
import { runCommandLine } from "./program.ts";

const interruption = new AbortController();
let interruptedBy: NodeJS.Signals | undefined;
let wasInterrupted = false;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  // Once: whoever presses Ctrl-C again does not want to wait for the cleaning up.
  process.once(name, () => {
    interruptedBy = name;
    interruption.abort(new Error(`interrupted by ${name}`));
  });

// Nobody reads any more (`holdfast … | head`): there is nobody to tell, either. A command that writes without end listens itself, and ends in peace.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", () => {
    if (stream.listenerCount("error") === 1) process.exit(1);
  });

const exitCode = await runCommandLine(process.argv.slice(2), process, interruption.signal, () => {
  wasInterrupted = true;
});

// All of it, before the end: what is written to a pipe may still be on its way.
for (const stream of [process.stdout, process.stderr])
  await new Promise<void>((resolve) => stream.write("", () => resolve()));

// Ends as a shell expects of an interrupted program; by now nothing catches the signal.
if (wasInterrupted && interruptedBy !== undefined) process.kill(process.pid, interruptedBy);

// Not left to the event loop: a wait for an OS lock that was called off keeps a thread, and with it the process, until the lock is free.
process.exit(exitCode);
