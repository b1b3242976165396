// Follower: keeps the engine of this process up to date, from a snapshot, from documents, and from
// the outcomes of changes.
import type { DerivedIndex } from "../model/derived-index.ts";
import type { Document } from "../documents/document.ts";
import type { Derived } from "../documents/derived.ts";
import type { IndexRecord } from "../documents/index-record.ts";
import type { Outcome } from "../documents/outcome.ts";
import { TextIndex, type IndexedText } from "../engine/text-index.ts";
import { isWithin } from "../../format/path-key.ts";
import type { Clock } from "../../ports/clock.ts";
import { BuiltInEngine, GivenEngine, SharedEngine, type Engine } from "./engine.ts";

/** How many documents the engine gets at a time; other work of this process runs in between. */
const batch = 64;
/** How often a process that waits for an outcome checks whether a snapshot has it. */
const snapshotLookMs = 2_000;

/** A path, and the change that affected it. */
interface ChangedPath {
  readonly path: string;
  readonly change: number;
}

interface LoadedIndex {
  readonly record: IndexRecord;
  readonly engine: Engine;
  /** All changes up to this one are in the engine. */
  position: number;
  /** Later changes that are also in it. */
  readonly applied: Set<number>;
  /** Paths removed by changes after the position. */
  removals: ChangedPath[];
}

export class Follower {
  readonly #derived: Derived;
  readonly #clock: Clock;
  readonly #givenIndex: DerivedIndex | undefined;
  readonly #EngineClass: typeof GivenEngine;
  #loaded: LoadedIndex | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #lookedAtMs = -Infinity;

  /** Without `givenIndex` it has the built-in one. */
  constructor(derived: Derived, givenIndex?: DerivedIndex, EngineClass: typeof GivenEngine = GivenEngine) {
    this.#derived = derived;
    this.#clock = derived.tree.ground.ports.clock;
    this.#givenIndex = givenIndex;
    this.#EngineClass = EngineClass;
  }

  /** Undefined before the first `refresh`. */
  get engine(): Engine | undefined {
    return this.#loaded?.engine;
  }

  /** All changes up to this one are in the engine; 0 before the first `refresh`. */
  get position(): number {
    return this.#loaded?.position ?? 0;
  }

  /** When it resolves, the engine has all outcomes that existed when it was called. */
  async refresh(): Promise<void> {
    if (this.#running === undefined) return await this.#run();
    // A refresh that began before this call may have missed something.
    this.#next ??= this.#running.catch(() => undefined).then(() => this.#run());
    await this.#next;
  }

  /** Returns the changes up to `last` without an outcome that this process knows. */
  pendingUpTo(last: number): number[] {
    const { position, applied } = this.#loaded ?? { position: 0, applied: new Set<number>() };
    const pending: number[] = [];
    for (let number = position + 1; number <= last; number++) if (!applied.has(number)) pending.push(number);
    return pending;
  }

  /** Hides everything at or below `path` that an earlier change brought. */
  async hide(path: string, change: number): Promise<void> {
    if (this.#loaded !== undefined) await this.#drop(this.#loaded, path, change);
  }

  /** Returns the engine's state, for a snapshot; undefined for an index without bytes. */
  findState(): { readonly index: string; readonly position: number; readonly engine: TextIndex } | undefined {
    if (!(this.#loaded?.engine instanceof BuiltInEngine)) return undefined;
    const { record, position, engine } = this.#loaded;
    return { index: record.id, position, engine: engine.index };
  }

  async close(): Promise<void> {
    await this.#running?.catch(() => undefined);
    await this.#next?.catch(() => undefined);
    // The user closes an index that the user passed.
    if (this.#loaded?.engine instanceof BuiltInEngine) await this.#loaded.engine.index.close();
    this.#loaded = undefined;
  }

  async #run(): Promise<void> {
    this.#next = undefined;
    this.#running = this.#refresh();
    try {
      await this.#running;
    } finally {
      this.#running = undefined;
    }
  }

  async #refresh(): Promise<void> {
    const { tree, outcomes } = this.#derived;
    const { changes } = tree;
    await changes.mustBeSame();
    const record = await this.#derived.decideIndex();
    if (this.#loaded?.record.id !== record.id) await this.#load(record);
    const loaded = this.#loaded as LoadedIndex;
    const last = await changes.last();
    const pending = this.pendingUpTo(last);
    for (const number of await outcomes.among(pending)) {
      const outcome = await outcomes.find(number);
      if (outcome !== undefined) await this.#apply(loaded, outcome);
    }
    if (loaded.position < last && (await this.#isInSnapshot(loaded))) await this.#load(record);
  }

  async #load(record: IndexRecord): Promise<void> {
    const { snapshots, documents } = this.#derived;
    const [clock, givenIndex] = [this.#clock, this.#givenIndex];
    const before = this.#loaded?.engine;
    // Read first: all documents up to the snapshot's position exist even if the snapshot is
    // unusable, but the outcomes of those changes may be gone.
    const inSnapshot = (await snapshots.findRecord(record.id))?.record.position ?? 0;
    const snapshot = givenIndex === undefined ? await snapshots.find(record.id) : undefined;
    const engine =
      givenIndex === undefined ? await openBuiltIn(clock, snapshot?.bytes) : engineOf(givenIndex, this.#EngineClass);
    const loaded: LoadedIndex = {
      record,
      engine: engine ?? new BuiltInEngine(await TextIndex.open(), clock),
      position: Math.max(inSnapshot, record.base - 1),
      applied: new Set(),
      removals: [],
    };
    // Another snapshot may have become the current one.
    if (snapshot !== undefined && engine !== undefined) loaded.position = Math.max(snapshot.position, record.base - 1);
    else if (!(engine instanceof SharedEngine)) {
      await givenIndex?.clear?.();
      await this.#put(loaded, documents.all());
    }
    this.#loaded = loaded;
    if (before instanceof BuiltInEngine) await before.index.close();
  }

  /**
   * True if a newer snapshot exists. The outcomes that it contains are removed, so a process that
   * missed them starts with that snapshot.
   */
  async #isInSnapshot({ record, position }: LoadedIndex): Promise<boolean> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lookedAtMs < snapshotLookMs) return false;
    this.#lookedAtMs = nowMs;
    const found = await this.#derived.snapshots.findRecord(record.id);
    return found !== undefined && found.record.position > position;
  }

  async #apply(loaded: LoadedIndex, { change, paths, documents, hasMore }: Outcome): Promise<void> {
    const { documents: all } = this.#derived;
    if (!(loaded.engine instanceof SharedEngine)) {
      // Add first, then remove: a search in between finds a file that stays.
      await this.#put(loaded, hasMore ? all.all({ change }) : this.#read(documents.map((path) => ({ path, change }))));
      for (const path of paths) await this.#drop(loaded, path, change);
    }
    loaded.applied.add(change);
    while (loaded.applied.delete(loaded.position + 1)) loaded.position++;
    // A document that arrives later belongs to a change after the position.
    loaded.removals = loaded.removals.filter((removal) => removal.change > loaded.position + 1);
  }

  async #drop(loaded: LoadedIndex, path: string, change: number): Promise<void> {
    loaded.removals.push({ path, change });
    const lost = await loaded.engine.drop(path, change);
    if (lost.length > 0) await this.#put(loaded, this.#read(lost));
  }

  async #put(loaded: LoadedIndex, documents: AsyncIterable<Document>): Promise<void> {
    let files: IndexedText[] = [];
    for await (const { path, stamp, change, text, vector } of documents) {
      if (this.isTakenAway({ path, change }, loaded.removals)) continue;
      if (text === undefined) await loaded.engine.drop(path, change + 1);
      else files.push({ path, stamp, change, text, vector });
      if (files.length < batch) continue;
      await loaded.engine.put(files);
      files = [];
      await this.#clock.sleep(0);
    }
    if (files.length > 0) await loaded.engine.put(files);
  }

  /**
   * True if a later change removed this path: a late document of an earlier change must not restore
   * it.
   */
  protected isTakenAway({ path, change }: ChangedPath, removals: readonly ChangedPath[]): boolean {
    return removals.some((removal) => removal.change > change && isWithin(path, removal.path));
  }

  /**
   * Yields the documents. A missing one was replaced by that of a later change, whose outcome
   * follows.
   */
  async *#read(files: readonly ChangedPath[]): AsyncGenerator<Document> {
    for (const { path, change } of files) {
      const found = await this.#derived.documents.find(path, change);
      if (found !== undefined) yield found;
    }
  }
}

function engineOf(index: DerivedIndex, EngineClass: typeof GivenEngine): Engine {
  return index.isShared === true ? new SharedEngine(index) : new EngineClass(index);
}

/** Opens the built-in engine; undefined for bytes that are not a valid snapshot. */
async function openBuiltIn(clock: Clock, bytes: Uint8Array | undefined): Promise<Engine | undefined> {
  if (bytes === undefined) return undefined;
  try {
    return new BuiltInEngine(await TextIndex.open(bytes), clock);
  } catch {
    // A snapshot is derived: the documents have the same content.
    return undefined;
  }
}
