// The command `holdfast publish`: what comes in on stdin becomes a file, whole or not at all. No box is needed.
import { Option, type Command } from "commander";
import { publishFile, type ExportRule } from "../../handoff/index.ts";
import { endHelp } from "../help.ts";
import { failed, wrongUsage } from "../part-verb.ts";
import type { Run } from "../run.ts";
import { parseCount } from "./events/log.ts";
import { inputBody } from "./handoff/input.ts";

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
      "Writes stdin to a hidden name beside FILE, makes it durable, and then gives it its name in one step: a program that reads FILE never sees a part of it. With --done a done file follows, so that also its receiver knows that it is complete. Prints name, size and SHA-256.",
    )
    .argument("<FILE>", "the file to make")
    .addOption(new Option("--done [name]", "then a done file (default: {name}.done)"))
    .addOption(
      new Option("--content <what>", "with --done: what it says (default: manifest)").choices([
        "manifest",
        "sha256sum",
        "empty",
      ]),
    )
    .addOption(new Option("--replace", "put it in the place of a file of that name"))
    .addOption(new Option("--records <n>", "how many records it has, for the done file").argParser(parseCount))
    .addOption(new Option("--key <key>", "its idempotency key, for the done file"));
  endHelp(publish, {
    examples: [
      "holdfast publish /mnt/www/prices.json --replace < prices.json",
      "report --csv | holdfast publish /mnt/erp/in/sales.csv --done",
    ],
    exits: {
      done: "the file is there, whole and durable",
      failed: `${failed}; a file of that name is there`,
      wrongUsage,
      tryAgain: "the answer was lost: look whether FILE is there, or try again with --replace",
    },
  });
  publish.action(async (path: string, flags: PublishFlags) => {
    const { done, content, replace, records, key } = flags;
    if (content !== undefined && done === undefined) publish.error("error: --content goes with --done");
    const rule: ExportRule | undefined =
      done === undefined ? undefined : { done: done === true ? undefined : done, content };
    const file = await publishFile(path, inputBody(run), { done: rule, replace, records, key, signal: run.signal });
    run.output.result(file, () => `${file.sha256}  ${file.name} (${file.size} bytes)`);
  });
}
