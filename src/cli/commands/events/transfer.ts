// The commands `holdfast events export` and `import`: a whole log through a pipe, and into another
// log.
import type { Command } from "commander";
import { exportEvents, importEvents, type Imported, type LogMode } from "../../../events/index.ts";
import type { Run } from "../../run.ts";
import { modeOption, timeoutOption } from "./append.ts";
import { inputChunks, LineWriter } from "./lines.ts";
import { damaged, nothingThere, upToOption, type LogFlags, logNoun } from "./log.ts";
import { failed, findPartDirectory, partDirectoryOf, partVerb, wrongUsage } from "../../part-verb.ts";
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
    summary: "print a whole log, to be imported elsewhere",
    description:
      "Prints the whole log as NDJSON, a line for each append with its time, ids and condition, between a record that begins the export and one that ends it. `holdfast events import` reads it. With --up-to also of a log that is damaged behind that position: `holdfast events verify` tells which one.",
    options: [upToOption("only appends that end with this position, or before")],
    examples: [
      "holdfast events export /var/lib/shop/events > shop.ndjson",
      "holdfast events export /var/lib/shop/events | holdfast events import /mnt/shop/events",
    ],
    exits: {
      done: "all printed, or its reader has gone",
      failed,
      wrongUsage,
      nothingToDo: nothingThere,
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
    summary: "bring an export into a log",
    description:
      "Reads an export on stdin into a log that is empty, or has the beginning of it: positions, ids, times and conditions stay what they were. Running it again adds nothing, or goes on where it was interrupted. It is refused where the log has something else. No process can append meanwhile. This is also the way from a log of one machine (local) to one on a share. Makes the log if there is none.",
    options: [timeoutOption(), modeOption()],
    examples: [
      "holdfast events import /mnt/shop/events < shop.ndjson",
      "holdfast events export /var/lib/shop/events | holdfast events import /mnt/shop/events --mode share",
    ],
    exits: {
      done: "all of it is there",
      failed,
      wrongUsage,
      notHeld: "another writer took over: try again",
      verificationFailed: "the export is not whole, or the log has something else, or is damaged",
      tryAgain: "others were writing for too long, or the answer was lost: try again",
    },
  });
  command.action(async (directory: string, flags: ImportFlags) => {
    const path = await partDirectoryOf(logNoun, directory, flags, command, run);
    const imported = await bringIn(path, flags, run);
    run.output.result({ directory: path, ...imported }, () =>
      imported.added === 0
        ? `Everything was there already, up to position ${imported.position}.`
        : `Imported ${imported.added} event(s), up to position ${imported.position}.`,
    );
  });
}

async function bringIn(path: string, { mode, timeout: timeoutMs }: ImportFlags, run: Run): Promise<Imported> {
  using progress = new Progress(run, "imported events");
  return await importEvents(path, inputChunks(run), { mode, timeoutMs, signal: run.signal, onProgress: progress.tell });
}
