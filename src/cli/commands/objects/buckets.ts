// The commands `holdfast objects mb` and `rb`: create a bucket, and remove an empty one.
import { Option, type Command } from "commander";
import { locateObjects, openObjects } from "../../../objects/index.ts";
import { asGiven } from "../../own-words.ts";
import { failed, noCreateOption, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { makeNewStore } from "../new-store.ts";
import { bucketNameOf, damaged, exits, objectsVerb, withObjects, type BucketFlags } from "./place.ts";

interface MakeFlags extends BucketFlags {
  readonly versioning?: true;
  readonly objectLock?: true;
  /** False for `--no-create`. */
  readonly create?: boolean;
}

export function registerMakeBucket(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "mb", {
    summary: "create a bucket",
    description: "Creates a bucket. Without --versioning a put replaces the object, as in S3.",
    options: [
      new Option("--versioning", "keep every version of every object"),
      new Option("--object-lock", "allow versions to be retained; keeps every version"),
      noCreateOption("object store"),
    ],
    examples: ["holdfast objects mb /mnt/shop --bucket photos --versioning"],
    exits: {
      done: "created",
      failed: `${failed}; the bucket exists`,
      wrongUsage,
      verificationFailed: damaged,
      missing: "with --no-create: there is no object store in DIR",
    },
  });
  command.action(async (directory: string, flags: MakeFlags) => {
    const name = bucketNameOf(flags);
    const make = async (store: Awaited<ReturnType<typeof openObjects>>): Promise<void> => {
      const objectLock = flags.objectLock === true;
      const versioning = objectLock || flags.versioning === true ? ("enabled" as const) : ("off" as const);
      await store.createBucket(name, { versioning, objectLock });
      run.output.result({ bucket: name, versioning, objectLock }, () => name);
    };
    if (flags.create === false) return await withObjects(directory, run, make);
    const before = await locateObjects(directory);
    if (!before.isThere && !before.isInStore && flags.bucket !== undefined) await makeNewStore(directory, run);
    const { directory: path, isThere } = await locateObjects(directory);
    if (!isThere) run.output.note(`holdfast: making a new object store in ${asGiven(directory, path)}`);
    await using store = await openObjects(path);
    await make(store);
  });
}

export function registerRemoveBucket(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "rb", {
    summary: "remove an empty bucket",
    description: "Removes a bucket without objects, versions, delete markers and uploads.",
    examples: ["holdfast objects rb /mnt/shop --bucket photos"],
    exits: { done: "removed", ...exits, failed: `${failed}; the bucket is not empty` },
  });
  command.action(async (directory: string, flags: BucketFlags) => {
    const name = bucketNameOf(flags);
    await withObjects(directory, run, async (store) => {
      await store.deleteBucket(name);
      run.output.result({ bucket: name, removed: true }, () => name);
    });
  });
}
