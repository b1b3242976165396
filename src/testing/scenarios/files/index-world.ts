// The world of index scenarios: a tree with its change log, documents, outcomes and queue, and the processes on it. The
// classes are the real ones; the index that they fill is a small one in memory, so that the protocol is explored and
// not a database.
import { Documents } from "../../../files/documents/documents.ts";
import { decideIndex, indexKind, type IndexRecord } from "../../../files/documents/index-record.ts";
import { DocumentsLayout } from "../../../files/documents/layout.ts";
import { Outcomes } from "../../../files/documents/outcomes.ts";
import { FolderFiles } from "../../../files/files.ts";
import type { DerivedIndex, SearchHit } from "../../../files/model/derived-index.ts";
import type { Change } from "../../../files/model/file-tree.ts";
import type { IndexQueue } from "../../../files/model/index-queue.ts";
import { Dispatcher } from "../../../files/queue/dispatcher.ts";
import { IndexTickets } from "../../../files/queue/index-tickets.ts";
import { Indexer } from "../../../files/queue/indexer.ts";
import { LockWaits } from "../../../files/queue/lock-waits.ts";
import { TaskQueue } from "../../../files/queue/task-queue.ts";
import { UserFunctions } from "../../../files/queue/user-functions.ts";
import { Worker } from "../../../files/queue/worker.ts";
import type { GivenEngine } from "../../../files/search/engine.ts";
import { Follower } from "../../../files/search/follower.ts";
import { Searcher } from "../../../files/search/searcher.ts";
import { Snapshots } from "../../../files/search/snapshots.ts";
import { SessionArchives } from "../../../files/sessions/session-archives.ts";
import type { SidecarVersion } from "../../../files/sidecars/sidecar-version.ts";
import { Sidecars } from "../../../files/sidecars/sidecars.ts";
import type { FileOperations, FilesOptions } from "../../../files/model/file-tree.ts";
import { Stamps } from "../../../files/tree/stamps.ts";
import type { TreePlace } from "../../../files/tree/tree-place.ts";
import { TreeReader } from "../../../files/tree/tree-reader.ts";
import { noIndex } from "../../../files/model/index-queue.ts";
import { replace } from "../../../durable/publish/publish.ts";
import { findRecord } from "../../../durable/publish/record-file.ts";
import { ServerTime } from "../../../durable/liveness/server-time.ts";
import { isWithin } from "../../../format/path-key.ts";
import { Box } from "../../../handoff/box/box.ts";
import type { LeasedWork } from "../../../part/progress/checkpoints.ts";
import { Leases } from "../../../part/leases.ts";
import type { Ports } from "../../../ports/ports.ts";
import { openPlace, type FileScenarioOptions } from "./file-actors.ts";

/** The scenarios run on the real classes, or on known-wrong variants. */
export interface IndexScenarioOptions extends FileScenarioOptions {
  readonly DispatcherClass?: typeof Dispatcher | undefined;
  readonly DocumentsClass?: typeof Documents | undefined;
  readonly EngineClass?: typeof GivenEngine | undefined;
  readonly FollowerClass?: typeof Follower | undefined;
  readonly IndexerClass?: typeof Indexer | undefined;
  readonly QueueClass?: typeof TaskQueue | undefined;
  readonly SearcherClass?: typeof Searcher | undefined;
  readonly TicketsClass?: typeof IndexTickets | undefined;
  readonly VersionClass?: typeof SidecarVersion | undefined;
  readonly WorkerClass?: typeof Worker | undefined;
}

/** How long a search waits for what other processes have indexed. */
const refreshMs = 25;
/** How long a function of the user may take. */
const functionMs = 7_777;

/** The documents of these paths lie in a few directories: 256 looks at empty ones would be of no interest. */
const paths = ["a", "a/x", "b"];

class FewShards extends DocumentsLayout {
  override get shards(): string[] {
    return paths.map((path) => this.shardOf(path).slice(-2));
  }
}

/** An index that remembers texts, and finds those that contain what is searched for. */
export class MemoryIndex implements DerivedIndex {
  readonly #files = new Map<string, { readonly text: string; readonly stamp: string | undefined }>();

  get texts(): Record<string, string> {
    const paths = [...this.#files.keys()].sort();
    return Object.fromEntries(paths.map((path) => [path, this.#files.get(path)?.text ?? ""]));
  }

  async upsert(path: string, text: string, { stamp }: { stamp?: string | undefined } = {}): Promise<void> {
    this.#files.set(path, { text, stamp });
  }

  async remove(path: string): Promise<void> {
    for (const each of [...this.#files.keys()]) if (isWithin(each, path)) this.#files.delete(each);
  }

  async rename(): Promise<void> {
    throw new Error("A move is a removal and a new document.");
  }

  async search(wanted: string): Promise<(SearchHit & { stamp?: string })[]> {
    const found = [...this.#files].filter(([, { text }]) => text.includes(wanted));
    return found.map(([path, { stamp }]) => ({ path, score: 1, ...(stamp === undefined ? {} : { stamp }) }));
  }

  async clear(): Promise<void> {
    this.#files.clear();
  }
}

/** A process that has the tree open with all that is derived from it. */
export interface IndexProcess {
  readonly place: TreePlace;
  readonly files: FolderFiles;
  readonly index: MemoryIndex;
  readonly documents: Documents;
  readonly outcomes: Outcomes;
  readonly queue: TaskQueue;
  readonly tickets: IndexTickets;
  readonly follower: Follower;
  readonly searcher: Searcher;
  readonly worker: Worker;
  readonly sidecars: Sidecars;
  readonly archives: SessionArchives;
  readonly functions: UserFunctions;
  /** Of the queue. */
  readonly box: Box;
  /** Makes tickets at once, without a time of grace. */
  readonly dispatcher: Dispatcher;
  readonly decideIndex: () => Promise<IndexRecord>;
  /** The work of the dispatcher, with the fence of its lease. */
  readonly takeDispatch: () => Promise<LeasedWork>;
  readonly close: () => Promise<void>;
}

export interface OpenIndexOptions extends IndexScenarioOptions {
  readonly functions?: Pick<FilesOptions, "extract" | "summarize" | "sessions"> | undefined;
  /** Operations make no tickets: the scenario works on their changes itself. */
  readonly isTicketless?: boolean | undefined;
  /** Summaries and memories are written by a rename, and not by an operation of the tree, which has scenarios of its own. */
  readonly writesPlainly?: boolean | undefined;
}

export async function openIndexed(given: Ports, options: OpenIndexOptions = {}): Promise<IndexProcess> {
  const ports = withoutAlarms(given);
  const { leaseMs, WorkClass, StagedClass } = options;
  const opened = await openPlace(ports, leaseMs);
  const { place } = opened;
  const { ground, layout } = place;
  const { staging } = ground;
  const stamps = new Stamps(place.disk, new ServerTime(ports, staging));
  const reader = new TreeReader(place, stamps, noIndex);
  const documentsLayout = new FewShards(layout.documents);
  const documents = new (options.DocumentsClass ?? Documents)(staging, documentsLayout);
  const outcomes = new Outcomes(staging, documentsLayout);
  const queue = new (options.QueueClass ?? TaskQueue)(ground, layout.queue, leaseMs);
  const tickets = new (options.TicketsClass ?? IndexTickets)(place, queue);
  const functions = new UserFunctions(ports.clock, { functionTimeoutMs: functionMs, ...options.functions });
  const index = new MemoryIndex();
  const leases = new Leases(layout.directory, async () => ground);
  const announce = (change: Omit<Change, "number">): Promise<void> => tickets.announce(change);
  const operations = (): Pick<FileOperations, "write"> => (options.writesPlainly === true ? plainWrites(place) : files);
  const decide = async (): Promise<IndexRecord> =>
    (await findRecord(place.disk, indexKind, documentsLayout.record)) ??
    (await decideIndex(staging, documentsLayout, place.changes, async () => {
      for await (const _ of reader.list()) return false;
      return true;
    }));
  const shared = { place, documents, outcomes, decideIndex: decide };
  const snapshots = new Snapshots(staging, layout.index, ports.host.bootId);
  const follower = new (options.FollowerClass ?? Follower)({
    ...shared,
    clock: ports.clock,
    changes: place.changes,
    snapshots,
    givenIndex: index,
    EngineClass: options.EngineClass,
  });
  const waits = new LockWaits();
  // Every worker may wait: that the last one puts its ticket back is not what these scenarios are about.
  waits.addWorkers(2);
  const sidecars = new Sidecars({ place, queue, functions, operations, waits, VersionClass: options.VersionClass });
  const archives = new SessionArchives({ staging, directory: layout.sessions, functions, operations });
  const indexing: IndexQueue = {
    isOn: true,
    hide: ({ from, path, number }) => follower.hide(from ?? path, number),
    enqueue: async (change, { token } = {}) => {
      if (options.isTicketless === true) return "";
      if (token !== undefined) return await tickets.publish(change.number, token);
      await tickets.publishLater(change);
      return "";
    },
    indexWithin: async () => "",
    // What a caller is told of its write is not what these scenarios are about.
    isIndexed: async () => false,
  };
  const files: FolderFiles = new FolderFiles(opened, { timeoutMs: 0, queue: indexing, WorkClass, StagedClass });
  const dispatcher = new (options.DispatcherClass ?? Dispatcher)({
    place,
    leases,
    outcomes,
    enqueue: (change) => tickets.publish(change.number),
    isEnqueued: (change) => tickets.has(change),
    graceMs: 0,
  });
  const worker = new (options.WorkerClass ?? Worker)({
    ...shared,
    queue,
    waits,
    indexer: new (options.IndexerClass ?? Indexer)({ ...shared, stamps, reader, functions, isIndexing: true }),
    sidecars,
    archives,
    announce,
    onProgress: () => undefined,
  });
  return {
    ...{ place, files, index, documents, outcomes, queue, tickets, follower, worker, sidecars, archives, functions },
    searcher: new (options.SearcherClass ?? Searcher)({ ...shared, stamps, follower, functions, announce }),
    box: new Box(ground, layout.queue),
    dispatcher,
    decideIndex: decide,
    takeDispatch: async () => {
      const checkpoints = await dispatcher.open();
      const hold = await leases.acquire("dispatch", new AbortController().signal);
      // The fence counts. A lease that is held is looked after, which would be steps that are of no interest.
      try {
        const work = await checkpoints.take(hold.fence);
        if (work === undefined) throw new Error("a later dispatcher has taken over");
        return work;
      } finally {
        await hold.release();
      }
    },
    close: async () => {
      await tickets.drain();
      await queue.close();
      await leases.close();
      await files.close();
    },
  };
}

function plainWrites(place: TreePlace): Pick<FileOperations, "write"> {
  return {
    write: async (path, text) => {
      await replace(place.ground.staging, place.pathOf(path), Buffer.from(text as string));
      return { path, directory: false, size: 0, modifiedAt: new Date(0), indexed: false };
    },
  };
}

/**
 * A search waits for its refresh, and for a function of the user: time passes only when no process can go on. An alarm
 * that is set and stopped would be a step more, which may come at any moment.
 */
function withoutAlarms({ clock, ...ports }: Ports): Ports {
  const alarm: Ports["clock"]["alarm"] = (ms, ring) =>
    ms === refreshMs || ms === functionMs ? () => undefined : clock.alarm(ms, ring);
  return { ...ports, clock: { ...clock, alarm } };
}
