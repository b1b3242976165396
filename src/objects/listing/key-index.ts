// KeyIndex: the keys of a bucket in order. A superset: which of them have versions, their chains
// say.
//
// A life of a key is announced before it begins. Now and then announcements are merged into a sorted
// run, together with the runs that are not much larger, and a manifest names the runs that are read.
// What manifest m needs, and what was merged into it, is removed when m + 2 is named, its `open` file
// first, and is gone before m + 3 is named. So a process that has listed the announcements, and then
// finds the `open` file of its manifest, has missed none of them.
import type { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
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
import { isKnown, manifestAfter, openManifests, openOf, type Manifest } from "./manifest.ts";
import { mergeLines, withoutEnded, type SortedLines } from "./merge-lines.ts";
import { namesIn } from "./walk-keys.ts";

/** A manifest that changes at each of so many looks is another process's loop. */
const attemptsMax = 100;
/** With more announcements than this a process merges them. */
export const mergeAt: number = 256;
/** A merge takes a run that is so many times as large as all that it has taken already, or smaller. */
const growthMax = 2;
/** What a line has beside its key. */
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

  /** What `work` makes of the keys that were announced before this call, and perhaps of later ones. */
  async use<T>(work: (keys: IndexSnapshot) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      await using keys = await this.snapshot();
      try {
        return await work(keys);
      } catch (error) {
        // On a share a run cannot be read any more when another machine has removed it.
        if (!hasErrno(error, "ESTALE") || attempt >= attemptsMax) throw error;
      }
    }
  }

  /** The keys that were announced before this call, and perhaps later ones. */
  async snapshot(): Promise<IndexSnapshot> {
    const manifests = new Set<number>();
    for (let attempt = 0; attempt < attemptsMax;) {
      const { state } = await this.#chain.read();
      manifests.add(state.number);
      const names = await this.#fresh.names(state);
      // A listing does not fail because nothing can be written.
      if (names.length > mergeAt && (await this.merge(mergeAt).catch(() => false))) continue;
      attempt++;
      const announced = await this.#fresh.read(names);
      const runs = announced && (await this.#openRuns(state.runs));
      // After the announcements and the runs, not before.
      const isOpen = await this.#isOpen(state);
      if (announced !== undefined && runs !== undefined && isOpen) return new IndexSnapshot(announced.lines, runs);
      await closeAll(runs ?? []);
      if (isOpen && announced !== undefined)
        throw damagedRun(`${this.bucket.layout.runs} (manifest ${state.number})`, "a run that is named is missing");
    }
    const path = this.bucket.layout.index;
    // What a manifest needs goes when the one after the next is named.
    if (manifests.size === 1) throw lostIndex(path);
    const message = `${path} changed at each of ${attemptsMax} looks. Try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  /** Merges announcements into a new run, if there are at least so many; false when nothing was merged. */
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

  /** Puts one run of these lines in the place of all that are named, whether they can be read or not. */
  async replaceRuns(lines: SortedLines): Promise<boolean> {
    const { state } = await this.#chain.read();
    return await this.#name(state, { kept: [], lines, merged: [] });
  }

  /** The runs that are named now; undefined for one that is missing. */
  async runs(): Promise<readonly (KeyRun | undefined)[]> {
    const { state } = await this.#chain.read();
    return await Promise.all(state.runs.map((run) => this.#openRun(run)));
  }

  /** The lines without those that are not needed any more. `isComplete`: no run was left out. */
  protected forget(
    lines: AsyncIterable<readonly IndexLine[]>,
    isComplete: boolean,
  ): AsyncIterable<readonly IndexLine[]> {
    return withoutEnded(lines, { isComplete, isOver: (line) => this.isOver(line) });
  }

  /** Whether a life that was to end is over. It has begun, and its first slot is never made again. */
  protected async isOver({ key, incarnation }: IndexLine): Promise<boolean> {
    const { place, layout } = this.bucket;
    return !(await isSlotThere(place.disk, new KeyNames(layout.key(key)).slotPath(incarnation, 1)));
  }

  /**
   * Called before the manifest after `state` is named: then everything is gone that was due, so that
   * no process finds the `open` file of a manifest whose announcements were removed.
   */
  protected async beforeNaming(state: Manifest): Promise<void> {
    await this.removeDue(state);
  }

  /** Called when `state` was named, unless the process is killed. */
  protected async afterNaming(state: Manifest): Promise<void> {
    await this.removeDue(state);
  }

  protected async removeDue({ due }: Manifest): Promise<void> {
    const { place, layout } = this.bucket;
    for (const path of due) await unlinkIfThere(place.disk, `${layout.index}/${path}`);
  }

  /** Names the manifest after `state`, with a new run. False when another one was named meanwhile. */
  async #name(state: Manifest, { kept, lines, merged }: NewRun): Promise<boolean> {
    const { place, layout } = this.bucket;
    const { disk } = place;
    // What lies here now and is not known to the manifest that is named next will be known to none:
    // the process that wrote it has judged an older one.
    const before = await namesIn(disk, layout.runs);
    const id = place.newId();
    const path = `${layout.runs}/${id}`;
    const size = await writeRun(disk, path, lines);
    if (size === 0) await unlinkIfThere(disk, path);
    await disk.createFile(`${layout.runs}/${openOf(id)}`, new Uint8Array(), { sync: false });
    await place.sync(layout.runs);
    await this.beforeNaming(state);
    const runs = size === 0 ? kept : [...kept, { file: id, size }];
    const next = manifestAfter(state, { open: openOf(id), runs, merged });
    const named = await this.#chain.append(id, (newest) => (newest.number === state.number ? next : undefined));
    if (named === undefined) {
      for (const file of [id, openOf(id)]) await unlinkIfThere(disk, `${layout.runs}/${file}`);
      return false;
    }
    await this.afterNaming(next);
    for (const file of before) if (!isKnown(next, `runs/${file}`)) await unlinkIfThere(disk, `${layout.runs}/${file}`);
    return true;
  }

  /** As the server of a share knows; where nothing can be written, as its client does. */
  async #isOpen({ open }: Manifest): Promise<boolean> {
    const { place, layout } = this.bucket;
    const path = `${layout.runs}/${open}`;
    try {
      return await retryIfSwept(() => isStillThere(place.staging, path));
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return await place.disk.canOpen(path);
    }
  }

  /** Undefined when one was removed: the manifest is an old one. */
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
    const found = await openIfThere(this.bucket.place.disk, path);
    return found && new KeyRun(found, path, size);
  }
}

interface NewRun {
  readonly kept: readonly RunFacts[];
  readonly lines: SortedLines;
  /** Announcements that are in the new run. */
  readonly merged: readonly string[];
}

/** The newest ones that are not much larger than what comes to them: so each key is written a few times only. */
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
