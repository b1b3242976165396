// Expiry: entries of the ledger go when their time is over, and with them the names by which their keys were
// claimed at publish. The entry first: as long as it is there, a ticket with its key would be taken for done.
import type { Cancel } from "../../common.ts";
import { removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import type { Box } from "../box/box.ts";
import { ticketKind } from "../model/manifest.ts";
import type { Committed } from "./ledger.ts";
import { committedKind, ledgerFileKind, recordName } from "./ledger.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { shardsOf, withLedgerLease } from "./upkeep.ts";

/** In the trash: an entry whose key may still be claimed. What a crash leaves there is finished by the next round. */
const prefix = "expired-";

/** Removes the entries that are older than `ledgerMs`; returns how many. Undefined when another process is at it. */
export async function expireLedger(box: Box, ledgerMs: number, { signal }: Cancel = {}): Promise<number | undefined> {
  return await withLedgerLease(box, async (session) => {
    const trash = await box.ensure(box.layout.trash);
    for (const name of await box.names(trash)) if (name.startsWith(prefix)) await finish(box, `${trash}/${name}`);
    const beforeMs = (await box.nowMs()) - ledgerMs;
    let expired = 0;
    for await (const found of shardsOf(box, { signal }))
      for (const { path, committed } of found) {
        if (Date.parse(committed.at) >= beforeMs) continue;
        session.throwIfOver();
        const hash = path.slice(path.lastIndexOf("/") + 1);
        const trashed = `${trash}/${prefix}${hash}-${randomName(box.ground.ports.random.bytes(16))}`;
        if (!(await moveOnce(box.disk, path, trashed))) continue;
        expired++;
        await finish(box, trashed);
      }
    return expired;
  });
}

/** Frees the key of an entry in the trash, and removes the entry. */
async function finish(box: Box, trashed: string): Promise<void> {
  const committed = await findTrashed(box, trashed);
  if (committed !== undefined) {
    const path = box.layout.key(committed.key);
    const ticket = await findTicket(box, path);
    // Of this commit's ticket, or of one that was done by it. A later ticket has its own entry, and keeps its key.
    if (ticket !== undefined && ticket.createdAt.getTime() <= Date.parse(committed.at))
      await unlinkIfThere(box.disk, path);
  }
  await removeTree(box.disk, trashed);
}

async function findTicket(box: Box, path: string): Promise<{ readonly createdAt: Date } | undefined> {
  try {
    return (await findRecord(box.disk, ticketKind, path))?.manifest;
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) throw error;
    return undefined;
  }
}

async function findTrashed(box: Box, trashed: string): Promise<Committed | undefined> {
  const hash = trashed.slice(trashed.lastIndexOf("/") + 1 + prefix.length).split("-")[0];
  try {
    const entries = await findRecord(box.disk, ledgerFileKind, trashed);
    return entries?.find(({ key, replays }) => box.layout.ledger(key, replays).endsWith(`/${hash}`));
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) return undefined;
    if (!hasErrno(error, "EISDIR")) throw error;
  }
  return await findRecord(box.disk, committedKind, `${trashed}/${recordName}`);
}
