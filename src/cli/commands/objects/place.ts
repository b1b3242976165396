// What all verbs of `holdfast objects` have in common: the object store as a part of a store, and the
// bucket that is meant.
import { InvalidArgumentError, Option, type Command } from "commander";
import { listObjectStores, locateObjects, openObjects, verifyObjects } from "../../../objects/index.ts";
import { exitCodes } from "../../exit-codes.ts";
import { endHelp } from "../../help.ts";
import { failed, wrongUsage, type PartNoun, type Verb } from "../../part-verb.ts";
import { Progress } from "../../progress.ts";
import type { Run } from "../../run.ts";

export type OpenObjects = Awaited<ReturnType<typeof openObjects>>;
export type OpenBucket = Awaited<ReturnType<OpenObjects["bucket"]>>;

export interface BucketFlags {
  readonly bucket?: string;
}

const bucketDefault = "main";

export const nothingThere = "there is no object store in DIR, or no such bucket: is the share mounted?";
export const damaged = "an object is damaged, or the file system cannot be used";
export const exits: { failed: string; wrongUsage: string; nothingToDo: string; verificationFailed: string } = {
  failed,
  wrongUsage,
  nothingToDo: nothingThere,
  verificationFailed: damaged,
};

export const objectsNoun: PartNoun = {
  what: "objects",
  defaultName: bucketDefault,
  unit: "entries",
  progress: "verified keys",
  locate: (directory) => locateObjects(directory),
  list: listObjectStores,
  verify: verifyObjects,
  stats: async (directory) => {
    await using objects = await openObjects(directory, { create: false });
    const counts = { buckets: 0, objects: 0, bytes: 0 };
    for (const { name } of await objects.listBuckets()) {
      counts.buckets++;
      for await (const { size } of (await objects.bucket(name)).objects()) {
        counts.objects++;
        counts.bytes += size;
      }
    }
    return counts;
  },
  collect: async (directory, _retention, options) => {
    await using objects = await openObjects(directory, { create: false });
    return { ...(await objects.collect(options)) };
  },
};

export function objectsVerb(
  parent: Command,
  name: string,
  { summary, description, options = [], ...end }: Verb,
): Command {
  const command = parent
    .command(name)
    .summary(summary)
    .description(description)
    .argument("<DIR>", "a store, or the directory of an object store")
    .addOption(new Option("--bucket <name>", `which bucket (default: ${bucketDefault})`));
  for (const option of options) command.addOption(option);
  return endHelp(command, end);
}

export function bucketNameOf({ bucket = bucketDefault }: BucketFlags): string {
  return bucket;
}

/** Nothing is done, with the exit code for it, where no object store is: to open it would make one. */
export async function withObjects(
  directory: string,
  run: Run,
  action: (objects: OpenObjects) => Promise<void>,
): Promise<void> {
  const { directory: path, isThere } = await locateObjects(directory);
  if (isThere) {
    await using objects = await openObjects(path, { create: false });
    return await action(objects);
  }
  run.exitCode = exitCodes.nothingToDo;
  const message = `there is no object store in ${path}. \`holdfast objects mb\` makes one with its first bucket.`;
  const details = { name: "NoObjects", code: "NO_OBJECTS", action: "fix-caller", message, path };
  run.output.failure({ ...details, exitCode: run.exitCode }, message, "");
}

/** As above. NO_SUCH_BUCKET. */
export async function withBucket(
  directory: string,
  flags: BucketFlags,
  run: Run,
  action: (bucket: OpenBucket, objects: OpenObjects) => Promise<void>,
): Promise<void> {
  await withObjects(directory, run, async (objects) => action(await objects.bucket(bucketNameOf(flags)), objects));
}

export const versionOption = (description: string): Option => new Option("--version-id <id>", description);

/** `name=value`, any number of times. */
export function collectPairs(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("Write NAME=VALUE.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

/** The same bytes; a person at a terminal sees how many have passed. */
export async function* shown(
  body: AsyncIterable<Uint8Array>,
  what: string,
  size: number | undefined,
  run: Run,
): AsyncGenerator<Uint8Array> {
  using progress = new Progress(run, what);
  let done = 0;
  for await (const chunk of body) {
    yield chunk;
    done += chunk.length;
    progress.tell(done, size);
  }
}
