// The world of index scenarios: a tree with its change log, documents, outcomes and queue, and the processes on it. The
// classes are the real ones. Only the index that they fill is a small one in memory: the scenarios explore the
// protocol, not a database.
import type { Documents } from "../../../src/files/documents/documents.ts";
import { Derived } from "../../../src/files/documents/derived.ts";
import { DocumentsLayout } from "../../../src/files/documents/layout.ts";
import type { Outcomes } from "../../../src/files/documents/outcomes.ts";
import { FolderFiles } from "../../../src/files/files.ts";
import type { DerivedIndex, SearchHit } from "../../../src/files/model/derived-index.ts";
import type { IndexQueue } from "../../../src/files/model/index-queue.ts";
import { Indexer } from "../../../src/files/queue/indexer.ts";
import { LockWaits } from "../../../src/files/queue/lock-waits.ts";
import { LogWorker, type Tenure } from "../../../src/files/queue/log-worker.ts";
import type { TaskContext } from "../../../src/files/queue/task-context.ts";
import { TaskQueue } from "../../../src/files/queue/task-queue.ts";
import { UserFunctions } from "../../../src/files/queue/user-functions.ts";
import { Worker } from "../../../src/files/queue/worker.ts";
import type { GivenEngine } from "../../../src/files/search/engine.ts";
import { Follower } from "../../../src/files/search/follower.ts";
import { Searcher } from "../../../src/files/search/searcher.ts";
import type { SidecarVersion } from "../../../src/files/sidecars/sidecar-version.ts";
import { Sidecars } from "../../../src/files/sidecars/sidecars.ts";
import type { FileOperations, FilesOptions } from "../../../src/files/model/file-tree.ts";
import type { Tree } from "../../../src/files/tree/tree.ts";
import { replace } from "../../../src/durable/publish/publish.ts";
import { isWithin } from "../../../src/format/path-key.ts";
import { Box } from "../../../src/handoff/box/box.ts";
import { directoryLeases } from "../../../src/part/leases.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { wrapping } from "./wrapped-tree.ts";
import { openSimulatedTree, type FileScenarioOptions } from "./file-actors.ts";

/** The options of index scenarios, which run on the real classes or on known-wrong variants. */
export interface IndexScenarioOptions extends FileScenarioOptions {
  /** Wraps the derived data. Default: no change. */
  readonly derivedOf?: ((derived: Derived) => Derived) | undefined;
  readonly EngineClass?: typeof GivenEngine | undefined;
  readonly FollowerClass?: typeof Follower | undefined;
  readonly LogClass?: typeof LogWorker | undefined;
  readonly QueueClass?: typeof TaskQueue | undefined;
  readonly VersionClass?: typeof SidecarVersion | undefined;
  readonly WorkerClass?: typeof Worker | undefined;
}

/** The longest time that a search waits for what other processes have indexed. */
const refreshMs = 25;
/** The longest time that a function of the user may take. */
const functionMs = 7_777;

/** The documents of these paths share a few directories: listing 256 empty ones would add only uninteresting steps. */
const paths = ["a", "a/x", "b"];

class FewShards extends DocumentsLayout {
  override get shards(): string[] {
    return paths.map((path) => this.shardOf(path).slice(-2));
  }
}

/** An index that remembers texts, and finds those that contain the query. */
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

/** A process that has opened the tree with all derived data. */
export interface IndexProcess {
  readonly tree: Tree;
  readonly files: FolderFiles;
  readonly index: MemoryIndex;
  readonly derived: Derived;
  readonly documents: Documents;
  readonly outcomes: Outcomes;
  readonly queue: TaskQueue;
  readonly follower: Follower;
  readonly searcher: Searcher;
  readonly worker: Worker;
  readonly sidecars: Sidecars;
  readonly functions: UserFunctions;
  /** The box of the queue. */
  readonly box: Box;
  /** Makes tickets of locked changes at once, without a grace period. */
  readonly log: LogWorker;
  /** Acquires the work of the log worker, with the fence of its lease. */
  readonly takeLog: () => Promise<Tenure>;
  readonly close: () => Promise<void>;
}

export interface OpenIndexOptions extends IndexScenarioOptions {
  readonly functions?: Pick<FilesOptions, "extract" | "summarize" | "sessions"> | undefined;
  /** True if operations make no tickets: the scenario itself works on their changes. */
  readonly isTicketless?: boolean | undefined;
  /** True if a rename writes summaries and memories. The default, an operation of the tree, has its own scenarios. */
  readonly writesPlainly?: boolean | undefined;
}

export async function openIndexed(given: Ports, options: OpenIndexOptions = {}): Promise<IndexProcess> {
  const ports = withoutAlarms(given);
  const { leaseMs, treeOf = (each) => each } = options;
  const opened = await openSimulatedTree(ports, leaseMs);
  const { tree } = opened;
  const { ground, layout } = tree;
  // Snapshots have their own scenarios.
  const real = wrapping(new Derived(tree, new FewShards(layout.documents)), { findSnapshotPosition: async () => 0 });
  const derived = (options.derivedOf ?? ((each) => each))(real);
  const { documents, outcomes } = derived;
  const queue = new (options.QueueClass ?? TaskQueue)(tree, leaseMs);
  const functions = new UserFunctions(ports.clock, { functionTimeoutMs: functionMs, ...options.functions });
  const index = new MemoryIndex();
  const leases = directoryLeases(layout.directory, async () => ground);
  const waits = new LockWaits();
  // Every worker may wait: these scenarios do not test that the last one puts its ticket back.
  waits.addWorkers(2);
  const shared: Omit<TaskContext, "sidecars"> = {
    ...{ derived, functions, queue, waits },
    operations: () => (options.writesPlainly === true ? plainWrites(tree) : files),
    announce: (change) => tree.changes.append(change),
    onProgress: () => undefined,
  };
  const follower = new (options.FollowerClass ?? Follower)(derived, index, options.EngineClass);
  const sidecars = new Sidecars(shared, options.VersionClass);
  const context: TaskContext = { ...shared, sidecars };
  const indexing: IndexQueue = {
    hide: ({ from, path, number }) => follower.hide(from ?? path, number),
    enqueue: async (change, { token } = {}) => {
      if (options.isTicketless === true || token === undefined) return "";
      return await queue.publishChange(change.number, { token });
    },
    indexWithin: async () => "",
    // These scenarios do not test what a caller learns about its write.
    isIndexed: async () => false,
  };
  const files: FolderFiles = new FolderFiles({ ...opened, tree: treeOf(tree) }, { timeoutMs: 0, queue: indexing });
  const indexer = new Indexer(derived, functions);
  const worker = new (options.WorkerClass ?? Worker)(context, indexer);
  const log = new (options.LogClass ?? LogWorker)(context, leases, worker, { graceMs: 0 });
  return {
    ...{ tree, files, index, derived, documents, outcomes, queue, follower, worker, sidecars, functions },
    searcher: new Searcher({ ...context, follower }),
    box: new Box(ground, layout.queue),
    log,
    takeLog: async () => {
      const checkpoints = await log.open();
      const { signal } = new AbortController();
      const hold = await leases.acquire("index", signal);
      // Only the fence counts. Keeping a lease alive would add uninteresting steps.
      try {
        const tenure = await log.take(checkpoints, hold.fence, signal);
        if (tenure === undefined) throw new Error("a later worker has taken over");
        return tenure;
      } finally {
        await hold.release();
      }
    },
    close: async () => {
      await queue.close();
      await leases.close();
      await files.close();
    },
  };
}

function plainWrites(tree: Tree): Pick<FileOperations, "write"> {
  return {
    write: async (path, text) => {
      await replace(tree.ground.staging, tree.pathOf(path), Buffer.from(text as string));
      return { path, directory: false, size: 0, modifiedAt: new Date(0), indexed: false };
    },
  };
}

/**
 * A search waits for its refresh, and for a function of the user: time passes only when no process can continue.
 * Setting and stopping an alarm would add a step that may come at any moment.
 */
function withoutAlarms({ clock, ...ports }: Ports): Ports {
  const alarm: Ports["clock"]["alarm"] = (ms, ring) =>
    ms === refreshMs || ms === functionMs ? () => undefined : clock.alarm(ms, ring);
  return { ...ports, clock: { ...clock, alarm } };
}
