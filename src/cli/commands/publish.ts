// The command `holdfast publish`: turns stdin into a file, whole or not at all. It needs no box.
import { Option, type Command } from "commander";
import { publishFile, type ExportRule } from "../../handoff/index.ts";
import { endHelp } from "../help.ts";
import { mustBeFolder } from "./location.ts";
import { failed, wrongUsage } from "../part-verb.ts";
import type { Run } from "../run.ts";
import { parseCount } from "./events/log.ts";
import { inputBody, parseShortText } from "./handoff/input.ts";

interface PublishFlags {
  readonly done?: string | true;
  readonly content?: ExportRule["content"];
  readonly replace?: true;
  readonly records?: number;
  readonly key?: string;
}

export function registerPublish(publish: Command, run: Run): void {
  publish
    .description(
      "Writes stdin to FILE: readers see the whole file or none, and it is durable. Prints name, size and SHA-256.",
    )
    .argument("<FILE>", "the file to create")
    .addOption(new Option("--done [name]", "then write a done file (default: {name}.done)"))
    .addOption(
      new Option("--content <what>", "with --done: its content (default: manifest)").choices([
        "manifest",
        "sha256sum",
        "empty",
      ]),
    )
    .addOption(new Option("--replace", "replace an existing file"))
    .addOption(new Option("--records <n>", "the number of records, for the done file").argParser(parseCount))
    .addOption(new Option("--key <key>", "the idempotency key, for the done file").argParser(parseShortText));
  endHelp(publish, {
    examples: [
      "holdfast publish /mnt/www/prices.json --replace < prices.json",
      "report --csv | holdfast publish /mnt/erp/in/sales.csv --done",
    ],
    exits: {
      done: "the file is complete and durable",
      failed: `${failed}; the file exists`,
      wrongUsage,
      missing: "the directory of FILE is missing: is the share mounted?",
      tryAgain: "the answer was lost: check whether FILE exists, or try again with --replace",
    },
  });
  publish.action(async (path: string, flags: PublishFlags) => {
    const { done, content, replace, records, key } = flags;
    mustBeFolder(path, "publish");
    if (content !== undefined && done === undefined) publish.error("error: --content goes with --done");
    const rule: ExportRule | undefined =
      done === undefined ? undefined : { done: done === true ? undefined : done, content };
    const file = await publishFile(path, inputBody(run), { done: rule, replace, records, key, signal: run.signal });
    run.output.result(file, () => `${file.sha256}  ${file.name} (${file.size} bytes)`);
  });
}
