// Walks the directories of all keys of a bucket: the source of truth from which every index is
// built.
import { listIfThere } from "../../durable/publish/directory.ts";
import { isHoldfastError } from "../../errors.ts";
import { findKeyName } from "../bucket/key-name.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { KeyLife } from "./index-line.ts";

/** How many keys are read in parallel. */
const looksAtOnce = 16;

/**
 * Yields the life of every key that has a directory, even without a version, in no particular
 * order.
 */
export async function* walkKeyLives(bucket: OpenBucket): AsyncGenerator<KeyLife> {
  const some: string[] = [];
  const looks = async (): Promise<KeyLife[]> => {
    const found = await Promise.all(some.splice(0).map((directory) => findLife(bucket, directory)));
    return found.filter((life) => life !== undefined);
  };
  for await (const directory of keyDirectories(bucket)) {
    some.push(directory);
    if (some.length >= looksAtOnce) yield* await looks();
  }
  yield* await looks();
}

/** Yields the directories of all keys. */
export async function* keyDirectories({ storage, layout }: OpenBucket): AsyncGenerator<string> {
  for (const shard of (await listIfThere(storage.disk, layout.keys)).sort())
    for (const name of await listIfThere(storage.disk, `${layout.keys}/${shard}`))
      yield `${layout.keys}/${shard}/${name}`;
}

async function findLife(bucket: OpenBucket, directory: string): Promise<KeyLife | undefined> {
  try {
    return await bucket.useDirectory(directory, async (open) => {
      const head = await open.chain.findHead();
      const key = head && (await findKeyName(bucket, open, head));
      // No entry of this key tells its name.
      return key === undefined ? undefined : { key, incarnation: head?.incarnation ?? "" };
    });
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) return undefined;
    throw error;
  }
}
