// The command `holdfast handoff work`: a shell command for each ticket, whose claim is kept while the command runs.
import { InvalidArgumentError, Option, type Command } from "commander";
import type { DeadLetter, Delivery } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { exitCodes } from "../../exit-codes.ts";
import { findPartDirectory, partVerb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import {
  boxNoun,
  exits,
  nothingThere,
  pausedText,
  tellNothing,
  warnOfDeadLetter,
  withHandoff,
  type BoxFlags,
  type OpenBox,
} from "./box.ts";
import { runOnTicket, type CommandEnd } from "./shell-command.ts";

interface WorkFlags extends BoxFlags {
  readonly exec: string;
  readonly jobs: number;
  readonly attempts: number;
  readonly once?: boolean;
  readonly timeout?: number;
  readonly drain: number;
}

export function registerWork(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "work", {
    summary: "run a shell command for each ticket",
    description:
      "Claims tickets and runs a shell command for each. The claim is kept as long as the command runs; when this process dies, the ticket goes back. The command finds in its environment HOLDFAST_FILE (the path of the first file), HOLDFAST_FILES (the directory with all of them, to be read only), HOLDFAST_ID, HOLDFAST_KEY, HOLDFAST_ATTEMPT, HOLDFAST_GROUP, HOLDFAST_META (JSON) and HOLDFAST_BOX, and the first file on its stdin. It ends with 0: the ticket is done; 65: it goes to the dead letters; anything else, 75 among it, or a signal: it is tried again later, until it had its attempts. The end of its stderr is kept as the reason. What it prints goes to stderr; on stdout stands a line for each ticket that ended here: id, done, retry or fail, attempt. A command may run twice for one ticket, if this machine dies in between: hand HOLDFAST_KEY on to what must happen once. On SIGTERM or Ctrl-C nothing new is taken, and what runs is waited for.",
    options: [
      new Option("--exec <command>", "what to run, in a shell").makeOptionMandatory(),
      new Option("-j, --jobs <n>", "so many at the same time").argParser(parsePositive).default(1),
      new Option("--attempts <n>", "after so many attempts a ticket goes to the dead letters")
        .argParser(parsePositive)
        .default(5),
      new Option("--timeout <duration>", "a command that runs longer is ended, and tried again").argParser(
        parseDuration,
      ),
      new Option("--once", "work off what is there now, and end: for cron"),
      new Option("--drain <duration>", "how long to wait for what runs when told to end")
        .argParser(parseDuration)
        .default(30_000, "30s"),
    ],
    examples: [
      "holdfast handoff work /mnt/shop/invoices --exec 'import-invoice \"$HOLDFAST_FILE\"' -j 4",
      "*/5 * * * * holdfast handoff work /mnt/shop/invoices --once --quiet --exec 'psql -c \"copy invoices from stdin\"'",
    ],
    exits: {
      done: "it was told to end; with --once: all that was there was worked on",
      ...exits,
      nothingToDo: `with --once: there was nothing to do; ${nothingThere}`,
      tryAgain: "with --once: the box is paused",
    },
  });
  command.action(async (directory: string, flags: WorkFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    await withHandoff(path, {}, async (box) => {
      if (flags.once === true) {
        const { paused, pauseReason } = await box.stats();
        if (paused) return tellNothing(run, "PAUSED", pausedText(path, pauseReason), exitCodes.tryAgain);
      }
      const count = await work(box, flags, run);
      if (flags.once === true && count === 0 && !run.signal.aborted)
        tellNothing(run, "NO_TICKET", `there was nothing to do in ${path}`);
    });
  });
}

/** What the exit code of a command means. */
class CommandFailed extends Error {
  /** The reason is what the command said, and nothing of ours. */
  override readonly name: string = "";
  readonly isForGood: boolean;

  constructor({ exitCode, said }: CommandEnd) {
    super(`exit ${exitCode}${said === "" ? "" : `: ${said}`}`);
    this.isForGood = exitCode === exitCodes.failedForGood;
  }
}

/** Runs until it is told to end, or with `once` until there is nothing more. How many tickets it had. */
async function work(box: OpenBox, flags: WorkFlags, run: Run): Promise<number> {
  using writer = new LineWriter(run.pipes);
  const lettingGo = new AbortController();
  let count = 0;
  /** Tickets whose command has ended, and was told of. */
  const told = new Set<string>();
  let saying: Promise<void> = Promise.resolve();
  const onDeadLetter = (ticket: DeadLetter): void => {
    if (!told.delete(ticket.id)) {
      count++;
      warnOfDeadLetter(run, ticket);
    }
    saying = saying.then(() => say(ticket, "fail"));
    // What cannot be written fails the end.
    saying.catch(() => undefined);
  };
  const say = async (
    { id, attempt }: Pick<Delivery, "id" | "attempt">,
    outcome: "done" | "retry" | "fail",
  ): Promise<void> => {
    if (run.output.isJson) await writer.writeJson({ id, outcome, attempt });
    else await writer.write(`${id} ${outcome} ${attempt}\n`);
  };
  const outcomeOf = (error: unknown, { attempt }: Delivery): "retry" | "fail" =>
    (error instanceof CommandFailed && error.isForGood) || attempt >= flags.attempts ? "fail" : "retry";
  const consumer = box.consume(
    async (delivery) => {
      count++;
      const late = new AbortController();
      const timer = flags.timeout === undefined ? undefined : setTimeout(() => late.abort(), flags.timeout);
      const stop = AbortSignal.any([delivery.signal, lettingGo.signal, late.signal]);
      try {
        const end = await runOnTicket(flags.exec, delivery, { box: box.directory, stderr: run.pipes.stderr, stop });
        if (end.exitCode === 0) {
          await delivery.ack();
          return await say(delivery, "done");
        }
        // It is another process's by now.
        delivery.signal.throwIfAborted();
        // The time to drain was over: not its fault, so the attempt does not count.
        if (lettingGo.signal.aborted) return await delivery[Symbol.asyncDispose]();
        const failure = new CommandFailed(
          late.signal.aborted ? { ...end, said: `it took longer than ${flags.timeout} ms. ${end.said}`.trim() } : end,
        );
        run.output.note(`holdfast: ticket ${delivery.id}: ${failure.message}`);
        if (outcomeOf(failure, delivery) === "retry") await say(delivery, "retry");
        // The line follows when it is among the dead letters.
        else told.add(delivery.id);
        throw failure;
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
    run.output.note("holdfast: taking nothing new, and waiting for what runs");
    timer = setTimeout(() => lettingGo.abort(), flags.drain);
    // Longer than the commands have to end.
    void consumer.stop({ drainMs: flags.drain + 10_000 });
  };
  if (run.signal.aborted) drain();
  else run.signal.addEventListener("abort", drain, { once: true });
  try {
    await consumer.done;
    await saying;
    await writer.end();
  } finally {
    run.signal.removeEventListener("abort", drain);
    clearTimeout(timer);
  }
  return count;
}

function parsePositive(text: string): number {
  const count = Number(text);
  if (/^\d{1,4}$/.test(text) && count >= 1) return count;
  throw new InvalidArgumentError("Write a whole number from 1 to 9999.");
}
