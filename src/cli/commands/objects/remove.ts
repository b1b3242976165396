// The command `holdfast objects rm`: deletes objects, or removes versions permanently.
import { Option, type Command } from "commander";
import { isHoldfastError } from "../../../index.ts";
import type { Bucket, DeleteItem } from "../../../objects/index.ts";
import { printable } from "../../output.ts";
import { failed } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { exits, objectsVerb, versionOption, withBucket, type BucketFlags } from "./place.ts";

/** How many are deleted in one call. */
const atOnce = 100;

interface RmFlags extends BucketFlags {
  readonly versionId?: string;
  readonly recursive?: true;
  readonly allVersions?: true;
  readonly ifMatch?: string;
  readonly bypassGovernance?: true;
}

export function registerRm(objects: Command, run: Run): void {
  const command = objectsVerb(objects, "rm", {
    summary: "delete objects, or remove versions permanently",
    description: "Deletes an object by a delete marker, or removes versions permanently; prints how many.",
    options: [
      versionOption("remove this version permanently"),
      new Option("-r, --recursive", "all objects with the prefix KEY; without KEY all objects of the bucket"),
      new Option("--all-versions", "remove every version and delete marker permanently").conflicts("versionId"),
      new Option("--if-match <etag>", "only if the current object has this ETag").conflicts("recursive"),
      new Option("--bypass-governance", "also remove versions retained in governance mode"),
    ],
    examples: [
      "holdfast objects rm /mnt/shop cats/tom.jpg --bucket photos",
      "holdfast objects rm /mnt/shop --bucket photos --recursive --all-versions",
    ],
    exits: {
      done: "deleted, or the object did not exist: prints which",
      ...exits,
      failed: `${failed}; the condition does not hold, or it is retained`,
    },
  }).argument("[KEY]", "the key of the object");
  command.action(async (directory: string, key: string | undefined, flags: RmFlags) => {
    if (key === undefined && flags.recursive !== true) command.error("error: name a KEY, or give --recursive");
    if (flags.recursive === true && flags.versionId !== undefined)
      command.error("error: --version-id names one version, so it does not go with --recursive");
    await withBucket(directory, flags, run, async (bucket) => {
      let count = 0;
      const isMissing = key !== undefined && isOneObject(flags) && !(await isThere(bucket, key, flags));
      if (isMissing) {
        const what = flags.versionId === undefined ? "object" : `version ${flags.versionId} of`;
        run.output.note(`holdfast: there is no ${what} ${printable(key)}: nothing was deleted`);
        return run.output.result({ bucket: bucket.name, deleted: count }, () => String(count));
      }
      for await (const items of batches(meant(bucket, key ?? "", flags, run))) {
        run.signal.throwIfAborted();
        for (const result of await bucket.deleteMany(items, { signal: run.signal })) {
          if ("error" in result) throw result.error;
          count++;
        }
      }
      run.output.result({ bucket: bucket.name, deleted: count }, () => String(count));
    });
  });
}

function isOneObject({ recursive, allVersions, ifMatch }: RmFlags): boolean {
  return recursive !== true && allVersions !== true && ifMatch === undefined;
}

/** True if something was deleted; also for a delete marker, if its id was given. */
async function isThere(bucket: Bucket, key: string, { versionId }: RmFlags): Promise<boolean> {
  try {
    await bucket.head(key, { versionId });
    return true;
  } catch (error) {
    if (!isHoldfastError(error, "NO_SUCH_KEY", "NO_SUCH_VERSION")) throw error;
    return versionId !== undefined && error.code === "NO_SUCH_KEY" && error.deleteMarker === versionId;
  }
}

async function* meant(bucket: Bucket, key: string, flags: RmFlags, run: Run): AsyncGenerator<DeleteItem> {
  const { signal } = run;
  const { recursive = false, allVersions = false, bypassGovernance } = flags;
  if (allVersions) {
    for await (const version of bucket.versions({ ...(recursive ? { prefix: key } : { key }), signal }))
      yield { key: version.key, versionId: version.versionId, bypassGovernance };
  } else if (recursive) {
    for await (const object of bucket.objects({ prefix: key, signal })) yield { key: object.key };
  } else yield { key, versionId: flags.versionId, ifMatch: flags.ifMatch, bypassGovernance };
}

async function* batches(items: AsyncIterable<DeleteItem>): AsyncGenerator<DeleteItem[]> {
  let some: DeleteItem[] = [];
  for await (const item of items) {
    some.push(item);
    if (some.length < atOnce) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}
