// The command `holdfast semaphore`: a lock file that a shell script takes, holds and releases, and
// that ends with the script.
import { InvalidArgumentError, Option, type Command } from "commander";
import { Semaphore, type SemaphoreStatus } from "../../locks/index.ts";
import { findProcessName, findWrapper } from "../locking/calling-process.ts";
import { parseDuration } from "../duration.ts";
import { findSemaphoreHolder } from "../locking/chosen-lock.ts";
import { exitCodes } from "../exit-codes.ts";
import { explain } from "../locking/explained-wait.ts";
import { endHelp, type HelpEnd } from "../help.ts";
import { printable } from "../output.ts";
import { mustBeFolder } from "./location.ts";
import type { Run } from "../run.ts";

interface Flags {
  readonly pid: number;
  readonly stale: number;
  readonly directory?: boolean;
  readonly tag?: string;
  readonly timeout?: number;
  readonly force?: boolean;
}

export function registerSemaphore(semaphore: Command, run: Run): void {
  semaphore.description(
    "Acquires and releases the lock file FILE for a process, such as a shell script (--pid $$). Guide: docs/locks.md.",
  );
  endHelp(semaphore, {
    examples: [
      "holdfast semaphore acquire /var/lock/backup.lock --pid $$ --timeout 30s || exit 75",
      "holdfast semaphore release /var/lock/backup.lock --pid $$",
    ],
    exits: {
      done: "done",
      failed: "failed: no permission, disk full",
      wrongUsage: "wrong usage, or FILE cannot be a lock",
      missing,
      nothingToDo: "clean: nothing was stale; status: free",
      notHeld: "release: not held by the calling process; status: stale",
      verificationFailed: "clean: not safe on this file system",
      tryAgain: "held by another process: try again",
    },
  });
  registerTryAcquire(semaphore, run);
  registerAcquire(semaphore, run);
  registerRelease(semaphore, run);
  registerStatus(semaphore, run);
  registerClean(semaphore, run);
}

const failed = "failed: no permission, disk full";
const wrongUsage = "wrong usage, or FILE cannot be a lock";
const missing = "the directory of FILE is missing: is the share mounted?";
const tag = (): Option => new Option("--tag <text>", "what the lock is held for, for people");

function registerTryAcquire(semaphore: Command, run: Run): void {
  const command = verb(semaphore, "try-acquire", "Acquires FILE if it is free or stale, without waiting.", {
    examples: ["holdfast semaphore try-acquire /var/lock/backup.lock --pid $$ --tag nightly || exit 75"],
    exits: { done: "acquired", failed, wrongUsage, missing, tryAgain: "held by another process: try again" },
    options: [tag()],
  });
  command.action((file: string, flags: Flags) => acquire(file, { ...flags, timeout: 0 }, command, run));
}

function registerAcquire(semaphore: Command, run: Run): void {
  const command = verb(semaphore, "acquire", "Waits until FILE is free or stale, then acquires it.", {
    examples: ["holdfast semaphore acquire /var/lock/backup.lock --pid $$ --timeout 30s --tag nightly || exit 75"],
    exits: { done: "acquired", failed, wrongUsage, missing, tryAgain: "still held by another process: try again" },
    options: [
      tag(),
      new Option("--timeout <duration>", "how long to wait: 30s, 500ms, 2m (default: no limit)").argParser(
        parseDuration,
      ),
    ],
  });
  command.action((file: string, flags: Flags) => acquire(file, flags, command, run));
}

function registerRelease(semaphore: Command, run: Run): void {
  const command = verb(semaphore, "release", "Releases FILE if the calling process holds it.", {
    examples: ["holdfast semaphore release /var/lock/backup.lock --pid $$"],
    exits: { done: "released", failed, wrongUsage, missing, notHeld: "not held by the calling process" },
    options: [new Option("--force", "remove the lock of any process: only if you know that none is working under it")],
  });
  command.action(async (file: string, flags: Flags) => {
    if (!flags.force) mustKnowOwner(command);
    const semaphore = open(file, flags);
    await semaphore.release({ force: flags.force });
    run.output.result({ path: file, released: true }, () => `${file} is free.`);
  });
}

function registerStatus(semaphore: Command, run: Run): void {
  const command = verb(semaphore, "status", "Prints the holder of FILE, and whether the lock is stale.", {
    examples: [
      "holdfast semaphore status /var/lock/backup.lock --json",
      "holdfast semaphore status /var/lock/backup.lock --quiet > /dev/null && echo busy",
    ],
    exits: {
      done: "held",
      failed,
      wrongUsage,
      missing,
      nothingToDo: "free",
      notHeld: "stale: the next process takes it over",
    },
  });
  command.action(async (file: string, flags: Flags) => {
    const semaphore = open(file, flags);
    const status = await semaphore.status();
    if (status.stale) run.exitCode = exitCodes.notHeld;
    else if (!status.locked) run.exitCode = exitCodes.nothingToDo;
    run.output.result({ path: file, ...status }, () => describe(status));
  });
}

function registerClean(semaphore: Command, run: Run): void {
  const command = verb(semaphore, "clean", "Removes FILE if it is stale, and leftovers of crashes beside it.", {
    examples: ["holdfast semaphore clean /var/lock/backup.lock"],
    exits: {
      done: "something was removed",
      failed,
      wrongUsage,
      missing,
      nothingToDo: "nothing was stale",
      verificationFailed: "it is stale, but cannot be removed safely on this file system",
      tryAgain: "another process is working on it: try again",
    },
  });
  command.action(async (file: string, flags: Flags) => {
    const semaphore = open(file, flags);
    const cleaned = await semaphore.clean();
    run.exitCode = cleaned ? exitCodes.done : exitCodes.nothingToDo;
    run.output.result({ path: file, cleaned }, () => (cleaned ? `${file} was cleaned.` : `${file}: nothing is stale.`));
  });
}

interface Verb extends HelpEnd {
  readonly options?: readonly Option[];
}

/** Shared by all verbs. */
function verb(semaphore: Command, name: string, description: string, { options = [], ...end }: Verb): Command {
  const command = semaphore
    .command(name)
    .description(description)
    .argument("<FILE>", "the lock file; its directory must exist");
  for (const option of options) command.addOption(option);
  command
    .addOption(
      new Option("--pid <n>", "the process that the lock belongs to")
        .argParser(parsePid)
        .default(process.ppid, "the caller of this command; refused through npx"),
    )
    .addOption(
      new Option("--stale <duration>", "after which age a lock of another program or machine is stale, or `never`")
        .argParser((text) => (text === "never" ? Infinity : parseDuration(text)))
        .default(3_600_000, "60m"),
    )
    .option("--directory", "use a directory with the record inside, for NFSv3");
  return endHelp(command, end);
}

async function acquire(file: string, flags: Flags, command: Command, run: Run): Promise<void> {
  mustKnowOwner(command);
  if (!isRunning(flags.pid))
    command.error(`error: no process ${flags.pid} is running: its lock would be stale at once`);
  const semaphore = open(file, flags);
  const risk = await semaphore.findLocationRisk();
  if (risk !== undefined) run.output.warning({ name: "HoldfastWarning", message: risk });
  const { info } = await explain(run, {
    what: file,
    findBlocking: () => findSemaphoreHolder(semaphore),
    isCertain: true,
    wait: () => semaphore.acquire({ timeoutMs: flags.timeout, tag: flags.tag, signal: run.signal }),
  });
  const name = await findProcessName(info.pid);
  const owner = `process ${info.pid}${name === undefined ? "" : ` (${printable(name)})`}`;
  run.output.result(
    { path: file, ...info, ...(name === undefined ? {} : { process: name }) },
    () => `${file} is held by ${owner}, and ends with it.`,
  );
}

/**
 * Refuses a process that is about to end: a lock that ends with it would protect nothing, and the
 * exit code would not show that.
 */
function mustKnowOwner(command: Command): void {
  const wrapper = findWrapper(process.env);
  if (wrapper === undefined || command.getOptionValueSource("pid") !== "default") return;
  command.error(
    `error: the lock would belong to ${wrapper}, which ends at once. Say which process it belongs to; in a shell script: --pid $$`,
  );
}

function open(file: string, { pid, stale, directory = false }: Flags): Semaphore {
  mustBeFolder(file, "a semaphore file");
  return new Semaphore(file, { owner: { pid }, staleMs: stale, form: directory ? "directory" : "file" });
}

function describe({ locked, info, stale, mine }: SemaphoreStatus): string {
  if (!locked) return "free";
  const lines = [`locked${stale ? ", but stale" : ""}${mine ? ", by the calling process" : ""}`];
  if (info === undefined) lines.push("by an unknown process: it has no readable record");
  else lines.push(`pid: ${info.pid}`, `since: ${new Date(info.timestamp * 1000).toISOString()}`);
  if (info?.tag !== undefined) lines.push(`tag: ${info.tag}`);
  return lines.join("\n");
}

function parsePid(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError("Write the number of a process.");
  return Number(text);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process exists and belongs to another user. Any other error: there is no such
    // process.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
