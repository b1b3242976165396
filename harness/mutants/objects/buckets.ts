// Known-wrong variants of the deletion of a bucket.
import { ensureDirectory, removeTree } from "../../../src/durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../../src/errors.ts";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import { emptyShard } from "../../../src/objects/bucket/empty-keys.ts";
import { bucketScenarios, put, realBuckets, type PutText } from "../../scenarios/objects/buckets.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Checks that the bucket is empty, records its deletion, and then removes it. */
class LookingBuckets extends Buckets {
  override async delete(name: string): Promise<void> {
    const bucket = await this.get(name);
    const { keys, directory } = bucket.layout;
    for (const shard of await bucket.storage.disk.list(keys)) await emptyShard(bucket, `${keys}/${shard}`);
    await bucket.changeConfig(({ incarnation: _gone, ...state }) => state);
    await removeTree(bucket.storage.disk, directory);
  }
}

/** Moves the keys away instead of removing them, together with what was put meanwhile. */
class MovingBuckets extends Buckets {
  override async delete(name: string): Promise<void> {
    const bucket = await this.get(name);
    const { keys, directory } = bucket.layout;
    for (const shard of await bucket.storage.disk.list(keys))
      if (!(await emptyShard(bucket, `${keys}/${shard}`)))
        throw holdfastError("BUCKET_NOT_EMPTY", "It has objects.", { bucket: name });
    await bucket.storage.disk.rename(keys, `${directory}/gone`);
    await bucket.changeConfig(({ incarnation: _gone, ...state }) => state);
    await removeTree(bucket.storage.disk, directory);
  }
}

/** Recreates the directory of the keys if it is missing. */
const putAnyway: PutText = async (bucket, text) => {
  try {
    await put(bucket, text);
  } catch (error) {
    if (!isHoldfastError(error, "NO_SUCH_BUCKET")) throw error;
    await ensureDirectory(bucket.storage.disk, bucket.layout.keys);
    await put(bucket, text);
  }
};

export const bucketMutants: readonly Mutant[] = [
  {
    name: "bucket that is deleted after a look",
    about: "A put after the check is acknowledged, and then removed with the bucket.",
    scenario: scenarioNamed(
      bucketScenarios((storage) => new LookingBuckets(storage)),
      "bucket: a put and a deletion",
    ),
    breaks: /was acknowledged, and its bucket is gone/,
  },
  {
    name: "bucket whose keys are moved away",
    about: "A put after the check is acknowledged, and then moved away with the keys.",
    scenario: scenarioNamed(
      bucketScenarios((storage) => new MovingBuckets(storage)),
      "bucket: a put and a deletion",
    ),
    breaks: /was acknowledged, and its bucket is gone/,
  },
  {
    name: "put that makes the directory of the keys",
    about: "The put recreates the directory whose removal deleted the bucket, and is acknowledged.",
    scenario: scenarioNamed(bucketScenarios(realBuckets, putAnyway), "bucket: a put and a deletion"),
    breaks: /was acknowledged, and its bucket is gone/,
  },
];
