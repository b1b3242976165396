// The command `holdfast objects import`: the files of a folder become objects.
import { Option, type Command } from "commander";
import { importFolder } from "../../../objects/index.ts";
import { printable } from "../../output.ts";
import { Progress } from "../../progress.ts";
import type { Run } from "../../run.ts";
import { bucketNameOf, exits, objectsVerb, withObjects, type BucketFlags } from "./place.ts";

interface ImportFlags extends BucketFlags {
  readonly prefix?: string;
}

export function registerImport(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "import", {
    summary: "take the files of a folder in",
    description:
      "Puts each file below FOLDER under its path as the key, and changes nothing there. A file that is in the bucket already, with the same bytes, is left out: running it again goes on where it was interrupted, and puts what has changed since. Symbolic links are not followed. It stops at the first file that cannot be read.",
    options: [new Option("--prefix <prefix>", "what every key begins with, as archive/2026/")],
    examples: ["holdfast objects import /mnt/shop /srv/photos --bucket photos --prefix archive/"],
    exits: {
      done: "all of it is there",
      ...exits,
      wrongUsage: "wrong usage, or FOLDER is no folder",
      verificationFailed: "a file has changed while it was read, or the file system cannot be used",
    },
  }).argument("<FOLDER>", "the folder to take in");
  command.action(async (directory: string, folder: string, flags: ImportFlags) => {
    await withObjects(directory, run, async (store) => {
      using progress = new Progress(run, "imported bytes");
      const imported = await importFolder(store, bucketNameOf(flags), folder, {
        prefix: flags.prefix,
        signal: run.signal,
        onProgress: progress.tell,
      });
      for (const path of imported.skipped)
        run.output.warning({
          name: "Skipped",
          message: `${printable(path)} is neither a file nor a folder, or its name is not UTF-8: it was left out`,
        });
      const { files, bytes, unchanged } = imported;
      run.output.result(
        { bucket: bucketNameOf(flags), ...imported },
        () => `${files} object(s) put, ${bytes} bytes; ${unchanged} unchanged.`,
      );
    });
  });
}
