// Shared by all verbs of `holdfast objects`: the object store as a part of a store, and the bucket.
import { InvalidArgumentError, Option, type Command } from "commander";
import {
  listObjectStores,
  locateObjects,
  openObjects,
  verifyObjects,
  type Bucket,
  type ObjectStore,
} from "../../../objects/index.ts";
import { listPathLocks } from "../../../locks/index.ts";
import { endHelp } from "../../help.ts";
import { asGiven } from "../../own-words.ts";
import { isDatabase } from "../location.ts";
import { failed, reportMissing, wrongUsage, type PartNoun, type Verb } from "../../part-verb.ts";
import { Progress } from "../../progress.ts";
import type { Run } from "../../run.ts";

export interface BucketFlags {
  readonly bucket?: string;
}

const bucketDefault = "main";

export const missing = "there is no object store in DIR, or no such bucket: is the share mounted?";
export const damaged = "an object is damaged, or the file system cannot be used";
export const exits: { failed: string; wrongUsage: string; verificationFailed: string; missing: string } = {
  failed,
  wrongUsage,
  verificationFailed: damaged,
  missing,
};

export const objectsNoun: PartNoun = {
  what: "objects",
  defaultName: bucketDefault,
  unit: "entries",
  progress: "verified keys",
  locate: (directory) => locateObjects(directory),
  list: listObjectStores,
  verify: verifyObjects,
  waitsFor: (directory) => ({
    what: `the turn to collect in ${directory}`,
    findBlocking: async () => {
      // In a database, leases have a table of their own, which only their holder reads.
      if (isDatabase(directory)) return [];
      // The lease is in the lock table of the store, or in that of an object store that is opened
      // alone.
      const held = [...(await listPathLocks(directory)), ...(await listPathLocks(`${directory}/..`))];
      return held.filter(({ path }) => path === "/collect" || path === "/objects/collect");
    },
  }),
  stats: async (directory) => {
    await using objects = await openObjects(directory, { create: false });
    const counts = { buckets: 0, objects: 0, bytes: 0 };
    let damages = 0;
    for (const { name, damaged } of await objects.listBuckets()) {
      counts.buckets++;
      if (damaged === undefined) damages += await countObjects(await objects.bucket(name), counts);
      else damages++;
    }
    return { ...counts, ...(damages === 0 ? {} : { damaged: damages }) };
  },
  collect: async (directory, _retention, options) => {
    await using objects = await openObjects(directory, { create: false });
    return { ...(await objects.collect(options)) };
  },
};

/** Counts readable objects into `counts`, and returns how many are unreadable. */
async function countObjects(bucket: Bucket, counts: { objects: number; bytes: number }): Promise<number> {
  let damages = 0;
  for (let after: string | undefined; ;) {
    const page = await bucket.list({ after });
    counts.objects += page.objects.length;
    for (const { size } of page.objects) counts.bytes += size;
    damages += page.damaged?.length ?? 0;
    if (page.next === undefined) return damages;
    after = page.next;
  }
}

export function objectsVerb(
  parent: Command,
  name: string,
  { summary, description, options = [], ...end }: Verb,
): Command {
  const command = parent
    .command(name)
    .summary(summary)
    .description(description)
    .argument("<DIR>", "a store, or its object store: a directory, or postgres://…")
    .addOption(new Option("--bucket <name>", `the bucket (default: ${bucketDefault})`));
  for (const option of options) command.addOption(option);
  return endHelp(command, end);
}

export function bucketNameOf({ bucket = bucketDefault }: BucketFlags): string {
  return bucket;
}

/**
 * Opens the object store for `work`. If there is none, only sets the exit code: opening it would
 * create one.
 */
export async function withObjects(
  directory: string,
  run: Run,
  action: (objects: ObjectStore) => Promise<void>,
): Promise<void> {
  const { directory: path, isThere } = await locateObjects(directory);
  if (isThere) {
    await using objects = await openObjects(path, { create: false });
    return await action(objects);
  }
  const shown = asGiven(directory, path);
  const message = `there is no object store in ${shown}. \`holdfast objects mb\` makes one with its first bucket.`;
  reportMissing(run, "NO_OBJECTS", message, shown);
}

/** Opens a bucket for `work`. Throws NO_SUCH_BUCKET. */
export async function withBucket(
  directory: string,
  flags: BucketFlags,
  run: Run,
  action: (bucket: Bucket, objects: ObjectStore) => Promise<void>,
): Promise<void> {
  await withObjects(directory, run, async (objects) => action(await objects.bucket(bucketNameOf(flags)), objects));
}

export const versionOption = (description: string): Option => new Option("--version-id <id>", description);

/** Parses `name=value`, which may be given several times. */
export function collectPairs(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("Write NAME=VALUE.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

/** Passes the bytes on, and shows their number at a terminal. */
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
