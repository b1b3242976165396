// The command `holdfast objects put`: turns a file, or stdin, into a version.
import { Option, type Command } from "commander";
import { openFile } from "../../../objects/index.ts";
import { failed } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { inputBody } from "../handoff/input.ts";
import { collectPairs, exits, objectsVerb, shown, withBucket, type BucketFlags } from "./place.ts";

interface PutFlags extends BucketFlags {
  readonly type?: string;
  readonly meta?: Readonly<Record<string, string>>;
  readonly tag?: Readonly<Record<string, string>>;
  readonly ifMatch?: string;
  readonly ifVersion?: string;
  readonly ifAbsent?: true;
}

export function registerPut(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "put", {
    summary: "store a file, or stdin, as an object",
    description: "Stores FILE, or stdin, under KEY, and prints the id of the version once it is durable.",
    options: [
      new Option("--type <type>", "the content type, such as image/jpeg"),
      new Option("--meta <name=value>", "user metadata; may be repeated").argParser(collectPairs),
      new Option("--tag <name=value>", "a tag; may be repeated").argParser(collectPairs),
      new Option("--if-absent", "only if the object does not exist"),
      new Option("--if-match <etag>", "only if the current object has this ETag"),
      new Option("--if-version <id>", "only if this is the current version"),
    ],
    examples: [
      "holdfast objects put /mnt/shop cats/tom.jpg tom.jpg --bucket photos --type image/jpeg",
      "pg_dump shop | holdfast objects put /mnt/shop dumps/shop.sql - --bucket backups",
    ],
    exits: {
      done: "stored",
      ...exits,
      failed: `${failed}; the condition does not hold`,
      nothingToDo: "FILE does not exist",
      tryAgain: "the answer was lost: check whether the object exists, or try again",
    },
  })
    .argument("<KEY>", "the key of the object")
    .argument("<FILE>", "the file, or - for stdin");
  command.action(async (directory: string, key: string, file: string, flags: PutFlags) => {
    const source: { size?: number; body: AsyncIterable<Uint8Array> } =
      file === "-" ? { body: inputBody(run) } : await openFile(file);
    await withBucket(directory, flags, run, async (bucket) => {
      const { size } = source;
      const version = await bucket.put(key, shown(source.body, "stored bytes", size, run), {
        size,
        contentType: flags.type,
        metadata: flags.meta,
        tags: flags.tag,
        ifNoneMatch: flags.ifAbsent === true ? "*" : undefined,
        ifMatch: flags.ifMatch,
        ifVersion: flags.ifVersion,
        signal: run.signal,
      });
      run.output.result({ bucket: bucket.name, ...version }, () => version.versionId);
    });
  });
}
