// Sampler: samples the store every two seconds while somebody watches, once for all watchers.
import type { EventStore } from "../../events/index.ts";
import type { HandoffStats } from "../../handoff/index.ts";
import { isHoldfastError, type HolderInfo } from "../../index.ts";
import type { HeldLock } from "../../locks/index.ts";
import { asRequestError } from "../http/request-error.ts";
import { holderActivity, lockActivity, type Activity } from "./activity.ts";
import { Paced } from "./paced.ts";
import { BoxFeed, LogFeed, TreeFeed } from "./part-feeds.ts";
import { Rate } from "./rate.ts";
import type { WatchedStore } from "./watched-store.ts";

const everyMs = 2000;
/** A sample waits this long for its parts. What takes longer is in the next one, so that a page opens at once. */
const patienceMs = 250;
/** The samples of three minutes. */
const historyMax = 90;
const activityMax = 300;

/** Only its name until it was loaded once. */
export interface LogSample {
  readonly name: string;
  readonly head?: number;
  readonly bytes?: number;
  /** Events a second, lately; absent in the first sample. */
  readonly perSecond?: number;
  readonly problem?: string;
}

/** Only its name until it was loaded once. */
export interface BoxSample {
  readonly name: string;
  readonly stats?: HandoffStats;
  readonly problem?: string;
}

/** The store at one moment. */
export interface Sample {
  readonly at: Date;
  readonly holders: readonly HolderInfo[];
  readonly locks: readonly HeldLock[];
  readonly logs: readonly LogSample[];
  readonly boxes: readonly BoxSample[];
  /** Number of the last change of the tree. */
  readonly changes?: number;
  /** Why the store, or a part of it, could not be read. */
  readonly problems: readonly string[];
}

/** The counters of a sample, for rates. */
export interface Counters {
  readonly atMs: number;
  readonly events: number;
  readonly done: number;
  readonly failed: number;
  readonly changes: number;
  readonly locks: number;
}

export interface SamplerUpdate {
  readonly sample: Sample;
  readonly activity: readonly Activity[];
}

interface Names {
  readonly logs: readonly string[];
  readonly boxes: readonly string[];
}

interface PartWatch<T> {
  readonly paced: Paced<T>;
  /** The value of the last load. */
  last: T | undefined;
  /** True while there is a directory for the part and no record in it: a program is about to create it. */
  isMissing: boolean;
  /** Entries that no sample has included yet. */
  readonly pending: Activity[];
}

export class Sampler {
  readonly history: Counters[] = [];
  /** Newest last. */
  readonly activity: Activity[] = [];
  readonly #watched: WatchedStore;
  readonly #listeners = new Set<(update: SamplerUpdate) => void>();
  readonly #names: Paced<Names>;
  readonly #logs = new Map<string, PartWatch<LogSample>>();
  readonly #boxes = new Map<string, PartWatch<BoxSample>>();
  readonly #tree: PartWatch<number | undefined>;
  readonly #holders: Paced<HolderInfo[]>;
  readonly #locks: Paced<HeldLock[]>;
  #before: Sample | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sampling: Promise<Sample> | undefined;
  #loading: Promise<boolean> | undefined;
  #wasWhole = false;
  #isStale = false;

  constructor(watched: WatchedStore) {
    this.#watched = watched;
    this.#names = new Paced(async () => ({ logs: await watched.logs(), boxes: await watched.boxes() }));
    this.#holders = new Paced(() => watched.holders());
    this.#locks = new Paced(() => watched.locks());
    const feed = new TreeFeed();
    const pending: Activity[] = [];
    const paced = new Paced(async () => {
      const tree = await watched.findTree();
      const last = await tree?.lastChange();
      if (tree !== undefined && last !== undefined) pending.push(...(await feed.readNew(tree, last)));
      return last;
    });
    this.#tree = { paced, last: undefined, isMissing: false, pending };
  }

  /**
   * Adds a listener. The first one starts the sampling; removing the last one with the returned
   * function stops it.
   */
  listen(listener: (update: SamplerUpdate) => void): () => void {
    this.#listeners.add(listener);
    this.#timer ??= setTimeout(() => void this.#tick(), 0);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Returns the last sample if it is recent enough, and otherwise takes a new one. */
  async recent(): Promise<Sample> {
    const last = this.#before;
    return last !== undefined && !this.#isStale && Date.now() - last.at.getTime() < everyMs
      ? last
      : await this.sample();
  }

  /** Takes a sample. Concurrent calls share one. */
  async sample(): Promise<Sample> {
    return await (this.#sampling ??= this.#look().finally(() => (this.#sampling = undefined)));
  }

  /** Makes the next sample reload everything; called after an action that changed something. */
  expire(): void {
    this.#isStale = true;
    for (const paced of [this.#names, this.#holders, this.#locks, this.#tree.paced]) paced.expire();
    for (const { paced } of [...this.#logs.values(), ...this.#boxes.values()]) paced.expire();
  }

  async #tick(): Promise<void> {
    await this.sample();
    if (this.#timer !== undefined) this.#timer = setTimeout(() => void this.#tick(), everyMs);
  }

  async #look(): Promise<Sample> {
    // What an action changed is waited for.
    const isPatient = this.#isStale;
    this.#isStale = false;
    const problems: string[] = [];
    const orNote = async <T>(look: Promise<T>, otherwise: T): Promise<T> => {
      try {
        return await look;
      } catch (error) {
        problems.push(asRequestError(error).message);
        return otherwise;
      }
    };
    const names = await orNote(this.#names.get(), { logs: [], boxes: [] });
    const holders = await orNote(this.#holders.get(), this.#before?.holders ?? []);
    const locks = await orNote(this.#locks.get(), this.#before?.locks ?? []);
    // A load that began before the action may have passed what the action changed.
    if (isPatient && this.#loading !== undefined) await orNote(this.#loading, true);
    const loading = orNote(this.#load(names), true);
    const isWhole = isPatient ? await loading : await Promise.race([loading, afterPatience()]);
    const changes = this.#tree.last;
    const logs = names.logs.flatMap((name) => shownOf(name, this.#log(name)));
    const boxes = names.boxes.flatMap((name) => shownOf(name, this.#box(name)));
    for (const { problem } of [...logs, ...boxes]) if (problem !== undefined) problems.push(problem);
    const sample = {
      at: new Date(),
      holders,
      locks,
      logs,
      boxes,
      ...(changes === undefined ? {} : { changes }),
      problems: [...new Set(problems)],
    };
    this.#wasWhole ||= isWhole;
    this.#publish(sample);
    return sample;
  }

  /**
   * Loads all parts that are due, one after the other, so that each is charged with its own processor time. Samples that
   * are taken meanwhile share it. Returns true.
   */
  async #load(names: Names): Promise<boolean> {
    return await (this.#loading ??= this.#loadEach(names).finally(() => (this.#loading = undefined)));
  }

  async #loadEach({ logs, boxes }: Names): Promise<boolean> {
    for (const name of logs) await load(this.#log(name));
    for (const name of boxes) await load(this.#box(name));
    // The tree comes last: it is the only one whose failure is thrown.
    await load(this.#tree);
    return true;
  }

  #publish(sample: Sample): void {
    const { at } = sample;
    const before = this.#before ?? sample;
    this.#before = sample;
    const parts = [...this.#logs.values(), ...this.#boxes.values(), this.#tree];
    const activity = [
      ...holderActivity(before.holders, sample.holders, at),
      ...lockActivity(before.locks, sample.locks, at),
      ...parts.flatMap((part) => part.pending.splice(0)),
    ].sort((one, other) => one.at.getTime() - other.at.getTime());
    this.activity.push(...activity);
    this.activity.splice(0, Math.max(0, this.activity.length - activityMax));
    // Until everything was loaded once, counters that begin at 0 would look like a burst.
    if (this.#wasWhole) this.history.push(countersOf(sample));
    this.history.splice(0, Math.max(0, this.history.length - historyMax));
    for (const listener of this.#listeners) listener({ sample, activity });
  }

  #log(name: string): PartWatch<LogSample> {
    const known = this.#logs.get(name);
    if (known !== undefined) return known;
    const feed = new LogFeed();
    const rate = new Rate();
    return add(this.#logs, name, async (pending) => {
      const log: EventStore = await this.#watched.log(name);
      const head = await log.head();
      pending.push(...(await feed.readNew(log, name, head)));
      const perSecond = rate.add(head, Date.now());
      return { name, head, bytes: await log.bytes(), ...(perSecond === undefined ? {} : { perSecond }) };
    });
  }

  #box(name: string): PartWatch<BoxSample> {
    const known = this.#boxes.get(name);
    if (known !== undefined) return known;
    const feed = new BoxFeed();
    return add(this.#boxes, name, async (pending) => {
      const box = await this.#watched.box(name);
      const stats = await box.stats();
      pending.push(...(await feed.readNew(box, name, stats)));
      return { name, stats };
    });
  }
}

/** Adds a part. A damaged part is shown with its problem, and hides no other. */
function add<T extends LogSample | BoxSample>(
  parts: Map<string, PartWatch<T>>,
  name: string,
  look: (pending: Activity[]) => Promise<T>,
): PartWatch<T> {
  const pending: Activity[] = [];
  const load = async (): Promise<T> => {
    try {
      const value = await look(pending);
      part.isMissing = false;
      return value;
    } catch (error) {
      part.isMissing = isHoldfastError(error, "NOT_A_STORE");
      return { name, problem: `${name}: ${asRequestError(error).message}` } as T;
    }
  };
  const part: PartWatch<T> = { paced: new Paced(load), last: undefined, isMissing: false, pending };
  parts.set(name, part);
  return part;
}

function countersOf({ at, logs, boxes, changes = 0, locks }: Sample): Counters {
  const sum = (numbers: readonly (number | undefined)[]): number =>
    numbers.reduce<number>((total, number) => total + (number ?? 0), 0);
  return {
    atMs: at.getTime(),
    events: sum(logs.map(({ head }) => head)),
    done: sum(boxes.map(({ stats }) => stats?.archive)),
    failed: sum(boxes.map(({ stats }) => stats?.error)),
    changes,
    locks: locks.length,
  };
}

/** Returns what a sample shows of a part: its name until it was loaded once, and nothing while there is none. */
function shownOf<T extends LogSample | BoxSample>(
  name: string,
  { last, isMissing }: PartWatch<T>,
): (T | Pick<LogSample, "name" | "problem">)[] {
  return isMissing ? [] : [last ?? { name }];
}

async function load<T>(part: PartWatch<T>): Promise<void> {
  part.last = await part.paced.get();
}

async function afterPatience(): Promise<false> {
  return await new Promise((resolve) => setTimeout(() => resolve(false), patienceMs));
}
