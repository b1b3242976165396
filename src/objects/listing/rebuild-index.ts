// Making the index anew from the directories of the keys, and comparing the two. Memory does not grow
// with the number of keys.
import { newTemp } from "../../durable/publish/staging.ts";
import { ensureDirectory, unlinkIfThere } from "../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { moveAside } from "../../part/aside.ts";
import { describeDamage, type Findings } from "../../part/findings.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { compareKeys, compareLines, type IndexLine } from "./index-line.ts";
import type { KeyIndex } from "./key-index.ts";
import { KeyRun, writeRun } from "./key-run.ts";
import { mergeLines, type SortedLines } from "./merge-lines.ts";
import { walkLives } from "./walk-keys.ts";

/** So many keys are sorted in memory at once. */
const sortedAtOnce = 32_768;
/** Other processes that merge all the time are not waited for any longer. */
const attemptsMax = 10;

/**
 * Finds keys that no listing shows, and an index that cannot be read. With `repair` the index is made
 * anew.
 */
export async function verifyIndex(
  bucket: OpenBucket,
  open: () => Promise<KeyIndex>,
  findings: Findings,
  { repair }: { readonly repair: boolean },
): Promise<void> {
  const fault = await findFault(bucket, open);
  if (fault === undefined) return;
  const path = bucket.layout.index;
  const isRepaired = repair && !fault.isNewer;
  if (isRepaired) await repairIndex(bucket, open);
  const remedy = isRepaired ? "The index of keys was made again. Nothing is left to do." : fault.remedy;
  findings.damage({ path }, fault.what, remedy, { repaired: isRepaired });
}

interface IndexFault {
  readonly what: string;
  readonly remedy: string;
  readonly isNewer: boolean;
}

async function findFault(bucket: OpenBucket, open: () => Promise<KeyIndex>): Promise<IndexFault | undefined> {
  const remake = "Have the store repaired: the index is made again from the keys.";
  try {
    const missing = await findMissing(bucket, await open());
    if (missing === undefined) return undefined;
    const what = `The key ${JSON.stringify(missing)} is not in the index, so no listing shows it.`;
    return { what, remedy: remake, isNewer: false };
  } catch (error) {
    const { what, remedy = remake } = describeDamage("The index of keys", error);
    return { what, remedy, isNewer: isHoldfastError(error, "NEWER_FORMAT") };
  }
}

async function repairIndex(bucket: OpenBucket, open: () => Promise<KeyIndex>): Promise<void> {
  try {
    await rebuildIndex(bucket, await open());
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    // Its manifests cannot be read: it begins with a first one.
    const { place, layout } = bucket;
    await moveAside(
      { disk: place.disk, directory: place.layout.directory, newId: () => place.newId() },
      layout.manifests,
    );
    await rebuildIndex(bucket, await open());
  }
}

/** From the directories of the keys, and from what can be read of the runs: a put may be about to begin a key. */
export async function rebuildIndex(bucket: OpenBucket, index: KeyIndex): Promise<void> {
  await bucket.mustBeThere();
  for (const path of [bucket.layout.entries, bucket.layout.runs]) await ensureDirectory(bucket.place.disk, path);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    await using lives = await SortedLives.collect(bucket);
    const runs = (await index.runs()).filter((run) => run !== undefined);
    try {
      if (await index.replaceRuns(mergeLines([lives.lines(), ...runs.map(readable)]))) return;
    } finally {
      for (const run of runs) await run[Symbol.asyncDispose]();
    }
  }
  const { index: path } = bucket.layout;
  const message = `${path} was merged by other processes at each of ${attemptsMax} attempts. Try again later.`;
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}

/** A key with a directory that is not in the index. */
async function findMissing(bucket: OpenBucket, index: KeyIndex): Promise<string | undefined> {
  await using lives = await SortedLives.collect(bucket);
  // After the keys were found: each of them was announced before.
  await using snapshot = await index.snapshot();
  const listed = snapshot.from("");
  let next = await listed.next();
  for await (const some of mergeLines([lives.lines()]))
    for (const { key } of some) {
      while (next.done !== true && compareKeys(next.value, key) < 0) next = await listed.next();
      if (next.done === true || next.value !== key) return key;
    }
  // Also what comes behind the last key must be readable.
  while (next.done !== true) next = await listed.next();
  return undefined;
}

/**
 * The lives of all keys, sorted in pieces that fit into memory. The last piece stays there, the others
 * lie in files of this process.
 */
class SortedLives implements AsyncDisposable {
  readonly #bucket: OpenBucket;
  readonly #runs: { readonly path: string; readonly run: KeyRun }[] = [];
  #last: readonly IndexLine[] = [];

  private constructor(bucket: OpenBucket) {
    this.#bucket = bucket;
  }

  static async collect(bucket: OpenBucket): Promise<SortedLives> {
    const sorted = new SortedLives(bucket);
    let some: IndexLine[] = [];
    for await (const life of walkLives(bucket)) {
      some.push({ ...life, isEnded: false });
      if (some.length < sortedAtOnce) continue;
      await sorted.#write(some);
      some = [];
    }
    sorted.#last = some.sort(compareLines);
    return sorted;
  }

  lines(): SortedLines {
    return mergeLines([[this.#last], ...this.#runs.map(({ run }) => run.from(""))]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { disk } = this.#bucket.place;
    for (const { path, run } of this.#runs) {
      await run[Symbol.asyncDispose]();
      await unlinkIfThere(disk, path);
    }
  }

  async #write(lines: IndexLine[]): Promise<void> {
    const { disk, staging } = this.#bucket.place;
    const path = newTemp(staging, await staging.directory());
    const size = await writeRun(disk, path, [lines.sort(compareLines)]);
    this.#runs.push({ path, run: new KeyRun(await disk.open(path, "read"), path, size) });
  }
}

/** The lines of a run up to the first that is damaged. */
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
    // Told when it was compared.
  }
}
