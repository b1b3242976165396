// The command `holdfast objects cp`: copies an object to a new version of another one.
import { Option, type Command } from "commander";
import { failed } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { bucketNameOf, exits, objectsVerb, versionOption, withObjects, type BucketFlags } from "./place.ts";

interface CopyFlags extends BucketFlags {
  readonly versionId?: string;
  readonly toBucket?: string;
  readonly ifAbsent?: true;
  readonly ifMatch?: string;
}

export function registerCopy(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "cp", {
    summary: "copy an object, or restore an old version",
    description: "Copies an object with its headers, metadata and tags, and prints the id of the new version.",
    options: [
      new Option("--to-bucket <name>", "copy into this bucket (default: the same)"),
      versionOption("copy this version instead of the current one"),
      new Option("--if-absent", "only if TO does not exist"),
      new Option("--if-match <etag>", "only if the current object TO has this ETag"),
    ],
    examples: [
      "holdfast objects cp /mnt/shop cats/tom.jpg cats/tom-2026.jpg --bucket photos",
      "holdfast objects cp /mnt/shop cats/tom.jpg cats/tom.jpg --bucket photos --version-id $id",
    ],
    exits: {
      done: "copied",
      ...exits,
      failed: `${failed}; the condition does not hold`,
      nothingToDo: "there is no such object or version",
      tryAgain: "the answer was lost: check whether the copy exists, or try again",
    },
  })
    .argument("<FROM>", "the key of the object to copy")
    .argument("<TO>", "the key of the copy");
  command.action(async (directory: string, from: string, to: string, flags: CopyFlags) => {
    const source = bucketNameOf(flags);
    await withObjects(directory, run, async (store) => {
      const bucket = await store.bucket(flags.toBucket ?? source);
      const version = await bucket.copy({ bucket: source, key: from, versionId: flags.versionId }, to, {
        ifNoneMatch: flags.ifAbsent === true ? "*" : undefined,
        ifMatch: flags.ifMatch,
        signal: run.signal,
      });
      run.output.result({ bucket: bucket.name, ...version }, () => version.versionId);
    });
  });
}
