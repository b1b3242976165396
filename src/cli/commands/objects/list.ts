// The commands `holdfast objects ls` and `versions`: list buckets, objects and versions.
import { Option, type Command } from "commander";
import type { Bucket, ObjectVersion } from "../../../objects/index.ts";
import { printable } from "../../output.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import { exits, objectsVerb, withBucket, withObjects, type BucketFlags } from "./place.ts";

const sizeWidth = 12;
const dateWidth = 24;

interface LsFlags extends BucketFlags {
  readonly recursive?: true;
}

export function registerLs(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "ls", {
    summary: "list buckets, or the objects of a bucket",
    description: "Prints a line per bucket (time, versioning, name) or, with --bucket, per object (time, size, key).",
    options: [new Option("-r, --recursive", "all keys, not grouped at the next /")],
    examples: [
      "holdfast objects ls /mnt/shop",
      "holdfast objects ls /mnt/shop cats/ --bucket photos",
      "holdfast objects ls /mnt/shop --bucket photos -r --json | jq -r .key",
    ],
    exits: { done: "all printed, even if there is nothing", ...exits },
  }).argument("[PREFIX]", "only keys with this prefix", "");
  command.action(async (directory: string, prefix: string, flags: LsFlags) => {
    if (flags.bucket === undefined) {
      if (prefix !== "") command.error("error: a PREFIX goes with --bucket");
      return await listBuckets(directory, run);
    }
    await withBucket(directory, flags, run, (bucket) => listObjects(bucket, prefix, flags, run));
  });
}

async function listBuckets(directory: string, run: Run): Promise<void> {
  await withObjects(directory, run, async (objects) => {
    using lines = new Lines(run);
    const buckets = await objects.listBuckets();
    for (const bucket of buckets) {
      const { name, createdAt, versioning, damaged } = bucket;
      const state = damaged === undefined ? versioning : "damaged";
      const value = damaged === undefined ? bucket : { name, damaged: damaged.message };
      await lines.say(value, () => `${createdAt.toISOString()}  ${state.padEnd(9)}  ${name}`);
    }
    await lines.end();
    throwFirst(buckets.flatMap(({ damaged = [] }) => damaged));
  });
}

async function listObjects(bucket: Bucket, prefix: string, { recursive }: LsFlags, run: Run): Promise<void> {
  using lines = new Lines(run);
  const errors: Error[] = [];
  const delimiter = recursive === true ? undefined : "/";
  for (let after: string | undefined; ;) {
    run.signal.throwIfAborted();
    const page = await bucket.list({ prefix, delimiter, after });
    for (const common of page.prefixes)
      await lines.say(
        { prefix: common },
        () => `${" ".repeat(dateWidth)}  ${"".padStart(sizeWidth)}  ${printable(common)}`,
      );
    for (const object of page.objects) await lines.say(object, () => lineOf(object));
    for (const { key, error } of page.damaged ?? []) {
      errors.push(error);
      await lines.say(
        { key, damaged: error.message },
        () => `${" ".repeat(dateWidth)}  ${"damaged".padStart(sizeWidth)}  ${printable(key)}`,
      );
    }
    if (page.next === undefined || lines.isUnread) break;
    after = page.next;
  }
  await lines.end();
  throwFirst(errors);
}

/** Throws the first damage, after everything readable is printed, so that the exit code shows it. */
function throwFirst([error]: readonly Error[]): void {
  if (error !== undefined) throw error;
}

interface VersionsFlags extends BucketFlags {
  readonly prefix?: string;
  readonly enable?: true;
  readonly suspend?: true;
}

export function registerVersions(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "versions", {
    summary: "list the versions of an object, or turn versioning on",
    description:
      "Prints a line per version, newest first; with --enable or --suspend sets the bucket's versioning instead.",
    options: [
      new Option("--prefix <prefix>", "versions of all keys with this prefix"),
      new Option("--enable", "keep every version from now on"),
      new Option("--suspend", "keep no further versions: a put replaces the one before").conflicts("enable"),
    ],
    examples: [
      "holdfast objects versions /mnt/shop cats/tom.jpg --bucket photos",
      "holdfast objects versions /mnt/shop --bucket photos --enable",
    ],
    exits: { done: "all printed, even if there are none", ...exits },
  }).argument("[KEY]", "the key of the object (default: all objects of the bucket)");
  command.action(async (directory: string, key: string | undefined, flags: VersionsFlags) => {
    const { prefix, enable, suspend } = flags;
    const state = enable === true ? "enabled" : suspend === true ? "suspended" : undefined;
    if (key !== undefined && (prefix !== undefined || state !== undefined))
      command.error("error: KEY cannot be combined with --prefix, --enable or --suspend");
    await withBucket(directory, flags, run, async (bucket) => {
      if (state !== undefined) {
        await bucket.setVersioning(state);
        return run.output.result({ bucket: bucket.name, versioning: state }, () => `${bucket.name} ${state}`);
      }
      using lines = new Lines(run);
      for await (const version of bucket.versions({ key, prefix, signal: run.signal })) {
        await lines.say(version, () => versionLineOf(version));
        if (lines.isUnread) break;
      }
      await lines.end();
    });
  });
}

function lineOf({ lastModified, size, key }: ObjectVersion): string {
  return `${lastModified.toISOString()}  ${String(size).padStart(sizeWidth)}  ${printable(key)}`;
}

function versionLineOf(version: ObjectVersion): string {
  const { lastModified, size, key, versionId, deleteMarker, isLatest } = version;
  const state = deleteMarker ? "deleted" : isLatest ? "current" : "old";
  const facts = [lastModified.toISOString(), String(size).padStart(sizeWidth), versionId.padEnd(33), state.padEnd(7)];
  return `${facts.join("  ")}  ${printable(key)}`;
}

/** Prints a line for each item: text for people, JSON for programs. */
class Lines implements Disposable {
  readonly #writer: LineWriter;
  readonly #isJson: boolean;

  constructor({ pipes, output }: Run) {
    this.#writer = new LineWriter(pipes);
    this.#isJson = output.isJson;
  }

  get isUnread(): boolean {
    return this.#writer.isUnread;
  }

  async say(value: unknown, toText: () => string): Promise<void> {
    if (this.#isJson) await this.#writer.writeJson(value);
    else await this.#writer.write(`${toText()}\n`);
  }

  async end(): Promise<void> {
    await this.#writer.end();
  }

  [Symbol.dispose](): void {
    this.#writer[Symbol.dispose]();
  }
}
