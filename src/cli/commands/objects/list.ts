// The commands `holdfast objects ls` and `versions`: which buckets, objects and versions there are.
import { Option, type Command } from "commander";
import type { ObjectVersion } from "../../../objects/index.ts";
import { printable } from "../../output.ts";
import type { Run } from "../../run.ts";
import { LineWriter } from "../events/lines.ts";
import { exits, objectsVerb, withBucket, withObjects, type BucketFlags, type OpenBucket } from "./place.ts";

const sizeWidth = 12;
const dateWidth = 24;

interface LsFlags extends BucketFlags {
  readonly recursive?: true;
}

export function registerLs(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "ls", {
    summary: "list buckets, or the objects of one",
    description:
      "Without --bucket prints a line for each bucket: its time, whether it keeps versions, its name. With it, a line for each object whose key begins with PREFIX: its time, size and key; what lies behind a further / is told as one line, unless --recursive. With --json all that is known, a line for each. Stops quietly when its reader has gone.",
    options: [new Option("-r, --recursive", "all keys, also behind a /")],
    examples: [
      "holdfast objects ls /mnt/shop",
      "holdfast objects ls /mnt/shop cats/ --bucket photos",
      "holdfast objects ls /mnt/shop --bucket photos -r --json | jq -r .key",
    ],
    exits: { done: "all printed, also when there is nothing", ...exits },
  }).argument("[PREFIX]", "only keys that begin so", "");
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
    for (const bucket of await objects.listBuckets())
      await lines.say(
        bucket,
        () => `${bucket.createdAt.toISOString()}  ${bucket.versioning.padEnd(9)}  ${bucket.name}`,
      );
    await lines.end();
  });
}

async function listObjects(bucket: OpenBucket, prefix: string, { recursive }: LsFlags, run: Run): Promise<void> {
  using lines = new Lines(run);
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
    if (page.next === undefined || lines.isUnread) break;
    after = page.next;
  }
  await lines.end();
}

interface VersionsFlags extends BucketFlags {
  readonly prefix?: string;
  readonly enable?: true;
  readonly suspend?: true;
}

export function registerVersions(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "versions", {
    summary: "list all versions of an object, or keep versions from now on",
    description:
      "Prints a line for each version, the newest of a key first: its time, size, id, whether it is current, old or a mark of a delete, and its key. With --enable or --suspend it says instead whether the bucket keeps versions from now on; what is there stays.",
    options: [
      new Option("--prefix <prefix>", "of all keys that begin so"),
      new Option("--enable", "keep every version from now on"),
      new Option("--suspend", "keep no further versions: a put takes the place of the one before").conflicts("enable"),
    ],
    examples: [
      "holdfast objects versions /mnt/shop cats/tom.jpg --bucket photos",
      "holdfast objects versions /mnt/shop --bucket photos --enable",
    ],
    exits: { done: "all printed, also when there is none", ...exits },
  }).argument("[KEY]", "of this object; all of the bucket without it");
  command.action(async (directory: string, key: string | undefined, flags: VersionsFlags) => {
    const { prefix, enable, suspend } = flags;
    const state = enable === true ? "enabled" : suspend === true ? "suspended" : undefined;
    if (key !== undefined && (prefix !== undefined || state !== undefined))
      command.error("error: a KEY goes with neither --prefix, --enable nor --suspend");
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

/** A line for each thing: text for people, JSON for programs. */
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
