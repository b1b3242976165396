// Compaction: many small files of old entries become few. A block has up to 64 entries; each of their names
// becomes a link to it by one rename, so no name is ever vacant, and a reader finds its entry before and after. On a
// share a rename may vacate the name that it replaces (decision 112), so entries stay in files of their own there.
import type { Cancel } from "../../common.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { discard, newTemp, stage } from "../../durable/publish/staging.ts";
import { linkOnce, renameOnce } from "../../durable/publish/publish.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { encodeRecord } from "../../format/record.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Box } from "../box/box.ts";
import { ledgerFileKind, type Committed } from "./ledger.ts";
import { shardsOf, withLedgerLease, type FoundEntry } from "./upkeep.ts";

const entriesMax = 64;
/** A block of fewer is not worth its writing. */
const entriesMin = 8;
/** An entry with a larger result stays alone: a look for one entry reads the whole block. */
const entryBytesMax = 2048;
/** Younger ones are likely to be asked for, or to be expired as a day's work. */
const olderThanMsDefault = 86_400_000;

const blockKind: RecordKind<{ readonly entries: readonly Committed[] }> = {
  kind: ledgerFileKind.kind,
  decode: (value) => ({ entries: ledgerFileKind.decode(value) }),
};

export interface CompactOptions extends Cancel {
  /** Default: a day. */
  readonly olderThanMs?: number | undefined;
}

/**
 * Puts old entries together; returns how many, on a share none. Undefined when another process is at it. A crash at any
 * point leaves every entry in its file or in its block.
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

/** Under the lease. */
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
        // Between two names of one file a rename does nothing, and says that it was done.
        await discard(session.staging, temp);
      }
    }
  } finally {
    await discard(session.staging, block);
  }
  // The old files may come back after a power cut: they say the same.
  await box.sync(...new Set(entries.map(({ path }) => parentOf(path))));
  return entries.length;
}
