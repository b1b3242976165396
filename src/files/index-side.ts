// What is derived from a tree, as the tree and its users call it: index, queue, summaries, sessions.
import type { Cancel, Running } from "../common.ts";
import { isHoldfastError } from "../errors.ts";
import { ServerTime } from "../durable/liveness/server-time.ts";
import type { ConsumeOptions } from "../handoff/consume/consumer.ts";
import type { PathHold } from "../locks/path/path-hold.ts";
import { Leases } from "../part/leases.ts";
import { Loop, Loops, type LoopSignals } from "../part/loop.ts";
import { Documents } from "./documents/documents.ts";
import { decideIndex, indexKind, type IndexRecord } from "./documents/index-record.ts";
import { DocumentsLayout } from "./documents/layout.ts";
import { Outcomes } from "./documents/outcomes.ts";
import { findRecord } from "../durable/publish/record-file.ts";
import type { SearchHit, SearchOptions } from "./model/derived-index.ts";
import type { Change, FileOperations, FilesOptions, RebuildOptions } from "./model/file-tree.ts";
import { noIndex, type IndexQueue } from "./model/index-queue.ts";
import type { Session } from "./model/session.ts";
import { Dispatcher, graceMsDefault } from "./queue/dispatcher.ts";
import { LastingWork } from "./queue/lasting-work.ts";
import { IndexTickets } from "./queue/index-tickets.ts";
import { Indexer } from "./queue/indexer.ts";
import { LockWaits } from "./queue/lock-waits.ts";
import { NeededFunctions } from "./queue/needed-functions.ts";
import { waitUntilSettled } from "./queue/settled.ts";
import { TaskQueue } from "./queue/task-queue.ts";
import { UserFunctions } from "./queue/user-functions.ts";
import { Worker } from "./queue/worker.ts";
import { WorkLoop } from "./queue/work-loop.ts";
import { findStamp } from "./search/found-file.ts";
import { Follower } from "./search/follower.ts";
import { checkSearch } from "./search/search.ts";
import { findWaiting } from "./search/waiting-work.ts";
import { Searcher } from "./search/searcher.ts";
import { SnapshotKeeper } from "./search/snapshot-keeper.ts";
import { Snapshots } from "./search/snapshots.ts";
import { SessionArchives } from "./sessions/session-archives.ts";
import { TreeSession } from "./sessions/tree-session.ts";
import { Sidecars } from "./sidecars/sidecars.ts";
import { Stamps } from "./tree/stamps.ts";
import type { TreePlace } from "./tree/tree-place.ts";
import { TreeReader } from "./tree/tree-reader.ts";

const concurrencyDefault = 4;
export interface IndexSideParts {
  readonly place: TreePlace;
  readonly options: FilesOptions;
  /** The tree itself: summaries and memories are written through it. */
  readonly operations: () => Pick<FileOperations, "write">;
  /** How tasks that fail are tried again. */
  readonly retry?: Pick<ConsumeOptions, "attempts" | "backoffMs"> | undefined;
  /** How long an operation has time to make its ticket itself. */
  readonly graceMs?: number | undefined;
}

export class IndexSide implements IndexQueue {
  readonly isOn: boolean;
  readonly #isIndexing: boolean;
  readonly #parts: IndexSideParts;
  readonly #place: TreePlace;
  readonly #stamps: Stamps;
  readonly #functions: UserFunctions;
  readonly #layout: DocumentsLayout;
  readonly #documents: Documents;
  readonly #outcomes: Outcomes;
  readonly #queue: TaskQueue;
  readonly #tickets: IndexTickets;
  readonly #follower: Follower;
  readonly #searcher: Searcher;
  readonly #keeper: SnapshotKeeper;
  readonly #waits = new LockWaits();
  readonly #worker: Worker;
  readonly #archives: SessionArchives;
  readonly #leases: Leases;
  readonly #loops: Loops;
  readonly #needed: NeededFunctions;
  readonly #reader: TreeReader;
  readonly #snapshots: Snapshots;
  readonly #lasting: LastingWork;
  #closing: Promise<void> | undefined;

  constructor(parts: IndexSideParts) {
    const { place, options, operations } = parts;
    const { ground, layout, disk } = place;
    const { ports, staging } = ground;
    this.#parts = parts;
    this.#place = place;
    this.#isIndexing = options.index !== false;
    this.isOn = this.#isIndexing || options.summarize !== undefined;
    this.#stamps = new Stamps(disk, new ServerTime(ports, staging));
    this.#reader = new TreeReader(place, this.#stamps, noIndex);
    this.#functions = new UserFunctions(ports.clock, options);
    this.#layout = new DocumentsLayout(layout.documents);
    this.#documents = new Documents(staging, this.#layout);
    this.#outcomes = new Outcomes(staging, this.#layout);
    this.#queue = new TaskQueue(ground, layout.queue, options.leaseMs);
    this.#tickets = new IndexTickets(place, this.#queue);
    this.#leases = new Leases(layout.directory, async () => ground);
    this.#loops = new Loops(ports.clock, place.root);
    this.#lasting = new LastingWork({
      clock: ports.clock,
      onFailure: (error, isFirst) => {
        if (isFirst) ports.host.warn(`${place.root}: the work on what has changed is interrupted: ${String(error)}`);
        this.#loops.progressed();
      },
    });
    this.#needed = new NeededFunctions(ground, layout.directory);
    this.#archives = new SessionArchives({
      staging,
      directory: layout.sessions,
      functions: this.#functions,
      operations,
    });
    const given = options.index === false ? undefined : options.index;
    const snapshots = (this.#snapshots = new Snapshots(staging, layout.index, ports.host.bootId));
    const shared = {
      place,
      documents: this.#documents,
      outcomes: this.#outcomes,
      decideIndex: () => this.#decideIndex(),
    };
    this.#follower = new Follower({
      ...shared,
      clock: ports.clock,
      changes: place.changes,
      snapshots,
      givenIndex: given,
    });
    this.#searcher = new Searcher({
      ...shared,
      stamps: this.#stamps,
      follower: this.#follower,
      functions: this.#functions,
      announce: (change) => this.#tickets.announce(change),
    });
    this.#keeper = new SnapshotKeeper({ ...shared, leases: this.#leases, follower: this.#follower, snapshots });
    this.#worker = new Worker({
      ...shared,
      queue: this.#queue,
      indexer: new Indexer({
        ...shared,
        stamps: this.#stamps,
        reader: this.#reader,
        functions: this.#functions,
        isIndexing: this.#isIndexing,
        sharedIndex: given?.isShared === true ? given : undefined,
      }),
      sidecars: new Sidecars({
        place,
        queue: this.#queue,
        functions: this.#functions,
        waits: this.#waits,
        operations,
      }),
      waits: this.#waits,
      archives: this.#archives,
      announce: (change) => this.#tickets.announce(change),
      onProgress: (documents) => {
        this.#keeper.noteDocuments(documents);
        this.#loops.progressed();
      },
    });
  }

  /** To be called before the first operation: an index that begins with an empty tree begins with nothing to do. */
  async begin(): Promise<void> {
    if (!this.#isIndexing) return;
    // Also by a process that does not work: one that indexes nothing must leave its tickets alone.
    await this.#needed.add(["index"]);
    await this.#decideIndex();
  }

  async hide({ from, path, number }: Change): Promise<void> {
    const { index } = this.#parts.options;
    const gone = from ?? path;
    // One for all is asked also by a process that has never searched.
    if (index !== undefined && index !== false && index.isShared === true) await index.remove(gone);
    else await this.#follower.hide(gone, number);
  }

  /**
   * With a token when the ticket is made; without one at once, and the ticket follows. Without an index no ticket is
   * made: the dispatcher of a process that has one makes it.
   */
  async enqueue(change: Change, { token }: { readonly token?: string | undefined } = {}): Promise<string> {
    if (!this.isOn) return "";
    if (token !== undefined) return await this.#tickets.publish(change.number, token);
    await this.#tickets.publishLater(change);
    return "";
  }

  async indexWithin(change: Change, hold: PathHold): Promise<string> {
    try {
      await this.#worker.index(change, { signal: hold.signal });
      return "";
    } catch {
      // What was added is in place: a worker tries again, and gives up after a few times.
      return await this.#tickets.publish(change.number);
    }
  }

  async isIndexed(path: string, stamp: string): Promise<boolean> {
    if (!this.#isIndexing) return false;
    if (this.#follower.engine?.find(path)?.stamp === stamp) return true;
    const newest = await this.#documents.findNewest(path);
    return newest?.stamp === stamp && newest.text !== undefined;
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    checkSearch(text, options);
    this.#loops.mustBeOpen();
    if (!this.#isIndexing)
      throw new TypeError("search: this tree was opened without an index. Open it without `index: false`.");
    return await this.#searcher.search(text, options);
  }

  async settled(options: Cancel & { under?: string | undefined } = {}): Promise<void> {
    this.#loops.mustBeOpen();
    this.#lasting.goOn();
    const { path: under } = await this.#place.locate(options.under ?? "");
    await waitUntilSettled(
      {
        isOn: this.isOn,
        loops: this.#loops,
        place: this.#place,
        changes: this.#place.changes,
        follower: this.#follower,
        queue: this.#queue,
        worker: this.#worker,
        isInSnapshot: async (change) => {
          const { id } = await this.#decideIndex();
          return ((await this.#snapshots.findRecord(id))?.record.position ?? 0) >= change;
        },
        mustHaveFunctions: () => this.#needed.mustBeThere(this.#functions.names),
        hasOutcome: async (change) => (await this.#outcomes.find(change)) !== undefined,
        announce: (change) => this.#tickets.announce(change),
        findFailure: () => this.#lasting.failure,
      },
      { under, signal: options.signal },
    );
  }

  work({ concurrency = concurrencyDefault, signal }: Cancel & { concurrency?: number | undefined } = {}): Running {
    if (!(Number.isSafeInteger(concurrency) && concurrency >= 1))
      throw new RangeError(`work: concurrency must be a whole number from 1, not ${concurrency}.`);
    return new Loop(this.#loops, (signals) => this.#work(concurrency, signals), { signal });
  }

  /** Extracts everything anew. What it has done when it is interrupted counts. */
  async rebuildIndex({ signal, onProgress, forgetFunctions = false }: RebuildOptions = {}): Promise<number> {
    this.#loops.mustBeOpen();
    signal?.throwIfAborted();
    const { names } = this.#functions;
    if (forgetFunctions) await this.#needed.forgetOthersThan(names);
    await this.#needed.mustBeOwn(names);
    let total = 0;
    for await (const info of this.#reader.list("", { deep: true, signal })) if (!info.directory) total++;
    const change = await this.#place.changes.append({ kind: "written", path: "" });
    // This process does it, and no worker.
    this.#tickets.note(change.number);
    const onFile = (done: number): void => onProgress?.(done, Math.max(done, total));
    try {
      const count = await this.#worker.index(change, { signal, isAnew: true, onFile });
      await this.#keeper.keep(1);
      return count;
    } catch (error) {
      await this.#worker.giveUp(change.number, "It was interrupted, or it failed.");
      throw error;
    }
  }

  async session(id: string, { user }: { user?: string | undefined } = {}): Promise<Session> {
    this.#loops.mustBeOpen();
    return new TreeSession({
      log: await this.#archives.open(id),
      user,
      queue: this.#queue,
      functions: this.#functions,
      mustBeOpen: () => this.#loops.mustBeOpen(),
    });
  }

  /** How the work of this process has failed, as long as it does not go on. */
  get failure(): string | undefined {
    const { failure } = this.#lasting;
    return failure === undefined ? undefined : String(failure.error);
  }

  /** All files, and whether their content is the indexed one. What is not, is told to the queue with `repair`. */
  async *compare({ signal, repair = false }: Cancel & { repair?: boolean }): AsyncGenerator<{
    readonly path: string;
    readonly isIndexed: boolean;
    readonly isUnreadable?: true;
  }> {
    this.#loops.mustBeOpen();
    await this.#follower.refresh();
    const isWaitedFor = await findWaiting(this.#place.changes, this.#follower);
    for await (const { path, directory } of this.#reader.list("", { deep: true, signal })) {
      this.#loops.mustBeOpen();
      if (directory) continue;
      let stamp: string | undefined;
      try {
        stamp = await findStamp(this.#place, this.#stamps, path);
      } catch (error) {
        if (!isHoldfastError(error, "NO_PERMISSION")) throw error;
        yield { path, isIndexed: false, isUnreadable: true };
        continue;
      }
      const newest = await this.#documents.findNewest(path);
      const isIndexed = stamp === undefined || newest?.stamp === stamp || isWaitedFor(path);
      if (!isIndexed && repair) await this.#tickets.announce({ kind: "written", path });
      yield { path, isIndexed };
    }
  }

  /** Stops the work of this process, and what it has begun in the background. */
  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await this.#loops.close();
    await this.#tickets.drain();
    await this.#queue.close();
    await this.#leases.close();
    await this.#follower.close();
  }

  async #work(concurrency: number, signals: LoopSignals): Promise<void> {
    const { host, clock } = this.#place.ground.ports;
    const dispatcher = new Dispatcher({
      place: this.#place,
      leases: this.#leases,
      outcomes: this.#outcomes,
      enqueue: (change) => this.#tickets.publish(change.number),
      isEnqueued: (change) => this.#tickets.has(change),
      graceMs: this.#parts.graceMs ?? graceMsDefault,
    });
    const loop = new WorkLoop({
      root: this.#place.root,
      host,
      clock,
      queue: this.#queue,
      worker: this.#worker,
      waits: this.#waits,
      functions: this.#functions,
      needed: this.#needed,
      beside: [
        ...(this.isOn ? [dispatcher.run.bind(dispatcher)] : []),
        ...(this.#isIndexing ? [this.#keeper.run.bind(this.#keeper)] : []),
      ],
      retry: this.#parts.retry,
    });
    await this.#lasting.run(() => loop.run(concurrency, signals), signals.stopping);
  }

  async #decideIndex(): Promise<IndexRecord> {
    const { disk, ground } = this.#place;
    const known = await findRecord(disk, indexKind, this.#layout.record);
    if (known !== undefined) return known;
    return await decideIndex(ground.staging, this.#layout, this.#place.changes, async () => {
      for await (const _ of this.#reader.list()) return false;
      return true;
    });
  }
}
