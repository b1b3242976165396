// The commands `holdfast handoff stats` and `watch`: the counts of tickets, once or on every
// change.
import { setTimeout as sleep } from "node:timers/promises";
import { Option, type Command } from "commander";
import type { HandoffStats } from "../../../handoff/index.ts";
import { parseDuration } from "../../duration.ts";
import { printable } from "../../output.ts";
import { findPartDirectory, partVerb } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { watchReader } from "../../stream-errors.ts";
import { LineWriter } from "../events/lines.ts";
import { boxNoun, exits, withHandoff, type BoxFlags } from "./box.ts";
import { boxMetrics } from "../../../handoff/operate/box-metrics.ts";
import { shownLocation } from "../location.ts";

interface StatsFlags extends BoxFlags {
  readonly prom?: boolean;
}

export function registerStats(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "stats", {
    summary: "count the tickets in each state",
    description: "Prints the number of tickets in each state, the workers, and the age of the oldest waiting ticket.",
    options: [
      new Option("--prom", "print the Prometheus text format, for the node exporter's textfile collector").conflicts(
        "json",
      ),
    ],
    examples: [
      "holdfast handoff stats /mnt/shop/invoices",
      "holdfast handoff stats /mnt/shop/invoices --prom > /var/lib/node_exporter/invoices.prom",
    ],
    exits: { done: "printed", ...exits },
  });
  command.action(async (directory: string, flags: StatsFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    const stats = await withHandoff(path, {}, (box) => box.stats());
    if (flags.prom !== true) return run.output.result({ directory: path, ...stats }, () => inLines(stats));
    run.pipes.stdout.write(boxMetrics([{ box: shownLocation(path), stats }]));
  });
}

interface WatchFlags extends BoxFlags {
  readonly every: number;
}

export function registerWatch(handoff: Command, run: Run): void {
  const command = partVerb(handoff, boxNoun, "watch", {
    summary: "print the numbers of a box as they change",
    description: "Prints the numbers of a box, and again whenever they change, until it is stopped.",
    options: [
      new Option("--every <duration>", "how often to check: 2s, 500ms").argParser(parseDuration).default(2_000, "2s"),
    ],
    examples: [
      "holdfast handoff watch /mnt/shop/invoices",
      "holdfast handoff watch /mnt/shop/invoices --json | jq .incoming",
    ],
    exits: { done: "stopped, or the reader has closed the pipe", ...exits },
  });
  command.action(async (directory: string, flags: WatchFlags) => {
    const path = await findPartDirectory(boxNoun, directory, flags, command, run);
    if (path === undefined) return;
    await withHandoff(path, {}, async (box) => {
      using writer = new LineWriter(run.pipes);
      using reader = watchReader();
      let said = "";
      while (!reader.signal.aborted && !writer.isUnread && !run.signal.aborted) {
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
