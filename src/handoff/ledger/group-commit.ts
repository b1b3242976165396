// Commits to the ledger. Commits of the same moment share a file (box/group-put.ts), which readers
// treat like a block made by compaction.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { outcomeUnknown } from "../../durable/publish/publish.ts";
import { encodeRecord } from "../../format/record.ts";
import type { Box } from "../box/box.ts";
import { entryBytesMax, GroupPut } from "../box/group-put.ts";
import { inTurn } from "./windows-turn.ts";
import { blockKind, committedKind, findCommitted, type Committed, type LedgerEntry } from "./ledger.ts";

const triesMax = 3;

/**
 * Commits under `path`, or returns the entry committed there before. Durable when it resolves.
 * `session` holds the claim: once it is judged dead, its directory is gone and it can commit
 * nothing.
 */
export async function commit(
  box: Box,
  session: HolderSession,
  path: string,
  committed: Committed,
): Promise<LedgerEntry> {
  for (let tries = 1; ; tries++) {
    if (await inTurn(box, path, () => groupOf(box).put(session, path, committed))) return { committed };
    const entry = await findCommitted(box, path, { isSure: true });
    if (entry !== undefined) {
      // The entry is synced before the caller acts on it: the process that committed it may not
      // have synced it yet.
      await box.sync(parentOf(path));
      return entry;
    }
    // The entry expired after its name was found taken.
    if (tries >= triesMax) throw outcomeUnknown(path, undefined);
  }
}

const groups = new WeakMap<Box, GroupPut<Committed>>();

function groupOf(box: Box): GroupPut<Committed> {
  let group = groups.get(box);
  if (group === undefined) groups.set(box, (group = new GroupPut(box, { encode, mayShare })));
  return group;
}

function encode(entries: readonly Committed[]): Uint8Array {
  const [first] = entries;
  return first !== undefined && entries.length === 1
    ? encodeRecord(committedKind, first)
    : encodeRecord(blockKind, { entries });
}

function mayShare({ result }: Committed): boolean {
  return result === undefined || JSON.stringify(result).length <= entryBytesMax;
}
