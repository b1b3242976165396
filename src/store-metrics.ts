// The numbers of a store in the text format of Prometheus. It only reads, and the number of series is bounded.
import type { HolderInfo } from "./common.ts";
import { isHoldfastError } from "./errors.ts";
import { listEventLogs, listReadModels } from "./events/index.ts";
import { listTrees } from "./files/index.ts";
import { boxMetrics } from "./handoff/operate/box-metrics.ts";
import { findNameOf } from "./format/name.ts";
import { checkOptions } from "./format/known-options.ts";
import { metricText, type Sample } from "./format/prometheus-text.ts";
import { packageVersion } from "./format/version.ts";
import { listHandoffs } from "./handoff/index.ts";
import { findLockRoot, type HeldLock } from "./locks/index.ts";
import { listObjectStores, type Bucket } from "./objects/index.ts";
import { nodeClock } from "./ports/node/clock.ts";
import { isPostgres } from "./ports/node/location.ts";
import type { Store } from "./store.ts";

/** Options of `storeMetrics`. */
export interface StoreMetricsOptions {
  /**
   * `state`: processes, locks, events and tickets, at little cost. `counts`: objects and files; it lists all of them.
   * Default `all`.
   */
  what?: "all" | "state" | "counts" | undefined;
  /** The location with the password, for a database that needs one. Default: the location of the store. */
  location?: string | URL | undefined;
  /**
   * How many logs get series of their own, how many consumers of a log, how many boxes, and how many buckets. The others
   * are counted in `holdfast_metrics_omitted`. Default 200.
   */
  namesMax?: number | undefined;
}

interface LogNumbers {
  readonly name: string;
  readonly head: number;
  readonly bytes: number;
  /** Consumers and read models. */
  readonly followers: readonly {
    readonly name: string;
    readonly kind: "consumer" | "read model";
    readonly lag?: number;
    readonly isRunning: boolean;
  }[];
}

/** See `storeMetrics` of "holdfast". */
export async function storeMetrics(store: Store, options: StoreMetricsOptions = {}): Promise<string> {
  checkOptions("storeMetrics", options, { what: true, namesMax: true, location: true });
  const { what = "all", namesMax = 200, location = store.location } = options;
  if (!["all", "state", "counts"].includes(what))
    throw new TypeError(`storeMetrics: what is all, state or counts, not ${JSON.stringify(what)}.`);
  if (!(Number.isSafeInteger(namesMax) && namesMax >= 1))
    throw new RangeError(`storeMetrics: namesMax must be a whole number from 1, not ${namesMax}.`);
  const collector = new Collector(store, location, namesMax);
  if (what !== "counts") await collector.addState();
  if (what !== "state") await collector.addCounts();
  return collector.text(what);
}

class Collector {
  readonly #store: Store;
  readonly #location: string | URL;
  readonly #namesMax: number;
  readonly #texts: string[] = [];
  /** Names without series of their own. */
  #omitted = 0;
  /** Parts that could not be read. One damaged part does not hide the others. */
  #unreadable = 0;

  constructor(store: Store, location: string | URL, namesMax: number) {
    this.#store = store;
    this.#location = location;
    this.#namesMax = namesMax;
  }

  text(what: string): string {
    return [
      ...this.#texts,
      metricText("gauge", "holdfast_metrics_unreadable", "Parts whose numbers could not be read.", [
        { labels: { what }, value: this.#unreadable },
      ]),
      metricText("gauge", "holdfast_metrics_omitted", "Names beyond the limit, which have no series of their own.", [
        { labels: { what }, value: this.#omitted },
      ]),
    ].join("");
  }

  async addState(): Promise<void> {
    const store = this.#store;
    this.#gauge("holdfast_store_info", "The store and the version that reads it.", [
      { labels: { id: store.id, version: packageVersion }, value: 1 },
    ]);
    this.#addHolders((await this.#read(() => store.holders())) ?? []);
    this.#addLocks((await this.#read(() => this.#locks())) ?? []);
    this.#addLogs(await this.#each(await listEventLogs(this.#location), (name) => this.#log(name)));
    const boxes = await this.#each(await listHandoffs(this.#location), async (box) => {
      return { box, stats: await (await store.handoff(box, { create: false })).stats() };
    });
    this.#texts.push(boxMetrics(boxes));
  }

  async addCounts(): Promise<void> {
    const store = this.#store;
    if ((await listObjectStores(this.#location)).length > 0) await this.#addBuckets();
    if (isPostgres(this.#location) || (await listTrees(this.#location)).length === 0) return;
    const tree = await this.#read(async () => await (await store.files()).stats());
    if (tree === undefined) return;
    const one = (name: string, help: string, value: number): void => this.#gauge(name, help, [{ labels: {}, value }]);
    one("holdfast_files", "Files of the tree.", tree.files);
    one("holdfast_files_bytes", "Size of all files.", tree.bytes);
    one("holdfast_files_odd", "Entries of the tree that no call can use.", tree.odd);
    one("holdfast_files_backlog", "Changes that are not indexed yet.", tree.backlog);
    one("holdfast_files_given_up", "Tasks of the index that failed until they were given up.", tree.givenUp.length);
    one("holdfast_files_sessions", "Sessions.", tree.sessions);
    this.#texts.push(
      metricText("counter", "holdfast_files_changes_total", "Changes in the change log.", [
        { labels: {}, value: tree.changes },
      ]),
    );
  }

  #addHolders(holders: readonly HolderInfo[]): void {
    this.#gauge(
      "holdfast_processes",
      "Processes that have the store open, by state.",
      (["alive", "silent", "dead"] as const).map((state) => ({
        labels: { state },
        value: holders.filter((holder) => holder.state === state).length,
      })),
    );
  }

  async #locks(): Promise<HeldLock[]> {
    // Opening the locks would create a table.
    if ((await findLockRoot(this.#location))?.hasLocks !== true) return [];
    const held = await (await this.#store.locks()).list();
    // Names that begin with a slash are those of Holdfast's own work.
    return held.filter(({ path }) => !path.startsWith("/"));
  }

  #addLocks(held: readonly HeldLock[]): void {
    const waiting = held.flatMap((lock) => lock.waiting);
    const nowMs = nodeClock.wallMs();
    const oldestOf = (since: readonly Date[]): number =>
      Math.max(0, ...since.map((each) => nowMs - each.getTime())) / 1000;
    const one = (value: number): Sample[] => [{ labels: {}, value }];
    this.#gauge("holdfast_locks_held", "Path locks that are held.", one(held.length));
    this.#gauge("holdfast_locks_waiting", "Requests that wait for a path lock.", one(waiting.length));
    this.#gauge(
      "holdfast_locks_oldest_hold_seconds",
      "Age of the oldest path lock, by the clock of its holder; 0 without one.",
      one(oldestOf(held.map(({ since }) => since))),
    );
    this.#gauge(
      "holdfast_locks_oldest_wait_seconds",
      "How long the longest wait for a path lock has lasted; 0 without one.",
      one(oldestOf(waiting.map(({ since }) => since))),
    );
  }

  async #log(name: string): Promise<LogNumbers> {
    const log = await this.#store.events(name, { create: false });
    const consumers = (await log.consumers()).map((each) => ({ ...each, kind: "consumer" as const }));
    const models = (await listReadModels(log)).map((each) => ({ ...each, kind: "read model" as const }));
    const followers = [...consumers, ...models].map(({ name: follower, kind, lag, holder }) => {
      return { name: follower, kind, isRunning: holder !== undefined, ...(lag === undefined ? {} : { lag }) };
    });
    return { name, head: await log.head(), bytes: await log.bytes(), followers };
  }

  #addLogs(logs: readonly LogNumbers[]): void {
    const each = (valueOf: (log: LogNumbers) => number): Sample[] =>
      logs.map((log) => ({ labels: { log: log.name }, value: valueOf(log) }));
    this.#texts.push(
      metricText(
        "counter",
        "holdfast_events_total",
        "Events of the log.",
        each(({ head }) => head),
      ),
    );
    this.#gauge(
      "holdfast_events_bytes",
      "Size of the log, without indexes and read models.",
      each(({ bytes }) => bytes),
    );
    const followers = this.#bounded(
      logs.flatMap(({ name: log, followers: all }) =>
        all.map(({ name, kind, ...rest }) => ({ labels: { log, kind, name }, ...rest })),
      ),
    );
    this.#gauge(
      "holdfast_events_lag",
      "Events that a consumer or a read model has not processed yet.",
      followers.flatMap(({ labels, lag }) => (lag === undefined ? [] : [{ labels, value: lag }])),
    );
    this.#gauge(
      "holdfast_events_running",
      "Whether a process runs the consumer or keeps the read model up to date.",
      followers.map(({ labels, isRunning }) => ({ labels, value: isRunning ? 1 : 0 })),
    );
  }

  async #addBuckets(): Promise<void> {
    const objects = await this.#read(() => this.#store.objects({ create: false }));
    const infos = (await this.#read(async () => await objects?.listBuckets())) ?? [];
    this.#gauge("holdfast_objects_buckets", "Buckets.", [{ labels: {}, value: infos.length }]);
    this.#unreadable += infos.filter(({ damaged }) => damaged !== undefined).length;
    const names = infos.filter(({ damaged }) => damaged === undefined).map(({ name }) => name);
    const counts: { name: string; keys: number; bytes: number; damaged: number }[] = [];
    for (const name of this.#bounded(names.sort())) {
      const found = await this.#read(async () => countKeys(await objects?.bucket(name)));
      if (found !== undefined) counts.push({ name, ...found });
    }
    const each = (valueOf: (bucket: (typeof counts)[number]) => number): Sample[] =>
      counts.map((bucket) => ({ labels: { bucket: bucket.name }, value: valueOf(bucket) }));
    this.#gauge(
      "holdfast_objects_keys",
      "Keys of the bucket.",
      each(({ keys }) => keys),
    );
    this.#gauge(
      "holdfast_objects_bytes",
      "Size of the current versions in the bucket.",
      each(({ bytes }) => bytes),
    );
    this.#gauge(
      "holdfast_objects_damaged",
      "Keys of the bucket whose current version cannot be read.",
      each(({ damaged }) => damaged),
    );
  }

  #gauge(name: string, help: string, samples: readonly Sample[]): void {
    this.#texts.push(metricText("gauge", name, help, samples));
  }

  /** Reads the numbers of each part, by name. */
  async #each<T>(directories: readonly string[], load: (name: string) => Promise<T>): Promise<T[]> {
    const names = directories.flatMap((path) => findNameOf(path.slice(path.lastIndexOf("/") + 1)) ?? []).sort();
    const found: T[] = [];
    for (const name of this.#bounded(names)) {
      const numbers = await this.#read(() => load(name));
      if (numbers !== undefined) found.push(numbers);
    }
    return found;
  }

  #bounded<T>(all: readonly T[]): readonly T[] {
    this.#omitted += Math.max(0, all.length - this.#namesMax);
    return all.slice(0, this.#namesMax);
  }

  async #read<T>(load: () => Promise<T>): Promise<T | undefined> {
    try {
      return await load();
    } catch (error) {
      // A closed store is the caller's mistake. Everything else concerns one part.
      if (!isHoldfastError(error) || isHoldfastError(error, "CLOSED")) throw error;
      this.#unreadable++;
      return undefined;
    }
  }
}

async function countKeys(bucket: Bucket | undefined): Promise<{ keys: number; bytes: number; damaged: number }> {
  const counts = { keys: 0, bytes: 0, damaged: 0 };
  for (let after: string | undefined; bucket !== undefined;) {
    const page = await bucket.list({ after });
    counts.keys += page.objects.length;
    for (const { size } of page.objects) counts.bytes += size;
    counts.damaged += page.damaged?.length ?? 0;
    if (page.next === undefined) break;
    after = page.next;
  }
  return counts;
}
