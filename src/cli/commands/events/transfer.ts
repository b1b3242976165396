// The commands `holdfast events export` and `import`: a whole log through a pipe, and into another
// log.
import type { Command } from "commander";
import { exportEvents, importEvents, type ImportResult, type LogMode } from "../../../events/index.ts";
import { explain, storeLockOf } from "../../locking/explained-wait.ts";
import type { Run } from "../../run.ts";
import { modeOption, timeoutOption } from "./append.ts";
import { inputChunks, LineWriter } from "./lines.ts";
import { damaged, missing, upToOption, type LogFlags, logNoun } from "./log.ts";
import { failed, findPartDirectory, noCreateOption, partDirectoryOf, partVerb, wrongUsage } from "../../part-verb.ts";
import { Progress } from "../../progress.ts";

interface ExportFlags extends LogFlags {
  readonly upTo?: number;
}

interface ImportFlags extends LogFlags {
  readonly mode?: LogMode;
  readonly timeout: number;
}

export function registerExport(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "export", {
    summary: "print a whole log, for import",
    description: "Prints the whole log as NDJSON, one line per append. `holdfast events import` reads it.",
    options: [upToOption("only appends that end at or before this position; works on a log that is damaged beyond it")],
    examples: [
      "holdfast events export /var/lib/shop/events > shop.ndjson",
      "holdfast events export /var/lib/shop/events | holdfast events import /mnt/shop/events",
    ],
    exits: {
      done: "all printed, or the reader has closed the pipe",
      failed,
      wrongUsage,
      missing,
      verificationFailed: damaged,
    },
  });
  command.action(async (directory: string, flags: ExportFlags) => {
    const path = await findPartDirectory(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    using progress = new Progress(run, "exported events");
    using writer = new LineWriter(run.pipes);
    for await (const text of exportEvents(path, {
      upTo: flags.upTo,
      signal: run.signal,
      onProgress: progress.tell,
    })) {
      await writer.write(text);
      if (writer.isUnread) return;
    }
    await writer.end();
  });
}

export function registerImport(events: Command, run: Run): void {
  const command = partVerb(events, logNoun, "import", {
    summary: "import an export into a log",
    description: "Reads an export from stdin into an empty log, or continues one; ids, times and positions stay.",
    options: [timeoutOption(), modeOption(), noCreateOption("log")],
    examples: [
      "holdfast events import /mnt/shop/events < shop.ndjson",
      "holdfast events export /var/lib/shop/events | holdfast events import /mnt/shop/events --mode share",
    ],
    exits: {
      done: "all imported, now or before",
      failed,
      wrongUsage,
      missing: "with --no-create: there is no log in DIR",
      notHeld: "another writer took over: try again",
      verificationFailed: "the export is incomplete, the log has other events, or the log is damaged",
      tryAgain: "timed out behind other writers, or the answer was lost: try again",
    },
  });
  command.action(async (directory: string, flags: ImportFlags) => {
    const path = await partDirectoryOf(logNoun, directory, flags, command, run);
    if (path === undefined) return;
    const imported = await bringIn(path, flags, run);
    run.output.result({ directory: path, ...imported }, () =>
      imported.added === 0
        ? `Everything was there already, up to position ${imported.position}.`
        : `Imported ${imported.added} event(s), up to position ${imported.position}.`,
    );
  });
}

async function bringIn(path: string, { mode, timeout: timeoutMs }: ImportFlags, run: Run): Promise<ImportResult> {
  using progress = new Progress(run, "imported events");
  const options = { mode, timeoutMs, signal: run.signal, onProgress: progress.tell };
  return await explain(run, { ...storeLockOf(path), wait: () => importEvents(path, inputChunks(run), options) });
}
