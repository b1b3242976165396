// The record of an index: since when it counts. A person may delete the index at any moment; the next process that
// misses the record begins a new one.
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { decideRecord, findDecision } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { isHoldfastError } from "../../errors.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { ChangeLog } from "../change-log/change-log.ts";
import type { DocumentsLayout } from "./layout.ts";

/** A directory that is deleted each time before the record is in it is no accident any more. */
const attemptsMax = 5;

export interface IndexRecord {
  readonly id: string;
  /** Everything that changed before this change is indexed by the work on it. */
  readonly base: number;
}

export const indexKind: RecordKind<IndexRecord> = {
  kind: "index",
  decode: (value) => {
    const { id, base } = objectOf(value);
    return { id: textOf(id), base: countOf(base) };
  },
};

/**
 * The record that holds. If there is none, a new index begins: with a change of the whole tree, unless nothing was
 * ever written there. `isEmpty` looks at the tree.
 */
export async function decideIndex(
  staging: Staging,
  layout: DocumentsLayout,
  changes: ChangeLog,
  isEmpty: () => Promise<boolean>,
): Promise<IndexRecord> {
  const known = await findDecision(staging.disk, indexKind, layout.record);
  if (known !== undefined) return known;
  // A tree that was never changed may have files of other programs.
  const isNew = (await changes.last()) === 0 && (await isEmpty());
  const base = isNew ? 1 : (await changes.append({ kind: "written", path: "" })).number;
  const proposal = { id: randomName(staging.random.bytes(16)), base };
  for (let attempt = 1; ; attempt++) {
    await ensureDirectory(staging.disk, layout.directory);
    try {
      return await decideRecord(staging, indexKind, layout.record, proposal);
    } catch (error) {
      // A person deletes the index at this moment, and the directory or the record of another process went with it.
      const isDeleted = hasErrno(error, "ENOENT") || isHoldfastError(error, "OUTCOME_UNKNOWN");
      if (!isDeleted || attempt >= attemptsMax) throw error;
    }
  }
}
