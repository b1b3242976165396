// The record of an index: the change from which the index is complete. A person may delete the
// index at any time; the next process that finds no record starts a new index.
import { ensureDirectory, parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import { decideRecord, findDecision, findRecord, getRecord } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { isHoldfastError } from "../../errors.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { moveAside } from "../../part/aside.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { ChangeLog } from "../change-log/change-log.ts";
import { isDamagedRecord } from "../tree/damaged-record.ts";
import type { DocumentsLayout } from "./layout.ts";

/** If the directory is deleted this often before it has the record, that is no accident. */
const attemptsMax = 5;

export interface IndexRecord {
  readonly id: string;
  /** The work on this change indexes everything that changed before it. */
  readonly base: number;
}

const indexKind: RecordKind<IndexRecord> = {
  kind: "index",
  decode: (value) => {
    const { id, base } = objectOf(value);
    return { id: textOf(id), base: countOf(base) };
  },
};

/**
 * Returns the current record; undefined if there is none. An unreadable one is moved aside and
 * `onDamage` is called: the index is derived, so it starts over and never keeps the tree from
 * opening. Throws NEWER_FORMAT.
 */
export async function findIndex(
  staging: Staging,
  layout: DocumentsLayout,
  onDamage: (error: unknown) => void = () => undefined,
): Promise<IndexRecord | undefined> {
  const { disk } = staging;
  try {
    return await findRecord(disk, indexKind, layout.record);
  } catch (error) {
    if (!isDamagedRecord(error)) throw error;
    onDamage(error);
  }
  const directory = parentOf(layout.directory);
  const id = randomName(staging.random.bytes(16));
  if (await moveAside({ disk, directory, newId: () => id }, layout.record))
    await putBackIfWhole(staging, `${directory}/aside/index.json.${id}`, layout.record);
  return await findRecord(disk, indexKind, layout.record);
}

/**
 * Puts a moved record back if it is whole. Another process may have moved the damaged record aside
 * first; the moved record is then the new one of that process.
 */
async function putBackIfWhole(staging: Staging, moved: string, path: string): Promise<void> {
  const { disk } = staging;
  try {
    const record = await getRecord(disk, indexKind, moved);
    // Has no effect if a third process has started an index meanwhile: that one is current.
    await putIfAbsent(staging, path, encodeRecord(indexKind, record));
  } catch (error) {
    if (isDamagedRecord(error)) return;
    throw error;
  }
  await unlinkIfThere(disk, moved);
}

/**
 * Returns the current record. If there is none, starts a new index with a change of the whole tree,
 * unless nothing was ever written to the tree. `isEmpty` checks the tree.
 */
export async function decideIndex(
  staging: Staging,
  layout: DocumentsLayout,
  changes: ChangeLog,
  isEmpty: () => Promise<boolean>,
): Promise<IndexRecord> {
  const known = await findDecision(staging.disk, indexKind, layout.record);
  if (known !== undefined) return known;
  // A tree that was never changed may contain files of other programs.
  const isNew = (await changes.last()) === 0 && (await isEmpty());
  const base = isNew ? 1 : (await changes.append({ kind: "written", path: "" })).number;
  const proposal = { id: randomName(staging.random.bytes(16)), base };
  for (let attempt = 1; ; attempt++) {
    await ensureDirectory(staging.disk, layout.directory);
    try {
      return await decideRecord(staging, indexKind, layout.record, proposal);
    } catch (error) {
      // A person is deleting the index right now, and with it the directory or another process's
      // record.
      const isDeleted = hasErrno(error, "ENOENT") || isHoldfastError(error, "OUTCOME_UNKNOWN");
      if (!isDeleted || attempt >= attemptsMax) throw error;
    }
  }
}
