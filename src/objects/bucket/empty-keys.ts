// Finds the keys without versions of a shard, closes them and removes them.
import { listIfThere } from "../../durable/publish/directory.ts";
import { nothing, retry } from "../key/key-chain.ts";
import type { OpenKey } from "../key/key-chains.ts";
import { writeAnnouncement } from "../listing/announcements.ts";
import type { ClosedEntry, KeyEntry } from "../model/entry.ts";
import type { OpenBucket } from "./open-bucket.ts";

/** Removes the keys of a shard that have no version. Returns false if a key has one. */
export async function emptyShard(bucket: OpenBucket, shard: string): Promise<boolean> {
  for (const name of await listIfThere(bucket.storage.disk, shard))
    if (!(await bucket.useDirectory(`${shard}/${name}`, (key) => closeIfEmpty(bucket, key)))) return false;
  return true;
}

/** Closes and removes a key that has no version. Returns false if it has one. */
export async function closeIfEmpty(bucket: OpenBucket, { chain, history }: OpenKey): Promise<boolean> {
  let isEmpty = true;
  await chain.close(async (newest) => {
    const content = await history.read(newest);
    if (content === undefined) return retry;
    // An unreadable slot may hold a version. The newest entry must be readable: in an empty key, it
    // removed the last version.
    isEmpty = content.versions.length + content.damaged.length === 0;
    if (!isEmpty || newest.entry.kind === "damaged") return nothing;
    // The end of the key is announced before its removal, so that the index forgets the key even if
    // another process removes it.
    const life = { key: newest.entry.key, incarnation: newest.incarnation };
    await writeAnnouncement(bucket, { keys: [], ended: [life] });
    return { add: { entry: closedAfter(newest.entry, bucket) } };
  });
  return isEmpty;
}

function closedAfter({ key, config }: KeyEntry, { storage, state }: OpenBucket): ClosedEntry {
  return { kind: "closed", id: storage.newId(), key, config: Math.max(state.number, config), atMs: storage.nowMs() };
}
