// Expiry of ledger entries. An entry is removed when it is too old, then its key, unless a waiting
// ticket uses it. The entry is removed first: while it exists, a ticket with its key is treated as
// done.
import type { Cancel } from "../../common.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import { randomName } from "../../format/id.ts";
import type { Box } from "../box/box.ts";
import { undefinedIfDamaged } from "../operate/find.ts";
import { releaseKey } from "../operate/key-release.ts";
import type { Committed } from "./ledger.ts";
import { committedKind, ledgerFileKind, recordName } from "./ledger.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { shardsOf, withLedgerLease } from "./upkeep.ts";

/**
 * Prefix, in the trash, of an entry whose key may still have its file. The next run finishes
 * entries that a crash left there.
 */
const prefix = "expired-";

/** Removes entries older than `ledgerMs` and returns how many. Returns undefined if another process has the lease. */
export async function expireLedger(box: Box, ledgerMs: number, { signal }: Cancel = {}): Promise<number | undefined> {
  return await withLedgerLease(box, async (session) => {
    await finishExpired(box);
    const beforeMs = (await box.nowMs()) - ledgerMs;
    let expired = 0;
    for await (const found of shardsOf(box, { signal }))
      for (const { path, committed } of found) {
        if (Date.parse(committed.at) >= beforeMs) continue;
        session.throwIfOver();
        if (await expireEntry(box, path)) expired++;
      }
    return expired;
  });
}

/**
 * Removes one entry, and its key if nothing else needs it. Returns false if the entry is gone. Call
 * it under the lease.
 */
export async function expireEntry(box: Box, path: string): Promise<boolean> {
  const hash = path.slice(path.lastIndexOf("/") + 1);
  const name = `${prefix}${hash}-${randomName(box.ground.ports.random.bytes(16))}`;
  const trashed = `${await box.ensure(box.layout.trash)}/${name}`;
  if (!(await moveOnce(box.disk, path, trashed))) return false;
  await finish(box, trashed);
  return true;
}

/** Finishes expiries that dead processes left in the trash. */
export async function finishExpired(box: Box): Promise<void> {
  const { trash } = box.layout;
  for (const name of await box.names(trash)) if (name.startsWith(prefix)) await finish(box, `${trash}/${name}`);
}

/** True while an expiry is in progress: the entry of this name is gone, and its key may still exist. */
export async function isExpiring(box: Box, hash: string): Promise<boolean> {
  return (await box.names(box.layout.trash)).some((name) => name.startsWith(`${prefix}${hash}-`));
}

async function finish(box: Box, trashed: string): Promise<void> {
  const committed = await findTrashed(box, trashed);
  if (committed !== undefined) await releaseKey(box, committed.key, committed.id);
  await removeTree(box.disk, trashed);
}

async function findTrashed(box: Box, trashed: string): Promise<Committed | undefined> {
  const hash = trashed.slice(trashed.lastIndexOf("/") + 1 + prefix.length).split("-")[0];
  try {
    const entries = await findRecord(box.disk, ledgerFileKind, trashed);
    return entries?.find(({ key, replays }) => box.layout.ledger(key, replays).endsWith(`/${hash}`));
  } catch (error) {
    if (!hasErrno(error, "EISDIR")) {
      if (isUnreadable(error)) return undefined;
      throw error;
    }
  }
  return await undefinedIfDamaged(findRecord(box.disk, committedKind, `${trashed}/${recordName}`));
}
