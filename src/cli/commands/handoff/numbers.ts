// The commands `holdfast handoff stats` and `watch`: how many tickets there are, once or as it changes.
import { setTimeout as sleep } from "node:timers/promises";
import { Option, type Command } from "commander";
import type { HandoffStats } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { printable } from "../../output.ts";
import { findPartDirectory, partVerb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { watchReader } from "../../stream-errors.ts";
import { LineWriter } from "../events/lines.ts";
import { boxNoun, exits, nothingThere, withHandoff, type BoxFlags } from "./box.ts";
import { prometheusText } from "./prometheus.ts";

interface StatsFlags extends BoxFlags {
  readonly prom?: boolean;
}

export function registerStats(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "stats", {
    summary: "how many tickets are in which state",
    description:
      "Counts the tickets of each state, the processes that work on them, and how long the oldest one waits. With --prom in the text format of Prometheus, for the textfile collector of its node exporter.",
    options: [new Option("--prom", "in the text format of Prometheus").conflicts("json")],
    examples: [
      "holdfast handoff stats /mnt/shop/invoices",
      "holdfast handoff stats /mnt/shop/invoices --prom > /var/lib/node_exporter/invoices.prom",
    ],
    exits: { done: "printed", ...exits, nothingToDo: nothingThere },
  });
  command.action(async (directory: string, flags: StatsFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const stats = await withHandoff(path, {}, (box) => box.stats());
    if (flags.prom !== true) return run.output.result({ directory: path, ...stats }, () => inLines(stats));
    run.pipes.stdout.write(prometheusText(path, stats));
  });
}

interface WatchFlags extends BoxFlags {
  readonly every: number;
}

export function registerWatch(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "watch", {
    summary: "print the numbers of a box as they change",
    description:
      "Prints a line with the numbers of the box, and another one each time they have changed, until it is told to end (Ctrl-C, SIGTERM), or its reader has gone.",
    options: [
      new Option("--every <duration>", "how often to look: 2s, 500ms").argParser(parseDuration).default(2_000, "2s"),
    ],
    examples: [
      "holdfast handoff watch /mnt/shop/invoices",
      "holdfast handoff watch /mnt/shop/invoices --json | jq .incoming",
    ],
    exits: { done: "it was told to end, or its reader has gone", ...exits, nothingToDo: nothingThere },
  });
  command.action(async (directory: string, flags: WatchFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    await withHandoff(path, {}, async (box) => {
      using writer = new LineWriter(run.pipes);
      using reader = watchReader();
      let said = "";
      while (!reader.signal.aborted && !writer.isUnread) {
        run.signal.throwIfAborted();
        const stats = await box.stats();
        const { oldestIncomingMs: _ageMs, ...counts } = stats;
        const text = JSON.stringify(counts);
        if (text !== said)
          await writer.write(`${run.output.isJson ? JSON.stringify(stats) : inLines(stats).replaceAll("\n", "  ")}\n`);
        said = text;
        await sleep(flags.every, undefined, { signal: AbortSignal.any([run.signal, reader.signal]) }).catch(
          () => undefined,
        );
      }
    });
  });
}

function inLines(stats: HandoffStats): string {
  return Object.entries(stats)
    .map(([name, value]) => `${name} ${printable(String(value))}`)
    .join("\n");
}
