// Announcements: lives of keys that are about to begin, or to end, written down before they do, so
// that a listing looks for the key, and a merge may forget it.
import { moveOnce } from "../../durable/publish/publish.ts";
import { retryIfSwept, stage } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { listOf, objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { lostIndex, type IndexLine, type KeyLife } from "./index-line.ts";

/** So many go into one file, and so many bytes of keys: what a listing holds in memory has a bound. */
const livesPerFile = 256;
const keyBytesPerFile = 64 * 1024;
/**
 * After an announcement whose name begins so, which is one of 32, its process looks whether there is
 * enough to merge. By the name, not by a count: a process that puts once does its share of the work, too.
 */
const looksAt = "0";

export interface Announcement {
  /** Lives that are about to begin. */
  readonly keys: readonly KeyLife[];
  /** Lives that have begun, and are to end. */
  readonly ended: readonly KeyLife[];
}

export const announcementKind: RecordKind<{
  readonly keys: readonly (readonly string[])[];
  readonly ended: readonly (readonly string[])[];
}> = {
  kind: "announcement",
  decode: (value) => {
    const { keys, ended } = objectOf(value);
    return { keys: listOf(keys, pairOf), ended: listOf(ended, pairOf) };
  },
};

/** The lines of the index that an announcement adds. */
export function linesOf({ keys, ended }: ReturnType<typeof announcementKind.decode>): IndexLine[] {
  const lineOf = (isEnded: boolean) => (pair: readonly string[]) => {
    const [key = "", incarnation = ""] = pair;
    return { key, incarnation, isEnded };
  };
  return [...keys.map(lineOf(false)), ...ended.map(lineOf(true))];
}

interface Waiting extends KeyLife {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Callers of the same moment share a file and its syncs. */
export class Announcements {
  readonly #merge: ((bucket: OpenBucket) => Promise<unknown>) | undefined;
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #writing = new Set<string>();
  readonly #merging = new Map<string, Promise<unknown>>();

  /** `merge` is called now and then, in the background. */
  constructor(merge?: (bucket: OpenBucket) => Promise<unknown>) {
    this.#merge = merge;
  }

  /** How many calls and merges are under way. */
  get size(): number {
    return this.#waiting.size + this.#writing.size + this.#merging.size;
  }

  /** Durable when it resolves. */
  async announce(bucket: OpenBucket, key: string, incarnation: string): Promise<void> {
    const { entries } = bucket.layout;
    await new Promise<void>((resolve, reject) => {
      const waiting = this.#waiting.get(entries) ?? [];
      waiting.push({ key, incarnation, resolve, reject });
      this.#waiting.set(entries, waiting);
      if (!this.#writing.has(entries)) void this.#write(bucket, entries);
    });
  }

  /** Resolves when nothing is being merged in the background. */
  async settled(): Promise<void> {
    await Promise.all(this.#merging.values());
  }

  async #write(bucket: OpenBucket, entries: string): Promise<void> {
    this.#writing.add(entries);
    // This lets callers of the same moment join.
    await Promise.resolve();
    for (let waiting = this.#waiting.get(entries); waiting !== undefined; waiting = this.#waiting.get(entries)) {
      const batch = takeBatch(waiting);
      if (waiting.length === 0) this.#waiting.delete(entries);
      try {
        const name = await writeAnnouncement(bucket, { keys: batch, ended: [] });
        for (const { resolve } of batch) resolve();
        if (name.startsWith(looksAt)) this.#mergeInBackground(bucket, entries);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#writing.delete(entries);
  }

  #mergeInBackground(bucket: OpenBucket, entries: string): void {
    if (this.#merge === undefined || this.#merging.has(entries)) return;
    // A failure is left to the next process that merges: until then a listing reads what is there.
    const merging = this.#merge(bucket)
      .catch(() => undefined)
      .finally(() => this.#merging.delete(entries));
    this.#merging.set(entries, merging);
  }
}

function takeBatch(waiting: Waiting[]): Waiting[] {
  let bytes = 0;
  const isBeyond = ({ key }: Waiting): boolean => (bytes += 3 * key.length) > keyBytesPerFile;
  const end = waiting.slice(0, livesPerFile).findIndex(isBeyond);
  return waiting.splice(0, end < 0 ? livesPerFile : Math.max(1, end));
}

/** Durable when it resolves. Returns its name. */
export async function writeAnnouncement(bucket: OpenBucket, lives: Announcement): Promise<string> {
  const { place, layout } = bucket;
  const pairsOf = (some: readonly KeyLife[]) => some.map(({ key, incarnation }) => [key, incarnation]);
  const bytes = encodeRecord(announcementKind, { keys: pairsOf(lives.keys), ended: pairsOf(lives.ended) });
  const name = place.newId();
  await retryIfSwept(async () => {
    const temp = await stage(place.staging, bytes, { sync: place.isSynced });
    const isMoved = await moveOnce(place.disk, temp, `${layout.entries}/${name}`).catch((error: unknown) => {
      if (!hasErrno(error, "ENOENT")) throw error;
      return false;
    });
    if (isMoved) return;
    if (!(await place.disk.canOpen(layout.entries))) {
      await bucket.mustBeThere();
      throw lostIndex(layout.index);
    }
    const message = `${temp} is gone, so this process was closed or taken for dead meanwhile. Open it again.`;
    throw holdfastError("LOCK_LOST", message, { path: temp });
  });
  await place.sync(layout.entries);
  return name;
}

function pairOf(value: unknown): readonly string[] {
  const pair = listOf(value, textOf);
  if (pair.length !== 2) throw new TypeError("A life is a key and its incarnation.");
  return pair;
}
