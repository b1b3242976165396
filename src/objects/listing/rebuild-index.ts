// Rebuilds the index from the directories of the keys, and compares the two. Memory does not grow
// with the number of keys.
import { findRecord } from "../../durable/publish/record-file.ts";
import { newTemp } from "../../durable/publish/staging.ts";
import { ensureDirectory, listIfThere, unlinkIfThere } from "../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { moveAside } from "../../part/aside.ts";
import { describeUnreadable, type Findings } from "../../part/findings.ts";
import { hasErrno, isUnwritable } from "../../ports/disk-error.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { isSlotDamage } from "../key/entry-file.ts";
import { announcementKind } from "./announcements.ts";
import { IndexSnapshot } from "./index-snapshot.ts";
import { compareKeys, compareLines, type IndexLine } from "./index-line.ts";
import type { KeyIndex } from "./key-index.ts";
import { KeyRun, writeRun } from "./key-run.ts";
import { mergeLines, type SortedLines } from "./merge-lines.ts";
import { walkKeyLives } from "./walk-keys.ts";

/** How many keys are sorted in memory at once. */
const sortedAtOnce = 32_768;
/** How often a rebuild is tried again because another process merged meanwhile. */
const attemptsMax = 10;

/** Finds keys that no listing shows, and an unreadable index. With `repair`, rebuilds the index. */
export async function verifyIndex(
  bucket: OpenBucket,
  open: () => Promise<KeyIndex>,
  findings: Findings,
  { repair }: { readonly repair: boolean },
): Promise<void> {
  const fault = await findFault(bucket, open);
  if (fault === undefined) return;
  const path = bucket.layout.index;
  const isRepaired = repair && !fault.isForeign;
  if (isRepaired) await repairIndex(bucket, open);
  const remedy = isRepaired ? "The index of keys was rebuilt. Nothing is left to do." : fault.remedy;
  findings.damage({ path }, fault.what, remedy, { repaired: isRepaired });
}

interface IndexFault {
  readonly what: string;
  readonly remedy: string;
  /** True if another release or another user can read the file, which is then left alone. */
  readonly isForeign: boolean;
}

async function findFault(bucket: OpenBucket, open: () => Promise<KeyIndex>): Promise<IndexFault | undefined> {
  const remake = "Repair the store: the index is rebuilt from the keys.";
  try {
    const missing = await findMissing(bucket, await open());
    if (missing === undefined) return undefined;
    const what = `The key ${JSON.stringify(missing)} is not in the index, so no listing shows it.`;
    return { what, remedy: remake, isForeign: false };
  } catch (error) {
    const { what, remedy = remake } = describeUnreadable("The index of keys", error);
    return { what, remedy, isForeign: isHoldfastError(error, "NEWER_FORMAT", "NO_PERMISSION") };
  }
}

/**
 * Rebuilds a damaged index from the keys and from its readable part. Moves unreadable files aside.
 * Several processes may do it at once.
 */
export async function repairIndex(bucket: OpenBucket, open: () => Promise<KeyIndex>): Promise<void> {
  const { storage, layout } = bucket;
  const aside = { disk: storage.disk, directory: storage.layout.directory, newId: () => storage.newId() };
  try {
    await rebuildIndex(bucket, await open());
  } catch (error) {
    if (!isRepairable(bucket, error)) throw error;
    // The manifests are unreadable: start over with a first one.
    await moveAside(aside, layout.manifests);
    await rebuildIndex(bucket, await open());
  }
  // Unreadable announcements are moved aside only after the readable ones are in a run.
  for (const name of await listIfThere(storage.disk, layout.entries)) {
    const path = `${layout.entries}/${name}`;
    try {
      await findRecord(storage.disk, announcementKind, path);
    } catch (error) {
      if (!isRepairable(bucket, error)) throw error;
      await moveAside(aside, path);
    }
  }
}

/**
 * True if a file of the index is unreadable. The index is derived data, so listings must not fail
 * because of it.
 */
export function isIndexDamage({ storage, layout }: OpenBucket, error: unknown): boolean {
  if (!isHoldfastError(error) || !("path" in error) || !error.path.startsWith(layout.index)) return false;
  return isSlotDamage(storage.disk, error) || hasErrno(error, "ENOENT", "ENOTDIR");
}

/** Like `isIndexDamage`, but false if another release or user can read the file. */
export function isRepairable(bucket: OpenBucket, error: unknown): boolean {
  return isIndexDamage(bucket, error) && !isHoldfastError(error, "NEWER_FORMAT", "NO_PERMISSION");
}

/**
 * Collects the lines of a new run, from the directories of the keys and from the readable lines of
 * the runs: a put may be about to begin an announced key that has no directory yet.
 */
export async function rebuildIndex(bucket: OpenBucket, index: KeyIndex): Promise<void> {
  await bucket.mustBeThere();
  for (const path of [bucket.layout.entries, bucket.layout.runs]) await ensureDirectory(bucket.storage.disk, path);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    await using lives = await SortedKeyLives.collect(bucket);
    const runs = (await index.runs()).filter((run) => run !== undefined);
    try {
      if (await index.replaceRuns(mergeLines([lives.lines(), ...runs.map(readable)]))) return;
    } finally {
      for (const run of runs) await run[Symbol.asyncDispose]();
    }
  }
  const { index: path } = bucket.layout;
  const message = `${path} was merged by other processes during each of ${attemptsMax} attempts. Try again later.`;
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}

/** Finds a key that has a directory and is not in the index. */
async function findMissing(bucket: OpenBucket, index: KeyIndex): Promise<string | undefined> {
  await using lives = await SortedKeyLives.collect(bucket);
  // The snapshot is taken after the keys were found, so each of them had been announced by then.
  await using snapshot = await index.snapshot();
  const listed = snapshot.from("");
  let next = await listed.next();
  for await (const some of mergeLines([lives.lines()]))
    for (const { key } of some) {
      while (next.done !== true && compareKeys(next.value, key) < 0) next = await listed.next();
      if (next.done === true || next.value !== key) return key;
    }
  // Also reads the lines after the last key, which must be readable too.
  while (next.done !== true) next = await listed.next();
  return undefined;
}

/**
 * The lives of all keys, sorted in batches that fit into memory. The last batch stays in memory;
 * the others are in files of this process, or in memory if nothing can be written.
 */
export class SortedKeyLives implements AsyncDisposable {
  readonly #bucket: OpenBucket;
  readonly #runs: { readonly path: string; readonly run: KeyRun }[] = [];
  #last: IndexLine[] = [];

  private constructor(bucket: OpenBucket) {
    this.#bucket = bucket;
  }

  static async collect(bucket: OpenBucket): Promise<SortedKeyLives> {
    const sorted = new SortedKeyLives(bucket);
    let some: IndexLine[] = [];
    let lengthMax = sortedAtOnce;
    for await (const life of walkKeyLives(bucket)) {
      some.push({ ...life, isEnded: false });
      if (some.length < lengthMax) continue;
      if (await sorted.#write(some)) some = [];
      else lengthMax = Infinity;
    }
    sorted.#last = some.sort(compareLines);
    return sorted;
  }

  /** Valid until this object is disposed of. */
  snapshot(): IndexSnapshot {
    return new IndexSnapshot(
      this.#last,
      this.#runs.map(({ run }) => run),
    );
  }

  lines(): SortedLines {
    return mergeLines([[this.#last], ...this.#runs.map(({ run }) => run.from(""))]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { disk } = this.#bucket.storage;
    for (const { path, run } of this.#runs) {
      await run[Symbol.asyncDispose]();
      await unlinkIfThere(disk, path);
    }
  }

  /** Returns false if nothing can be written. */
  async #write(lines: IndexLine[]): Promise<boolean> {
    const { disk, staging } = this.#bucket.storage;
    try {
      const path = newTemp(staging, await staging.directory());
      const size = await writeRun(disk, path, [lines.sort(compareLines)]);
      this.#runs.push({ path, run: new KeyRun(await disk.open(path, "read"), path, size) });
      return true;
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return false;
    }
  }
}

/** The lines of a run up to the first damaged one. */
async function* readable(run: KeyRun): AsyncGenerator<readonly IndexLine[]> {
  let last: IndexLine | undefined;
  try {
    for await (const lines of run.from("")) {
      const isAfterLast = (line: IndexLine, index: number): boolean => {
        const before = index === 0 ? last : lines[index - 1];
        return before === undefined || compareLines(before, line) < 0;
      };
      if (!lines.every(isAfterLast)) return;
      yield lines;
      last = lines.at(-1);
    }
  } catch {
    // `findFault` reports this damage.
  }
}
