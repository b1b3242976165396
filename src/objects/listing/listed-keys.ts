// Provides the keys of a bucket for one listing: from the index, or from the keys themselves if the
// index is unreadable. A listing never fails because of derived data.
import { isHoldfastError } from "../../errors.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { IndexSnapshot } from "./index-snapshot.ts";
import type { KeyIndex } from "./key-index.ts";
import { isIndexDamage, isRepairable, repairIndex, SortedKeyLives } from "./rebuild-index.ts";

/** Errors of a process that cannot write at all or at the moment. */
const unmakable = ["NO_PERMISSION", "DISK_FULL", "RESOURCE_BUSY", "IO_ERROR", "OUTCOME_UNKNOWN", "LOCK_LOST"] as const;

export interface OpenedIndex {
  open(): Promise<KeyIndex>;
  /** Opens the index as it is on the disk now. */
  openAgain(): Promise<KeyIndex>;
}

/** Calls `work` with all keys. Calls it again if the index fails. */
export async function withKeys<T>(
  bucket: OpenBucket,
  index: OpenedIndex,
  work: (keys: IndexSnapshot) => Promise<T>,
): Promise<T> {
  let failure: unknown;
  // Opens the index again: another process may have rebuilt it.
  for (const open of [() => index.open(), () => index.openAgain()])
    try {
      return await (await open()).use(work);
    } catch (error) {
      if (!isIndexDamage(bucket, error)) throw error;
      failure = error;
    }
  if (isRepairable(bucket, failure))
    try {
      await repairIndex(bucket, () => index.openAgain());
      return await (await index.open()).use(work);
    } catch (error) {
      // The index could not be rebuilt, or is damaged again. The listing uses the keys themselves.
      if (!isIndexDamage(bucket, error) && !isHoldfastError(error, ...unmakable)) throw error;
    }
  await using lives = await SortedKeyLives.collect(bucket);
  return await work(lives.snapshot());
}

/** Merges announcements. Rebuilds a damaged index. */
export async function mergeKeys(bucket: OpenBucket, index: OpenedIndex, announcementsMin: number): Promise<void> {
  try {
    await (await index.open()).merge(announcementsMin);
  } catch (error) {
    if (!isRepairable(bucket, error)) throw error;
    await repairIndex(bucket, () => index.openAgain());
  }
}
