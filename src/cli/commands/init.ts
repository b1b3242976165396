// The command `holdfast init`: turns a folder into a store, even if it already contains a lone
// part.
import { Option, type Command } from "commander";
import { adoptStore, openStore } from "../../index.ts";
import { endHelp } from "../help.ts";
import { mustBeFolder } from "./location.ts";
import { asGiven } from "../own-words.ts";
import { failed } from "../part-verb.ts";
import type { Run } from "../run.ts";

interface InitFlags {
  readonly adopt?: boolean;
  readonly name?: string;
}

export function registerInit(command: Command, run: Run): void {
  command
    .description("Creates a store in DIR, or in a database. Does nothing if there is one; other files in DIR stay.")
    .argument("<DIR>", "the folder, created if missing; or postgres://USER@HOST/DATABASE?store=NAME")
    .option(
      "--adopt",
      "move the log, box, object store, locks or tree in DIR to events/NAME, handoff/NAME, objects or files of a new store; end its programs first, and run it again if interrupted",
    )
    .addOption(new Option("--name <name>", "with --adopt: the name of the log or box in the store").default("main"))
    .action(async (directory: string, flags: InitFlags) => {
      if (flags.adopt === true) mustBeFolder(directory, "--adopt");
      const adopted = flags.adopt === true ? await adoptStore(directory, { name: flags.name }) : undefined;
      await using store = await openStore(directory);
      const shown = adopted && { ...adopted, directory: asGiven(directory, adopted.directory) };
      const result = { directory, id: store.id, ...(shown === undefined ? {} : { adopted: shown }) };
      run.output.result(result, () =>
        shown === undefined
          ? `${directory} is a store.`
          : `${directory} is a store. Its ${shown.room} are in ${shown.directory} now.`,
      );
    });
  endHelp(command, {
    examples: [
      "holdfast init /mnt/shop",
      "holdfast init /mnt/shop/events --adopt",
      "holdfast init postgres://shop@db/shop?store=main",
    ],
    exits: {
      done: "DIR is a store",
      failed: `${failed}; with --adopt: there is nothing to adopt`,
      wrongUsage: "wrong usage; DIR has a part of its own, lies in another store, or cannot be renamed",
      verificationFailed: "the file system of DIR cannot be used",
      tryAgain: "with --adopt: another process has the part open",
    },
  });
}
