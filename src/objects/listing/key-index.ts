// KeyIndex holds the keys of a bucket in order. It is a superset: the chains of the keys tell which
// of them have versions.
//
// A life of a key is announced before it begins. Now and then, a process merges the announcements,
// and runs that are not much larger than they are, into a new sorted run. A manifest names the
// current runs.
//
// The files that only manifest m needs, and the announcements that were merged into it, are removed
// once m + 2 is named, beginning with the `open` file of m. All are gone before m + 3 is named. A
// process that lists the announcements and then still finds the `open` file of its manifest has
// therefore missed none of them.
import type { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { listIfThere, unlinkIfThere } from "../../durable/publish/directory.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { retryIfSwept } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno, isUnwritable } from "../../ports/disk-error.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { isSlotThere, openIfThere } from "../key/entry-file.ts";
import { KeyNames } from "../key/key-names.ts";
import { FreshAnnouncements } from "./fresh-announcements.ts";
import { damagedRun, lostIndex, type IndexLine } from "./index-line.ts";
import { IndexSnapshot } from "./index-snapshot.ts";
import { KeyRun, writeRun, type RunFacts } from "./key-run.ts";
import { isKnown, manifestAfter, openManifests, openFileOf, type Manifest } from "./manifest.ts";
import { mergeLines, withoutEnded, type SortedLines } from "./merge-lines.ts";

/**
 * How often a read is repeated because the manifest changed. Beyond that, another process merges in
 * a loop.
 */
const attemptsMax = 100;
/** From this number of announcements on, a process merges them. */
export const announcementsBeforeMerge: number = 256;
/**
 * A merge includes a run if it is at most this many times as large as everything that the merge
 * already includes.
 */
const growthMax = 2;
/** Approximate size of a line without its key. */
const lineBytes = 32;

export class KeyIndex {
  protected readonly bucket: OpenBucket;
  readonly #chain: RollingChain<Manifest>;
  readonly #fresh: FreshAnnouncements;

  protected constructor(bucket: OpenBucket, chain: RollingChain<Manifest>) {
    this.bucket = bucket;
    this.#chain = chain;
    this.#fresh = new FreshAnnouncements(bucket);
  }

  static async open(bucket: OpenBucket): Promise<KeyIndex> {
    return new this(bucket, await openManifests(bucket));
  }

  /** Calls `work` with all keys announced before this call, and perhaps later ones. */
  async use<T>(work: (keys: IndexSnapshot) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      await using keys = await this.snapshot();
      try {
        return await work(keys);
      } catch (error) {
        // On a share, a run that another machine removed cannot be read any more.
        if (!hasErrno(error, "ESTALE") || attempt >= attemptsMax) throw error;
      }
    }
  }

  /** Returns all keys announced before this call, and perhaps later ones. */
  async snapshot(): Promise<IndexSnapshot> {
    const manifests = new Set<number>();
    for (let attempt = 0; attempt < attemptsMax;) {
      const { state } = await this.#chain.read();
      manifests.add(state.number);
      const names = await this.#fresh.names(state);
      // Errors of a merge are ignored: a listing must not fail because nothing can be written.
      if (names.length > announcementsBeforeMerge && (await this.merge(announcementsBeforeMerge).catch(() => false)))
        continue;
      attempt++;
      const announced = await this.#fresh.read(names);
      const runs = announced && (await this.#openRuns(state.runs));
      // True if the manifest was still current. Call it after the announcements and the runs were
      // read.
      const isOpen = await this.#isOpen(state);
      if (announced !== undefined && runs !== undefined && isOpen) return new IndexSnapshot(announced.lines, runs);
      await closeAll(runs ?? []);
      if (isOpen && announced !== undefined)
        throw damagedRun(`${this.bucket.layout.runs} (manifest ${state.number})`, "a run that it names is missing");
    }
    const path = this.bucket.layout.index;
    // The files of a manifest are removed only after two later ones were named. If no later one was
    // named, something else removed them.
    if (manifests.size === 1) throw lostIndex(path);
    const message = `${path} changed during each of ${attemptsMax} attempts to read it. Try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  /**
   * Merges announcements into a new run if there are at least `announcementsMin`. Returns false if
   * nothing was merged.
   */
  async merge(announcementsMin: number): Promise<boolean> {
    const { state } = await this.#chain.read();
    const fresh = await this.#fresh.names(state);
    if (fresh.length < announcementsMin) return false;
    const announced = await this.#fresh.readSome(fresh);
    if (announced === undefined) return false;
    const taken = runsToMerge(state.runs, announced.lines);
    const runs = await this.#openRuns(taken);
    if (runs === undefined) return false;
    try {
      const merged = mergeLines([[announced.lines], ...runs.map((run) => run.from(""))]);
      const lines = this.forget(merged, taken.length === state.runs.length);
      const kept = state.runs.filter((run) => !taken.includes(run));
      return await this.#name(state, { kept, lines, merged: announced.names });
    } finally {
      await closeAll(runs);
    }
  }

  /** Replaces all named runs, readable or not, by one run of these lines. */
  async replaceRuns(lines: SortedLines): Promise<boolean> {
    const { state } = await this.#chain.read();
    return await this.#name(state, { kept: [], lines, merged: [] });
  }

  /** Opens the runs of the current manifest. Returns undefined for a missing run. */
  async runs(): Promise<readonly (KeyRun | undefined)[]> {
    const { state } = await this.#chain.read();
    return await Promise.all(state.runs.map((run) => this.#openRun(run)));
  }

  /** Drops lines that are no longer needed. `isComplete`: the merge includes all runs. */
  protected forget(
    lines: AsyncIterable<readonly IndexLine[]>,
    isComplete: boolean,
  ): AsyncIterable<readonly IndexLine[]> {
    return withoutEnded(lines, { isComplete, isOver: (line) => this.isOver(line) });
  }

  /**
   * True if a life that was about to end has ended. It has begun, and its first slot is never
   * created again.
   */
  protected async isOver({ key, incarnation }: IndexLine): Promise<boolean> {
    const { storage, layout } = this.bucket;
    return !(await isSlotThere(storage.disk, new KeyNames(layout.key(key)).slotPath(incarnation, 1)));
  }

  /**
   * Removes all due files. Called before the manifest after `state` is named, so that no process
   * finds the `open` file of a manifest whose announcements were removed.
   */
  protected async beforeNaming(state: Manifest): Promise<void> {
    await this.removeDue(state);
  }

  /** Called after `state` was named, unless the process was killed. */
  protected async afterNaming(state: Manifest): Promise<void> {
    await this.removeDue(state);
  }

  protected async removeDue({ due }: Manifest): Promise<void> {
    const { storage, layout } = this.bucket;
    for (const path of due) await unlinkIfThere(storage.disk, `${layout.index}/${path}`);
  }

  /**
   * Names the manifest after `state`, with a new run. Returns false if another one was named
   * meanwhile.
   */
  async #name(state: Manifest, { kept, lines, merged }: NewRun): Promise<boolean> {
    const { storage, layout } = this.bucket;
    const { disk } = storage;
    // Listed before the new files are written. A file that exists now and that the next manifest
    // does not know will never be named: its writer worked from an older manifest.
    const before = await listIfThere(disk, layout.runs);
    const id = storage.newId();
    const path = `${layout.runs}/${id}`;
    const size = await writeRun(disk, path, lines);
    if (size === 0) await unlinkIfThere(disk, path);
    await disk.createFile(`${layout.runs}/${openFileOf(id)}`, new Uint8Array(), { sync: false });
    await storage.sync(layout.runs);
    await this.beforeNaming(state);
    const runs = size === 0 ? kept : [...kept, { file: id, size }];
    const next = manifestAfter(state, { open: openFileOf(id), runs, merged });
    const named = await this.#chain.append(id, (newest) => (newest.number === state.number ? next : undefined));
    if (named === undefined) {
      for (const file of [id, openFileOf(id)]) await unlinkIfThere(disk, `${layout.runs}/${file}`);
      return false;
    }
    await this.afterNaming(next);
    for (const file of before) if (!isKnown(next, `runs/${file}`)) await unlinkIfThere(disk, `${layout.runs}/${file}`);
    return true;
  }

  /**
   * True if the `open` file exists. To ask the server of a share takes a write; where nothing can
   * be written, the answer of this machine's cache must do.
   */
  async #isOpen({ open }: Manifest): Promise<boolean> {
    const { storage, layout } = this.bucket;
    const path = `${layout.runs}/${open}`;
    try {
      return await retryIfSwept(() => isStillThere(storage.staging, path));
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return await storage.disk.canOpen(path);
    }
  }

  /** Undefined if a run was removed, because the manifest is outdated. */
  async #openRuns(runs: readonly RunFacts[]): Promise<KeyRun[] | undefined> {
    const opened: KeyRun[] = [];
    for (const run of runs) {
      const found = await this.#openRun(run);
      if (found === undefined) {
        await closeAll(opened);
        return undefined;
      }
      opened.push(found);
    }
    return opened;
  }

  async #openRun({ file, size }: RunFacts): Promise<KeyRun | undefined> {
    const path = `${this.bucket.layout.runs}/${file}`;
    const found = await openIfThere(this.bucket.storage.disk, path);
    return found && new KeyRun(found, path, size);
  }
}

interface NewRun {
  readonly kept: readonly RunFacts[];
  readonly lines: SortedLines;
  /** Announcements that the new run contains. */
  readonly merged: readonly string[];
}

/**
 * Selects the newest runs that are not much larger than the lines to add, so that each key is
 * rewritten only a few times.
 */
function runsToMerge(runs: readonly RunFacts[], lines: readonly IndexLine[]): readonly RunFacts[] {
  let bytes = lines.reduce((sum, { key }) => sum + key.length + lineBytes, 0);
  let first = runs.length;
  for (let run = runs[first - 1]; run !== undefined && run.size <= growthMax * bytes; run = runs[first - 1]) {
    bytes += run.size;
    first--;
  }
  return runs.slice(first);
}

async function closeAll(runs: readonly KeyRun[]): Promise<void> {
  for (const run of runs) await run[Symbol.asyncDispose]();
}
