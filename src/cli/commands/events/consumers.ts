// The command `holdfast events consumers`: the progress of each consumer of a log, and the process
// that runs it.
import type { Command } from "commander";
import type { ConsumerInfo } from "../../../events/index.ts";
import { formatHolder } from "../../locking/held-locks.ts";
import { printable, type Page } from "../../output.ts";
import { failed, findPartDirectory, partVerb, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { formatTable } from "../../table.ts";
import { damaged, logNoun, missing, withEvents, type LogFlags } from "./log.ts";

const titles = ["consumer", "position", "lag", "runs in", "since", "waiting"] as const;

export function registerConsumers(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "consumers", {
    summary: "list consumers with their position, lag and process",
    description: "Lists the consumers of a log: position, lag, the process that runs it, and the processes that wait.",
    examples: [
      "holdfast events consumers /mnt/shop/events",
      "holdfast events consumers /mnt/shop/events --json | jq 'select(.lag > 1000) | .name'",
    ],
    exits: {
      done: "listed, even if there are none",
      failed,
      wrongUsage,
      missing,
      verificationFailed: damaged,
    },
  });
  command.action(async (directory: string, flags: LogFlags) => {
    const path = await findPartDirectory(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    const consumers = await withEvents(path, {}, (store) => store.consumers());
    run.output.list(consumers, (page) => formatConsumers(consumers, page));
  });
}

function formatConsumers(consumers: readonly ConsumerInfo[], page: Page): string {
  if (consumers.length === 0) return "There are no consumers.";
  const rows = consumers.map(({ name, position, lag, holder, since, waiting, problem }) => [
    printable(name),
    position === undefined ? "?" : String(position),
    lag === undefined ? "?" : String(lag),
    holder === undefined ? "none" : formatHolder(holder),
    since?.toISOString() ?? "",
    `${waiting.length}${problem === undefined ? "" : `, ${printable(problem)}`}`,
  ]);
  return formatTable(titles, rows, page).join("\n");
}
