// The command `holdfast objects import`: turns the files of a folder into objects.
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
    summary: "put the files of a folder",
    description: "Puts each file below FOLDER under its path as the key. Skips files that the bucket already has.",
    options: [new Option("--prefix <prefix>", "a prefix for every key, such as archive/2026/")],
    examples: ["holdfast objects import /mnt/shop /srv/photos --bucket photos --prefix archive/"],
    exits: {
      done: "all imported, now or before",
      ...exits,
      wrongUsage: "wrong usage, or FOLDER is not a folder",
      verificationFailed: "a file changed while it was read, or the file system cannot be used",
    },
  }).argument("<FOLDER>", "the folder to import");
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
