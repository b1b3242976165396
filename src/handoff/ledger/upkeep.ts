// The upkeep of the ledger, by one process at a time: it goes through all entries under a lease.
//
// Compaction puts a file in the place of an entry, and expiry vacates names. A compactor that slept in between
// would put an old entry in the place of what was committed under a vacated name since. So both need the same
// lease; and when a process has it, the temp directories of the dead are removed first, from which a compactor
// that was taken for dead would move its file.
import type { Cancel } from "../../common.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { isHoldfastError } from "../../errors.ts";
import { Leases } from "../../part/leases.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Box } from "../box/box.ts";
import { committedKind, entryNamed, ledgerFileKind, recordName, type Committed } from "./ledger.ts";

/** An entry of the ledger, as upkeep meets it. */
export interface FoundEntry {
  readonly path: string;
  readonly committed: Committed;
  readonly form: "record" | "block" | "directory";
}

/** Does `work` under the lease; undefined when another process has it. LOCK_LOST when this one was taken for dead. */
export async function withLedgerLease<T>(
  box: Box,
  work: (session: HolderSession) => Promise<T>,
): Promise<T | undefined> {
  const leases = new Leases(box.layout.directory, async () => box.ground);
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

/** All entries, shard by shard. A damaged one is left out: `verify` tells of it. */
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
    if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT") || hasErrno(error, "ESTALE")) return undefined;
    if (!hasErrno(error, "EISDIR")) throw error;
  }
  try {
    const committed = await findRecord(box.disk, committedKind, `${path}/${recordName}`);
    return committed && { path, committed, form: "directory" };
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT") || hasErrno(error, "ESTALE")) return undefined;
    throw error;
  }
}
