// Announcements record lives of keys before they begin or end, so that listings find a new key and
// merges can forget a removed one.
import { parentOf } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { retryIfSwept, stage } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { listOf, objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { IndexLine, KeyLife } from "./index-line.ts";

/** Limits of one file, in keys and in bytes of keys. They limit the memory that a listing needs. */
const livesPerFile = 256;
const keyBytesPerFile = 64 * 1024;
/**
 * After writing an announcement whose name begins with this, one in 32, a process checks whether a
 * merge is due. The random name decides and not a counter, so that processes that put only once
 * also share the work.
 */
const looksAt = "0";

export interface Announcement {
  /** Lives that are about to begin. */
  readonly keys: readonly KeyLife[];
  /** Lives that have begun and are about to end. */
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

/** Returns the index lines of an announcement. */
export function linesOf({ keys, ended }: ReturnType<typeof announcementKind.decode>): IndexLine[] {
  const lineOf = (isEnded: boolean) => (pair: readonly string[]) => {
    const [key = "", incarnation = ""] = pair;
    return { key, incarnation, isEnded };
  };
  return [...keys.map(lineOf(false)), ...ended.map(lineOf(true))];
}

interface WaitingKey extends KeyLife {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Concurrent callers share a file and its syncs. */
export class Announcements {
  readonly #merge: ((bucket: OpenBucket) => Promise<unknown>) | undefined;
  readonly #waiting = new Map<string, WaitingKey[]>();
  readonly #writing = new Set<string>();
  readonly #merging = new Map<string, Promise<unknown>>();

  /** `merge` is called now and then, in the background. */
  constructor(merge?: (bucket: OpenBucket) => Promise<unknown>) {
    this.#merge = merge;
  }

  /** Number of calls and merges in progress. */
  get size(): number {
    return this.#waiting.size + this.#writing.size + this.#merging.size;
  }

  /** Resolves when the announcement is durable. */
  async announce(bucket: OpenBucket, key: string, incarnation: string): Promise<void> {
    const { entries } = bucket.layout;
    await new Promise<void>((resolve, reject) => {
      const waiting = this.#waiting.get(entries) ?? [];
      waiting.push({ key, incarnation, resolve, reject });
      this.#waiting.set(entries, waiting);
      if (!this.#writing.has(entries)) void this.#write(bucket, entries);
    });
  }

  /** Resolves when no merge is running in the background. */
  async settled(): Promise<void> {
    await Promise.all(this.#merging.values());
  }

  async #write(bucket: OpenBucket, entries: string): Promise<void> {
    this.#writing.add(entries);
    // Waits a moment, so that concurrent callers can join the batch.
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
    // An error is ignored: the next process that merges reports it. Until then, listings read the
    // announcements.
    const merging = this.#merge(bucket)
      .catch(() => undefined)
      .finally(() => this.#merging.delete(entries));
    this.#merging.set(entries, merging);
  }
}

function takeBatch(waiting: WaitingKey[]): WaitingKey[] {
  let bytes = 0;
  const isBeyond = ({ key }: WaitingKey): boolean => (bytes += 3 * key.length) > keyBytesPerFile;
  const end = waiting.slice(0, livesPerFile).findIndex(isBeyond);
  return waiting.splice(0, end < 0 ? livesPerFile : Math.max(1, end));
}

/** Returns the file's name once the announcement is durable. */
export async function writeAnnouncement(bucket: OpenBucket, lives: Announcement): Promise<string> {
  const { storage, layout } = bucket;
  const pairsOf = (some: readonly KeyLife[]) => some.map(({ key, incarnation }) => [key, incarnation]);
  const bytes = encodeRecord(announcementKind, { keys: pairsOf(lives.keys), ended: pairsOf(lives.ended) });
  const name = storage.newId();
  await retryIfSwept(async () => {
    const temp = await stage(storage.staging, bytes, { sync: storage.isSynced });
    const enter = (): Promise<boolean> => moveInto(storage.disk, temp, `${layout.entries}/${name}`);
    if (await enter()) return;
    if (!(await storage.disk.canOpen(layout.entries))) {
      await bucket.mustBeThere();
      // The directory of the index was lost. It is created again: the index is derived data, and
      // its loss must not block puts. The next listing rebuilds the index.
      await makeEntries(bucket);
      if (await enter()) return;
    }
    const message = `${temp} is gone, so this process was closed or judged dead meanwhile. Open it again.`;
    throw holdfastError("LOCK_LOST", message, { path: temp });
  });
  await storage.sync(layout.entries);
  return name;
}

/** Returns false if the file or the directory is gone. */
async function moveInto(disk: Disk, temp: string, path: string): Promise<boolean> {
  return await moveOnce(disk, temp, path).catch((error: unknown) => {
    if (!hasErrno(error, "ENOENT")) throw error;
    return false;
  });
}

/** Creates nothing above the index, so that a bucket deleted meanwhile does not reappear. */
async function makeEntries({ storage, layout }: OpenBucket): Promise<void> {
  for (const path of [layout.index, layout.entries]) {
    await storage.disk.mkdir(path).catch((error: unknown) => {
      if (!hasErrno(error, "EEXIST")) throw error;
    });
    await storage.sync(parentOf(path));
  }
}

function pairOf(value: unknown): readonly string[] {
  const pair = listOf(value, textOf);
  if (pair.length !== 2) throw new TypeError("A life is a key and its incarnation.");
  return pair;
}
