// The keys of a bucket, found by walking the directories of all keys: the truth that every index is
// made from.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { KeyLife } from "./index-line.ts";

/** So many keys are looked at at the same time. */
const looksAtOnce = 16;

/** The life of every key that has a directory, also without a version; in no order. */
export async function* walkLives(bucket: OpenBucket): AsyncGenerator<KeyLife> {
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

/** The directories of all keys. */
export async function* keyDirectories({ place, layout }: OpenBucket): AsyncGenerator<string> {
  for (const shard of (await namesIn(place.disk, layout.keys)).sort())
    for (const name of await namesIn(place.disk, `${layout.keys}/${shard}`)) yield `${layout.keys}/${shard}/${name}`;
}

async function findLife(bucket: OpenBucket, directory: string): Promise<KeyLife | undefined> {
  try {
    return await bucket.useDirectory(directory, async ({ chain }) => {
      const head = await chain.findHead();
      return head && { key: head.entry.key, incarnation: head.incarnation };
    });
  } catch (error) {
    // Which key that is cannot be told.
    if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) return undefined;
    throw error;
  }
}

/** The names in a directory; none where there is no directory. */
export async function namesIn(disk: Disk, directory: string): Promise<string[]> {
  try {
    return await disk.list(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}
