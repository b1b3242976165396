// The record of an index: since when it counts. A person may delete the index at any moment; the next process that
// misses the record begins a new one.
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { decideRecord, findDecision } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import type { ChangeLog } from "../change-log/change-log.ts";
import type { DocumentsLayout } from "./layout.ts";

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
  await ensureDirectory(staging.disk, layout.directory);
  // A tree that was never changed may have files of other programs.
  const isNew = (await changes.last()) === 0 && (await isEmpty());
  const base = isNew ? 1 : (await changes.append({ kind: "written", path: "" })).number;
  return await decideRecord(staging, indexKind, layout.record, { id: randomName(staging.random.bytes(16)), base });
}
