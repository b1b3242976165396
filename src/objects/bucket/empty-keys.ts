// Keys without versions: found by shard, closed and removed.
import { discard, stage } from "../../durable/publish/staging.ts";
import type { Candidate } from "../key/key-chain.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import { writeAnnouncement } from "../listing/announcements.ts";
import { namesIn } from "../listing/walk-keys.ts";
import { encodeEntry, type ClosedEntry } from "../model/entry.ts";
import type { OpenBucket } from "./open-bucket.ts";

/** Removes the keys of a shard that have no version. False when one has. */
export async function emptyShard(bucket: OpenBucket, shard: string): Promise<boolean> {
  for (const name of await namesIn(bucket.place.disk, shard))
    if (!(await bucket.useDirectory(`${shard}/${name}`, (key) => closeIfEmpty(bucket, key)))) return false;
  return true;
}

/** Closes a key that has no version, and removes it. False when it has one. */
export async function closeIfEmpty(bucket: OpenBucket, { chain, history }: OpenKey): Promise<boolean> {
  const staged: Candidate[] = [];
  try {
    let isEmpty = true;
    await chain.close(async (head) => {
      const versions = await history.read(head);
      if (versions === undefined) return "again";
      isEmpty = versions.length === 0;
      if (!isEmpty) return undefined;
      // Before the key goes, so that the index forgets it, whichever process removes it.
      const life = { key: head.entry.key, incarnation: head.incarnation };
      await writeAnnouncement(bucket, { keys: [], ended: [life] });
      const candidate = await stageClosed(bucket, head);
      staged.push(candidate);
      return candidate;
    });
    return isEmpty;
  } finally {
    for (const { temp } of staged) await discard(bucket.place.staging, temp);
  }
}

async function stageClosed({ place, state }: OpenBucket, { entry: last }: KeyHead): Promise<Candidate> {
  const config = Math.max(state.number, last.config);
  const entry: ClosedEntry = { kind: "closed", id: place.newId(), key: last.key, config, atMs: place.nowMs() };
  const proof = encodeEntry(entry);
  return { entry, proof, temp: await stage(place.staging, proof, { sync: place.isSynced }) };
}
