// The engine of this process, kept up to date: from a snapshot, from documents, and from the outcomes of changes.
import type { DerivedIndex } from "../model/derived-index.ts";
import type { ChangeLog } from "../change-log/change-log.ts";
import type { Document } from "../documents/document.ts";
import type { Documents } from "../documents/documents.ts";
import type { IndexRecord } from "../documents/index-record.ts";
import type { Outcome } from "../documents/outcome.ts";
import type { Outcomes } from "../documents/outcomes.ts";
import { TextIndex, type IndexedFile, type IndexedText } from "../engine/text-index.ts";
import { isWithin } from "../../format/path-key.ts";
import type { Clock } from "../../ports/clock.ts";
import { BuiltInEngine, GivenEngine, SharedEngine, type Engine } from "./engine.ts";
import type { Snapshots } from "./snapshots.ts";

/** Documents that the engine gets at a time; between two times other work of this process goes on. */
const batch = 64;
/** How often a process that waits for an outcome asks whether a snapshot has it. */
const snapshotLookMs = 2_000;

export interface FollowerParts {
  readonly clock: Clock;
  readonly changes: ChangeLog;
  readonly documents: Documents;
  readonly outcomes: Outcomes;
  readonly snapshots: Snapshots;
  /** The record that holds now. */
  readonly decideIndex: () => Promise<IndexRecord>;
  /** Absent: the one that is built in. */
  readonly givenIndex?: DerivedIndex | undefined;
  /** Known-wrong variants, for tests. */
  readonly EngineClass?: typeof GivenEngine | undefined;
}

/** What a change has taken away. */
export interface Removal {
  readonly path: string;
  readonly change: number;
}

interface Loaded {
  readonly record: IndexRecord;
  readonly engine: Engine;
  /** All changes up to this one are in the engine. */
  position: number;
  /** Later ones that are in it, too. */
  readonly applied: Set<number>;
  /** Of changes after the position. */
  removals: Removal[];
}

export class Follower {
  readonly #parts: FollowerParts;
  #loaded: Loaded | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #lookedAtMs = -Infinity;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Undefined before the first `refresh`. */
  get engine(): Engine | undefined {
    return this.#loaded?.engine;
  }

  /** All changes up to this one are in the engine; 0 before the first `refresh`. */
  get position(): number {
    return this.#loaded?.position ?? 0;
  }

  /** When it resolves, the engine has all outcomes that were there when it was called. */
  async refresh(): Promise<void> {
    if (this.#running === undefined) return await this.#run();
    // One that began before this call may have missed something.
    this.#next ??= this.#running.catch(() => undefined).then(() => this.#run());
    await this.#next;
  }

  /** Which changes up to `last` have no outcome that this process knows. */
  pendingUpTo(last: number): number[] {
    const { position, applied } = this.#loaded ?? { position: 0, applied: new Set<number>() };
    const pending: number[] = [];
    for (let number = position + 1; number <= last; number++) if (!applied.has(number)) pending.push(number);
    return pending;
  }

  /** From now on nothing at `path` or below it is found that an earlier change has brought. */
  async hide(path: string, change: number): Promise<void> {
    if (this.#loaded !== undefined) await this.#drop(this.#loaded, path, change);
  }

  /** What the engine has, for a snapshot; undefined for an index that has no bytes. */
  findState(): { readonly index: string; readonly position: number; readonly engine: TextIndex } | undefined {
    if (!(this.#loaded?.engine instanceof BuiltInEngine)) return undefined;
    const { record, position, engine } = this.#loaded;
    return { index: record.id, position, engine: engine.index };
  }

  async close(): Promise<void> {
    await this.#running?.catch(() => undefined);
    await this.#next?.catch(() => undefined);
    // One that the user gives is closed by the user.
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
    const { changes, outcomes } = this.#parts;
    const record = await this.#parts.decideIndex();
    if (this.#loaded?.record.id !== record.id) await this.#load(record);
    const loaded = this.#loaded as Loaded;
    const last = await changes.last();
    const pending = this.pendingUpTo(last);
    for (const number of await outcomes.among(pending)) {
      const outcome = await outcomes.find(number);
      if (outcome !== undefined) await this.#apply(loaded, outcome);
    }
    if (loaded.position < last && (await this.#isInSnapshot(loaded))) await this.#load(record);
  }

  async #load(record: IndexRecord): Promise<void> {
    const { givenIndex, snapshots, documents, EngineClass = GivenEngine } = this.#parts;
    const before = this.#loaded?.engine;
    // First: up to its position all documents are there, also when the snapshot itself cannot be used. The outcomes of
    // those changes may be gone.
    const inSnapshot = (await snapshots.findRecord(record.id))?.record.position ?? 0;
    const snapshot = givenIndex === undefined ? await snapshots.find(record.id) : undefined;
    const engine = givenIndex === undefined ? await openBuiltIn(snapshot?.bytes) : engineOf(givenIndex, EngineClass);
    const loaded: Loaded = {
      record,
      engine: engine ?? new BuiltInEngine(await TextIndex.open()),
      position: Math.max(inSnapshot, record.base - 1),
      applied: new Set(),
      removals: [],
    };
    // Another one may be the current one by now.
    if (snapshot !== undefined && engine !== undefined) loaded.position = Math.max(snapshot.position, record.base - 1);
    else if (!(engine instanceof SharedEngine)) {
      await givenIndex?.clear?.();
      await this.#put(loaded, documents.all());
    }
    this.#loaded = loaded;
    if (before instanceof BuiltInEngine) await before.index.close();
  }

  /** Outcomes that a snapshot has are removed. A process that missed them begins with that snapshot. */
  async #isInSnapshot({ record, position }: Loaded): Promise<boolean> {
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs - this.#lookedAtMs < snapshotLookMs) return false;
    this.#lookedAtMs = nowMs;
    const found = await this.#parts.snapshots.findRecord(record.id);
    return found !== undefined && found.record.position > position;
  }

  async #apply(loaded: Loaded, { change, paths, documents, hasMore }: Outcome): Promise<void> {
    const { documents: all } = this.#parts;
    if (!(loaded.engine instanceof SharedEngine)) {
      // What is there first, then what is gone: a search in between finds a file that stays.
      await this.#put(loaded, hasMore ? all.all({ change }) : this.#read(documents, change));
      for (const path of paths) await this.#drop(loaded, path, change);
    }
    loaded.applied.add(change);
    while (loaded.applied.delete(loaded.position + 1)) loaded.position++;
    // A document that still comes is of a change after the position.
    loaded.removals = loaded.removals.filter((removal) => removal.change > loaded.position + 1);
  }

  async #drop(loaded: Loaded, path: string, change: number): Promise<void> {
    loaded.removals.push({ path, change });
    const lost = await loaded.engine.drop(path, change);
    if (lost.length > 0) await this.#put(loaded, this.#readAgain(lost));
  }

  async #put(loaded: Loaded, documents: AsyncIterable<Document>): Promise<void> {
    let files: IndexedText[] = [];
    for await (const { path, stamp, change, text, vector } of documents) {
      if (this.isTakenAway({ path, change }, loaded.removals)) continue;
      if (text === undefined) await loaded.engine.drop(path, change + 1);
      else files.push({ path, stamp, change, text, vector });
      if (files.length < batch) continue;
      await loaded.engine.put(files);
      files = [];
      await this.#parts.clock.sleep(0);
    }
    if (files.length > 0) await loaded.engine.put(files);
  }

  /** A document of an earlier change that comes late must not bring back what a later one has taken away. */
  protected isTakenAway({ path, change }: Removal, removals: readonly Removal[]): boolean {
    return removals.some((removal) => removal.change > change && isWithin(path, removal.path));
  }

  /** One that is gone was replaced by that of a later change, whose outcome comes, too. */
  async *#read(paths: readonly string[], change: number): AsyncGenerator<Document> {
    for (const path of paths) {
      const found = await this.#parts.documents.find(path, change);
      if (found !== undefined) yield found;
    }
  }

  async *#readAgain(files: readonly IndexedFile[]): AsyncGenerator<Document> {
    for (const { path, change } of files) {
      const found = await this.#parts.documents.find(path, change);
      if (found !== undefined) yield found;
    }
  }
}

function engineOf(index: DerivedIndex, EngineClass: typeof GivenEngine): Engine {
  return index.isShared === true ? new SharedEngine(index) : new EngineClass(index);
}

/** Undefined for bytes that are no snapshot after all. */
async function openBuiltIn(bytes: Uint8Array | undefined): Promise<Engine | undefined> {
  if (bytes === undefined) return undefined;
  try {
    return new BuiltInEngine(await TextIndex.open(bytes));
  } catch {
    // It is derived: the documents have the same.
    return undefined;
  }
}
