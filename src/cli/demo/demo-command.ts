// The command `holdfast demo`: many workstations, one folder, kills and pauses, and an audit at the
// end.
import { once } from "node:events";
import { hostname } from "node:os";
import { InvalidArgumentError, Option, type Command } from "commander";
import { runDemo } from "./demo.ts";
import { formatConsole, formatResult, formatSecond, formatStart } from "./demo-report.ts";
import { runWorkstation } from "./workstation.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import type { Run } from "../run.ts";

interface DemoFlags {
  readonly dir?: string;
  readonly workstations: number;
  readonly seconds?: number;
  readonly join?: boolean;
  readonly sabotage?: boolean;
  readonly console?: boolean;
  readonly name?: string;
  readonly tied?: boolean;
}

const defaultSeconds = 15;
const workstationsMax = 200;

export function registerDemo(command: Command, run: Run): void {
  command
    .description(
      "Runs workstations on one folder, kills and pauses some, and checks every acknowledged sale. Pauses need Linux or macOS.",
    )
    .option("--dir <D>", "the folder, created if missing and kept (default: a temporary one, removed at the end)")
    .option("--workstations <n>", "the number of processes", parseWorkstations, 12)
    .option("--seconds <n>", `how long to run (default: ${defaultSeconds}; with --join until Ctrl-C)`, parseSeconds)
    .option("--join", "join another demo as one more workstation, in the folder of --dir")
    .option("--sabotage", "one workstation acknowledges a write that it never made: the audit must find it")
    .option("--console", "open a console on the demo's store, and leave it open at the end, until Ctrl-C")
    .addOption(new Option("--name <name>", "of the workstation that joins").hideHelp())
    .addOption(new Option("--tied", "end with the demo that has started this workstation").hideHelp())
    .action(async (flags: DemoFlags) => {
      if (!flags.join) await start(flags, run);
      else if (flags.dir !== undefined) await join(flags.dir, flags, run);
      else command.error("error: --join needs --dir, the folder to join in");
    });
  endHelp(command, {
    examples: [
      "holdfast demo",
      "holdfast demo --console",
      "holdfast demo --dir /mnt/shop/demo --seconds 60",
      "holdfast demo --join --dir /mnt/shop/demo",
    ],
    exits: {
      done: "nothing was lost or duplicated",
      failed: "something was lost or duplicated, or a workstation failed",
      wrongUsage: "wrong usage, or --dir or TMPDIR is not a folder",
      verificationFailed: "the folder's file system cannot be used",
    },
  });
}

async function start(flags: DemoFlags, run: Run): Promise<void> {
  const { workstations } = flags;
  let address = "";
  const result = await runDemo({
    directory: flags.dir,
    workstations,
    seconds: flags.seconds ?? defaultSeconds,
    sabotage: flags.sabotage ?? false,
    signal: run.signal,
    onStart: (directory, isTemporary) => run.output.note(formatStart(workstations, directory, isTemporary)),
    onSecond: (figures) => run.output.note(formatSecond(figures)),
    onLeftBehind: (why) => run.output.note(why),
    onConsole: flags.console
      ? (url) => {
          address = url;
          run.output.note(formatConsole(url));
        }
      : undefined,
    onResult: async (found) => {
      run.output.result(found, (page) => formatResult(found, page));
      if (!flags.console) return;
      run.output.note(`The console stays open: ${address}\nCtrl-C ends the demo.`);
      if (!run.signal.aborted) await once(run.signal, "abort");
    },
  });
  run.exitCode = result.isSound ? exitCodes.done : exitCodes.failed;
}

async function join(directory: string, flags: DemoFlags, run: Run): Promise<void> {
  if (flags.tied) endWithDemo();
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  try {
    await runWorkstation({
      directory,
      name: flags.name ?? `${hostname()}-${process.pid}`,
      sabotage: flags.sabotage ?? false,
      onReceipt: (receipt) => {
        run.output.result(receipt, () => `${receipt.workstation}: ${receipt.what}`);
        // The seconds begin with the first piece of work.
        if (flags.seconds !== undefined) timer ??= setTimeout(() => over.abort(), flags.seconds * 1000);
      },
      signal: AbortSignal.any([run.signal, over.signal]),
    });
  } finally {
    clearTimeout(timer);
  }
  run.signal.throwIfAborted();
}

/** Ends this workstation when the demo that started it is gone: nothing else would. */
function endWithDemo(): void {
  const end = (): void => process.exit(exitCodes.failed);
  // The demo may have been killed while this workstation was still loading, before there was a
  // listener for that.
  if (process.connected) process.once("disconnect", end);
  else end();
}

function parseWorkstations(text: string): number {
  const count = parseSeconds(text);
  if (count > workstationsMax) throw new InvalidArgumentError(`At most ${workstationsMax}.`);
  return count;
}

function parseSeconds(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError("Write a whole number from 1.");
  return Number(text);
}
