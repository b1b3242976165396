// Upkeep of the ledger: one process at a time goes through all entries under a lease.
//
// Compaction replaces the file of an entry, and expiry vacates names. A compactor that slept
// between reading and renaming could replace an entry that was committed since under a vacated name
// by an old one. Both therefore need the same lease. A process that acquires it first removes the
// temp directories of dead holders, from which a compactor that was judged dead would rename its
// file.
import type { Cancel } from "../../common.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { directoryLeases } from "../../part/leases.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Box } from "../box/box.ts";
import { committedKind, entryNamed, ledgerFileKind, recordName, type Committed } from "./ledger.ts";

/** A ledger entry as upkeep finds it. */
export interface FoundEntry {
  readonly path: string;
  readonly committed: Committed;
  readonly form: "record" | "block" | "directory";
}

/**
 * Runs `work` under the lease. Returns undefined if another process has it. Throws LOCK_LOST if
 * this process was judged dead.
 */
export async function withLedgerLease<T>(
  box: Box,
  work: (session: HolderSession) => Promise<T>,
): Promise<T | undefined> {
  const leases = directoryLeases(box.layout.directory, async () => box.ground);
  try {
    const session = await box.ground.session();
    const hold = await leases.tryAcquire("ledger");
    if (hold === undefined) return undefined;
    try {
      await box.ground.sweep();
      session.throwIfOver();
      return await work(session);
    } finally {
      await hold.release().catch(() => undefined);
    }
  } finally {
    await leases.close();
  }
}

/** Yields all entries, shard by shard. Skips damaged ones: `verify` reports them. */
export async function* shardsOf(box: Box, { signal }: Cancel): AsyncGenerator<readonly FoundEntry[]> {
  for (const shard of (await box.names(box.layout.ledgers)).sort()) {
    const found: FoundEntry[] = [];
    for (const name of await box.names(`${box.layout.ledgers}/${shard}`)) {
      signal?.throwIfAborted();
      const entry = await findEntry(box, `${box.layout.ledgers}/${shard}/${name}`);
      if (entry !== undefined) found.push(entry);
    }
    yield found;
  }
}

async function findEntry(box: Box, path: string): Promise<FoundEntry | undefined> {
  try {
    const entries = await findRecord(box.disk, ledgerFileKind, path);
    if (entries === undefined) return undefined;
    return { path, committed: entryNamed(box, entries, path), form: entries.length > 1 ? "block" : "record" };
  } catch (error) {
    if (!hasErrno(error, "EISDIR")) return undefinedIfDamaged(error);
  }
  try {
    const committed = await findRecord(box.disk, committedKind, `${path}/${recordName}`);
    return committed && { path, committed, form: "directory" };
  } catch (error) {
    return undefinedIfDamaged(error);
  }
}

/** Rethrows an error unless it concerns only this entry. */
function undefinedIfDamaged(error: unknown): undefined {
  if (!isUnreadable(error) && !hasErrno(error, "ESTALE", "ENOTDIR")) throw error;
}
