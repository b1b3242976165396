// Known-wrong variants of the deletion of a bucket.
import { ensureDirectory, removeTree } from "../../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { Buckets } from "../../../objects/bucket/buckets.ts";
import { emptyShard } from "../../../objects/bucket/empty-keys.ts";
import { bucketScenarios, put, realBuckets, type PutText } from "../../scenarios/objects/buckets.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Looks whether the bucket is empty, says that it is deleted, and then removes it. */
class LookingBuckets extends Buckets {
  override async delete(name: string): Promise<void> {
    const bucket = await this.get(name);
    const { keys, directory } = bucket.layout;
    for (const shard of await bucket.place.disk.list(keys)) await emptyShard(bucket, `${keys}/${shard}`);
    await bucket.changeConfig(({ incarnation: _gone, ...state }) => state);
    await removeTree(bucket.place.disk, directory);
  }
}

/** Moves the keys away instead of removing them: what comes into them meanwhile goes with them. */
class MovingBuckets extends Buckets {
  override async delete(name: string): Promise<void> {
    const bucket = await this.get(name);
    const { keys, directory } = bucket.layout;
    for (const shard of await bucket.place.disk.list(keys))
      if (!(await emptyShard(bucket, `${keys}/${shard}`)))
        throw holdfastError("BUCKET_NOT_EMPTY", "It has objects.", { bucket: name });
    await bucket.place.disk.rename(keys, `${directory}/gone`);
    await bucket.changeConfig(({ incarnation: _gone, ...state }) => state);
    await removeTree(bucket.place.disk, directory);
  }
}

/** Makes the directory of the keys again where it finds none. */
const putAnyway: PutText = async (bucket, text) => {
  try {
    await put(bucket, text);
  } catch (error) {
    if (!isHoldfastError(error, "NO_SUCH_BUCKET")) throw error;
    await ensureDirectory(bucket.place.disk, bucket.layout.keys);
    await put(bucket, text);
  }
};

export const bucketMutants: readonly Mutant[] = [
  {
    name: "bucket that is deleted after a look",
    about: "A put comes after the look, is acknowledged, and is removed with the bucket.",
    scenario: scenarioNamed(
      bucketScenarios((place) => new LookingBuckets(place)),
      "bucket: a put and a deletion",
    ),
    breaks: /was acknowledged, and its bucket is gone/,
  },
  {
    name: "bucket whose keys are moved away",
    about: "A put comes after the look, is acknowledged, and is moved away with the keys.",
    scenario: scenarioNamed(
      bucketScenarios((place) => new MovingBuckets(place)),
      "bucket: a put and a deletion",
    ),
    breaks: /was acknowledged, and its bucket is gone/,
  },
  {
    name: "put that makes the directory of the keys",
    about: "It brings back the directory whose removal has deleted the bucket, and is acknowledged.",
    scenario: scenarioNamed(bucketScenarios(realBuckets, putAnyway), "bucket: a put and a deletion"),
    breaks: /was acknowledged, and its bucket is gone/,
  },
];
