// ForeignChanges finds contents that no change by Holdfast explains: another program wrote them,
// without a lock.
//
// Every change is announced before it is committed. So if a change of any process brought a content
// seen on the disk, its number is in the log when the log is read after the file. No process is
// blamed because of what this one remembers.
import { isWithin } from "../../format/path-key.ts";
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

export class ForeignChanges {
  readonly #derived: Derived;
  readonly #follower: Follower;

  constructor(derived: Derived, follower: Follower) {
    this.#derived = derived;
    this.#follower = follower;
  }

  /** Judges a content with this stamp that was seen at `path`. `findIndexed` is called after the log was read. */
  async judge(
    path: string,
    stamp: string,
    findIndexed: () => Promise<IndexedContent | undefined>,
  ): Promise<{ readonly verdict: ForeignVerdict; readonly indexed?: IndexedContent }> {
    await this.#follower.refresh();
    const last = await this.#derived.tree.changes.last();
    if (await this.#isWaitedFor(path, last)) return { verdict: "explained" };
    const indexed = await findIndexed();
    if (indexed?.stamp === stamp) return { verdict: "explained" };
    // The file is changing right now: the next check judges the new content.
    if ((await this.#derived.findStamp(path)) !== stamp) return { verdict: "explained" };
    const since = indexed?.change ?? 0;
    const verdict = await this.#verdictOf(await this.changeBetween(path, since, last));
    return { verdict, ...(indexed === undefined ? {} : { indexed }) };
  }

  /**
   * Returns the newest change after `after` and up to `upTo` that may have written the file at
   * `path`; "many" if there are too many to check.
   */
  async changeBetween(path: string, after: number, upTo: number): Promise<Change | "many" | undefined> {
    if (upTo - after > changesMax) return "many";
    for (let number = upTo; number > after; number--) {
      const change = await this.#derived.tree.changes.find(number);
      if (change === undefined) return "many";
      if (concerns(change, path)) return change;
    }
    return undefined;
  }

  /** True if work on that path is pending, or not yet in this process's index. */
  async #isWaitedFor(path: string, last: number): Promise<boolean> {
    const pending = this.#follower.pendingUpTo(last);
    if (pending.length > changesMax) return true;
    for (const number of pending) {
      const change = await this.#derived.tree.changes.find(number);
      // A change that is not visible yet may concern anything.
      if (change === undefined || concerns(change, path)) return true;
    }
    return false;
  }

  async #verdictOf(change: Change | "many" | undefined): Promise<ForeignVerdict> {
    if (change === undefined) return "foreign";
    if (change === "many") return "unindexed";
    // A search must not retry a file that cannot be indexed.
    return (await this.#derived.outcomes.find(change.number))?.failed === undefined ? "unindexed" : "explained";
  }
}

function concerns({ path, from }: Change, file: string): boolean {
  return isWithin(file, path) || (from !== undefined && isWithin(file, from));
}
