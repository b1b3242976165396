// Finds contents that no change by Holdfast explains: another program wrote them,
// without a lock.
//
// Every change is announced before it is committed. So if a change of any process brought a content
// seen on the disk, its number is in the log when the log is read after the file. No process is
// blamed because of what this one remembers.
import { isWithin } from "../../format/path-key.ts";
import type { ChangeLog } from "../change-log/change-log.ts";
import type { Derived } from "../documents/derived.ts";
import type { Change } from "../model/file-tree.ts";
import type { Follower } from "./follower.ts";

/** More changes than this are not read: they are assumed to explain what they may have brought. */
const changesMax = 1_000;

/** The indexed content of a file. */
export interface IndexedContent {
  readonly stamp: string;
  readonly change: number;
}

/**
 * - "explained": the index has the content by now, or will have it, or was given up for it.
 * - "unindexed": the index has another content, and it is unknown which program wrote the file.
 * - "foreign": no change brought this content.
 */
export type ForeignVerdict = "explained" | "unindexed" | "foreign";

/** Judges a content with this stamp that was seen at `path`. `findIndexed` is called after the log was read. */
export async function judgeContent(
  { derived, follower }: { readonly derived: Derived; readonly follower: Follower },
  path: string,
  stamp: string,
  findIndexed: () => Promise<IndexedContent | undefined>,
): Promise<{ readonly verdict: ForeignVerdict; readonly indexed?: IndexedContent }> {
  const { changes } = derived.tree;
  await follower.refresh();
  const last = await changes.last();
  if (await isAnyFor(path, changes, follower.pendingUpTo(last))) return { verdict: "explained" };
  const indexed = await findIndexed();
  if (indexed?.stamp === stamp) return { verdict: "explained" };
  // The file is changing right now: the next check judges the new content.
  if ((await derived.findStamp(path)) !== stamp) return { verdict: "explained" };
  const verdict = await verdictOf(derived, await changeBetween(changes, path, indexed?.change ?? 0, last));
  return { verdict, ...(indexed === undefined ? {} : { indexed }) };
}

/**
 * Returns the newest change after `after` and up to `upTo` that may have written the file at `path`;
 * "many" if there are too many to check.
 */
export async function changeBetween(
  changes: ChangeLog,
  path: string,
  after: number,
  upTo: number,
): Promise<Change | "many" | undefined> {
  if (upTo - after > changesMax) return "many";
  for (let number = upTo; number > after; number--) {
    const change = await changes.find(number);
    if (change === undefined) return "many";
    if (concerns(change, path)) return change;
  }
  return undefined;
}

/** True if one of the `pending` changes, which are not in this process's index yet, may concern the path. */
async function isAnyFor(path: string, changes: ChangeLog, pending: readonly number[]): Promise<boolean> {
  if (pending.length > changesMax) return true;
  for (const number of pending) {
    const change = await changes.find(number);
    // A change that is not visible yet may concern anything.
    if (change === undefined || concerns(change, path)) return true;
  }
  return false;
}

async function verdictOf({ outcomes }: Derived, change: Change | "many" | undefined): Promise<ForeignVerdict> {
  if (change === undefined) return "foreign";
  if (change === "many") return "unindexed";
  // A search must not retry a file that cannot be indexed.
  return (await outcomes.find(change.number))?.failed === undefined ? "unindexed" : "explained";
}

function concerns({ path, from }: Change, file: string): boolean {
  return isWithin(file, path) || (from !== undefined && isWithin(file, from));
}
