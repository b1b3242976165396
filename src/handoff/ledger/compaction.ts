// Compaction of the ledger: merges many small files of old entries into blocks of up to 64. Each
// name becomes a link to its block by one rename, so no name is ever vacant and readers find the
// entry before and after. On a share a rename may vacate the name that it replaces (decision 112),
// so entries keep their own files there.
import type { Cancel } from "../../common.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { discard, newTemp, stage } from "../../durable/publish/staging.ts";
import { linkOnce, renameOnce } from "../../durable/publish/publish.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { encodeRecord } from "../../format/record.ts";
import type { Box } from "../box/box.ts";
import { entriesMax, entryBytesMax } from "../box/group-put.ts";
import { blockKind } from "./ledger.ts";
import { shardsOf, withLedgerLease, type FoundEntry } from "./upkeep.ts";

/** Fewer entries do not justify writing a block. */
const entriesMin = 8;
/**
 * The default age from which entries are merged. Younger ones are still read often, or expire
 * together with their day.
 */
const olderThanMsDefault = 86_400_000;

export interface CompactOptions extends Cancel {
  /** How old an entry must be. Default: one day. */
  readonly olderThanMs?: number | undefined;
}

/**
 * Merges old entries and returns how many; 0 on a share. Returns undefined if another process has
 * the lease. A crash at any point leaves every entry in its own file or in its block.
 */
export async function compactLedger(
  box: Box,
  { olderThanMs = olderThanMsDefault, signal }: CompactOptions = {},
): Promise<number | undefined> {
  if (box.disk.volume.kind !== "local") return 0;
  return await withLedgerLease(box, async (session) => {
    const beforeMs = (await box.nowMs()) - olderThanMs;
    let compacted = 0;
    for await (const found of shardsOf(box, { signal })) {
      const old = found.filter((entry) => isWorthIt(entry, beforeMs));
      for (let start = 0; old.length - start >= entriesMin; start += entriesMax)
        compacted += await compactEntries(box, session, old.slice(start, start + entriesMax));
    }
    return compacted;
  });
}

function isWorthIt({ form, committed }: FoundEntry, beforeMs: number): boolean {
  return (
    form === "record" &&
    Date.parse(committed.at) < beforeMs &&
    Buffer.byteLength(JSON.stringify(committed)) <= entryBytesMax
  );
}

/** Call it under the lease. */
export async function compactEntries(
  box: Box,
  session: HolderSession,
  entries: readonly FoundEntry[],
): Promise<number> {
  const { disk } = box;
  const bytes = encodeRecord(blockKind, { entries: entries.map(({ committed }) => committed) });
  const block = await stage(session.staging, bytes, { sync: box.isSynced });
  try {
    for (const { path } of entries) {
      session.throwIfOver();
      const temp = newTemp(session.staging, parentOf(block));
      await linkOnce(disk, block, temp, bytes, { mayRepeat: true });
      try {
        await renameOnce(disk, temp, path);
      } finally {
        // A rename between two names of one file does nothing and succeeds, so the temp name must
        // be unlinked.
        await discard(session.staging, temp);
      }
    }
  } finally {
    await discard(session.staging, block);
  }
  // A power cut may bring back the old files, which does no harm: they have the same content.
  await box.sync(...new Set(entries.map(({ path }) => parentOf(path))));
  return entries.length;
}
