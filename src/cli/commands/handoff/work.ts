// The command `holdfast handoff work`: runs a shell command for each ticket, and keeps the claim
// while it runs.
import { InvalidArgumentError, Option, type Command } from "commander";
import type { DeadLetter, Delivery, Handoff } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { exitCodes } from "../../exit-codes.ts";
import { findPartDirectory, partVerb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import {
  boxNoun,
  exits,
  failIfIdleOption,
  pausedText,
  reportIdle,
  reportNothingDone,
  warnOfDeadLetter,
  withHandoff,
  type BoxFlags,
} from "./box.ts";
import type { ProcessGroup } from "./process-group.ts";
import { NotRun, runOnTicket, type CommandEnd } from "./shell-command.ts";

interface WorkFlags extends BoxFlags {
  readonly exec: string;
  readonly jobs: number;
  readonly attempts: number;
  readonly once?: boolean;
  readonly failIfIdle?: boolean;
  readonly timeout?: number;
  readonly drain: number;
}

export function registerWork(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "work", {
    summary: "run a shell command for each ticket",
    description:
      "Runs a shell command for each ticket. Its exit code settles the ticket: 0 done, 65 dead letter, other: retry.",
    options: [
      new Option(
        "--exec <command>",
        "the shell command; it finds the first file on stdin and in $HOLDFAST_FILE",
      ).makeOptionMandatory(),
      new Option("-j, --jobs <n>", "run this many at the same time").argParser(parsePositive).default(1),
      new Option("--attempts <n>", "after this many attempts a ticket becomes a dead letter")
        .argParser(parsePositive)
        .default(5),
      new Option(
        "--timeout <duration>",
        "end a command that runs longer, with every process it started, and retry the ticket",
      ).argParser(parseDuration),
      new Option("--once", "work on the available tickets, then end: for cron"),
      failIfIdleOption("with --once: exit with 3 if there was nothing to do"),
      new Option("--drain <duration>", "when stopped, how long to let running commands finish")
        .argParser(parseDuration)
        .default(30_000, "30s"),
    ],
    examples: [
      "holdfast handoff work /mnt/shop/invoices --exec 'import-invoice \"$HOLDFAST_FILE\"' -j 4",
      "*/5 * * * * holdfast handoff work /mnt/shop/invoices --once --quiet --exec 'psql -c \"copy invoices from stdin\"'",
    ],
    exits: {
      done: "stopped; with --once: all available tickets were worked on, even if there were none",
      ...exits,
      nothingToDo: "with --fail-if-idle: there was nothing to do",
      tryAgain: "with --once: the box is paused",
    },
  });
  command.action(async (directory: string, flags: WorkFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    await withHandoff(path, {}, async (box) => {
      if (flags.once === true) {
        const { paused, pauseReason } = await box.stats();
        if (paused) return reportNothingDone(run, "PAUSED", pausedText(path, pauseReason), exitCodes.tryAgain);
      }
      const count = await work(box, flags, run);
      if (flags.once !== true || count > 0 || run.signal.aborted) return;
      reportIdle(run, `there was nothing to do in ${path}`, flags);
    });
  });
}

const interruptions = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The delay before a retry if the machine could not start the command. */
const shortageMs = 5_000;

/** Thrown if the command's exit code is a failure. */
class CommandFailed extends Error {
  /** No name, so that the reason is only the command's own output. */
  override readonly name: string = "";
  readonly isForGood: boolean;

  constructor({ exitCode, said }: Pick<CommandEnd, "exitCode" | "said">) {
    super(`exit ${exitCode}${said === "" ? "" : `: ${said}`}`);
    this.isForGood = exitCode === exitCodes.failedForGood;
  }
}

/**
 * Processes tickets until it is told to end, or with `once` until none is left. Returns their
 * number.
 */
async function work(box: Handoff, flags: WorkFlags, run: Run): Promise<number> {
  using writer = new LineWriter(run.pipes);
  const lettingGo = new AbortController();
  let count = 0;
  /** Tickets whose command has ended and whose outcome was reported. */
  const told = new Set<string>();
  const running = new Set<ProcessGroup>();
  const note = (text: string): void => run.output.note(text);
  let saying: Promise<void> = Promise.resolve();
  const onDeadLetter = (ticket: DeadLetter): void => {
    if (!told.delete(ticket.id)) {
      count++;
      warnOfDeadLetter(run, ticket);
    }
    saying = saying.then(() => say(ticket, "fail"));
    // The error of a failed write, which makes the whole run fail at its end.
    saying.catch(() => undefined);
  };
  const say = async (
    { id, attempt }: Pick<Delivery, "id" | "attempt">,
    outcome: "done" | "retry" | "fail",
  ): Promise<void> => {
    if (run.output.isJson) await writer.writeJson({ id, outcome, attempt });
    else await writer.write(`${id} ${outcome} ${attempt}\n`);
  };
  const isShortage = (error: unknown): boolean => error instanceof NotRun && error.isShortage;
  const outcomeOf = (error: unknown, { attempt }: Delivery): "retry" | "fail" =>
    !isShortage(error) && ((error instanceof CommandFailed && error.isForGood) || attempt >= flags.attempts)
      ? "fail"
      : "retry";
  /** Reports what will happen to the ticket, and rethrows the error. */
  const fail =
    (delivery: Delivery) =>
    async (failure: unknown): Promise<never> => {
      // If the claim was lost, another process decides about the ticket.
      if (delivery.signal.aborted || !(failure instanceof CommandFailed || failure instanceof NotRun)) throw failure;
      note(`holdfast: ticket ${delivery.id}: ${failure.message}`);
      // Returns the ticket without counting the attempt. The consumer then finds it settled.
      if (isShortage(failure)) await delivery.postpone({ delayMs: shortageMs });
      if (outcomeOf(failure, delivery) === "retry") await say(delivery, "retry");
      // `onDeadLetter` prints the line, once the ticket is a dead letter.
      else told.add(delivery.id);
      throw failure;
    };
  const consumer = box.consume(
    async (delivery) => {
      count++;
      const late = new AbortController();
      const timer = flags.timeout === undefined ? undefined : setTimeout(() => late.abort(), flags.timeout);
      const stop = AbortSignal.any([delivery.signal, lettingGo.signal, late.signal]);
      try {
        const { stderr } = run.pipes;
        const surroundings = { box: box.directory, stderr, stop, running, note };
        const end = await runOnTicket(flags.exec, delivery, surroundings).catch(fail(delivery));
        // Ignores the exit code: many programs that are asked to end exit with 0, with half of
        // their work done.
        if (end.exitCode === 0 && !end.wasCut) {
          await delivery.ack();
          return await say(delivery, "done");
        }
        // Another process has the ticket now.
        delivery.signal.throwIfAborted();
        // The time to drain is over. That is not the ticket's fault, so the attempt does not count.
        if (lettingGo.signal.aborted) return await delivery[Symbol.asyncDispose]();
        const failure = new CommandFailed(
          late.signal.aborted ? { ...end, said: `it took longer than ${flags.timeout} ms. ${end.said}`.trim() } : end,
        );
        return await fail(delivery)(failure);
      } finally {
        clearTimeout(timer);
      }
    },
    {
      concurrency: flags.jobs,
      attempts: flags.attempts,
      onError: outcomeOf,
      onDeadLetter,
      onPause: (reason) =>
        run.output.note(`holdfast: ${pausedText(box.directory, reason)}; waiting until it is resumed`),
      ...(flags.once === true ? { idleMs: 0 } : {}),
    },
  );
  let timer: NodeJS.Timeout | undefined;
  const drain = (): void => {
    run.output.note("holdfast: taking no new tickets, and waiting for running commands");
    timer = setTimeout(() => lettingGo.abort(), flags.drain);
    // Longer than the time that commands have to end.
    void consumer.stop({ drainMs: flags.drain + 10_000 });
    // A second signal ends this process without a drain. Kills the commands first: none may keep
    // running without a claim.
    for (const name of interruptions) process.once(name, killAll);
  };
  const killAll = (name: NodeJS.Signals): void => {
    for (const group of running) group.kill();
    for (const each of interruptions) process.off(each, killAll);
    process.kill(process.pid, name);
  };
  if (run.signal.aborted) drain();
  else run.signal.addEventListener("abort", drain, { once: true });
  try {
    await consumer.done;
    await saying;
    await writer.end();
  } finally {
    run.signal.removeEventListener("abort", drain);
    for (const name of interruptions) process.off(name, killAll);
    clearTimeout(timer);
  }
  return count;
}

export function parsePositive(text: string): number {
  const count = Number(text);
  if (/^\d{1,4}$/.test(text) && count >= 1) return count;
  throw new InvalidArgumentError("Write a whole number from 1 to 9999.");
}
