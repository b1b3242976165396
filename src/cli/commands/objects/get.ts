// The command `holdfast objects get`: writes an object to a file or to stdout.
import { InvalidArgumentError, Option, type Command } from "commander";
import { publishFile } from "../../../handoff/index.ts";
import type { ReadOptions } from "../../../objects/index.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import { exits, objectsVerb, shown, versionOption, withBucket, type BucketFlags } from "./place.ts";

interface GetFlags extends BucketFlags {
  readonly versionId?: string;
  readonly range?: NonNullable<ReadOptions["range"]>;
}

export function registerGet(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "get", {
    summary: "print an object, or write it to a file",
    description: "Prints an object, or writes it to FILE, whole or not at all; checks it against its digest.",
    options: [
      versionOption("get this version instead of the current one"),
      new Option("--range <from-to>", "only these bytes: 0-99, 100- or -100 for the last 100").argParser(parseRange),
    ],
    examples: [
      "holdfast objects get /mnt/shop dumps/shop.sql --bucket backups | psql shop",
      "holdfast objects get /mnt/shop cats/tom.jpg tom.jpg --bucket photos --version-id $id",
    ],
    exits: {
      done: "all written, or the reader has closed the pipe",
      ...exits,
      nothingToDo: "there is no such object or version",
    },
  })
    .argument("<KEY>", "the key of the object")
    .argument("[FILE]", "the file to create or replace, or - for stdout", "-");
  command.action(async (directory: string, key: string, file: string, flags: GetFlags) => {
    await withBucket(directory, flags, run, async (bucket) => {
      const { versionId, range } = flags;
      await using object = await bucket.get(key, { versionId, range, signal: run.signal });
      const size = object.range === undefined ? object.size : object.range.end - object.range.start + 1;
      const body = shown(object.stream(), "read bytes", size, run);
      if (file === "-") return await print(body, run);
      const { sha256 } = await publishFile(file, body, { replace: true, signal: run.signal });
      run.output.result({ bucket: bucket.name, file, sha256, ...object }, () => object.versionId);
    });
  });
}

async function print(body: AsyncIterable<Uint8Array>, run: Run): Promise<void> {
  using writer = new LineWriter(run.pipes);
  for await (const piece of body) {
    run.signal.throwIfAborted();
    await writer.write(piece);
    if (writer.isUnread) return;
  }
  await writer.end();
}

function parseRange(text: string): NonNullable<ReadOptions["range"]> {
  const [, from = "", to = ""] = /^(\d{0,16})-(\d{0,16})$/.exec(text) ?? [];
  if (from !== "") return { start: Number(from), end: to === "" ? undefined : Number(to) };
  if (to !== "" && Number(to) > 0) return { start: -Number(to) };
  throw new InvalidArgumentError("Write 0-99, 100- or -100.");
}
