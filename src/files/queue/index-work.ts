// IndexWork: everything that one process does for all: it follows the change log, processes tickets
// and publishes snapshots until it is stopped.
import type { Change, FileOperations, FilesOptions } from "../model/file-tree.ts";
import { allEnded } from "../../durable/wait/in-parallel.ts";
import { onAbort } from "../../durable/wait/on-abort.ts";
import type { ConsumeOptions } from "../../handoff/model/consume-options.ts";
import type { Delivery } from "../../handoff/model/delivery.ts";
import { directoryLeases, type Leases } from "../../part/leases.ts";
import { Loops, type LoopSignals } from "../../part/loop.ts";
import type { NewChange } from "../change-log/change-record.ts";
import type { Derived } from "../documents/derived.ts";
import type { Follower } from "../search/follower.ts";
import { SnapshotKeeper } from "../search/snapshot-keeper.ts";
import { SessionArchives } from "../sessions/session-archives.ts";
import { Sidecars } from "../sidecars/sidecars.ts";
import { Indexer } from "./indexer.ts";
import { LastingWork } from "./lasting-work.ts";
import { LockWaits } from "./lock-waits.ts";
import { LogWorker, type LogWorkerOptions } from "./log-worker.ts";
import { NeededFunctions } from "./needed-functions.ts";
import type { TaskContext } from "./task-context.ts";
import { TaskQueue } from "./task-queue.ts";
import { UserFunctions } from "./user-functions.ts";
import { Worker } from "./worker.ts";

const retryDefault: RetryOptions = { attempts: 5, backoffMs: { min: 1_000, max: 60_000 } };
/** How often a process that lacks a function checks whether the function is still needed. */
const needsPauseMs = 1_000;
/** The surrounding loop has its own limit. */
const forEver = { drainMs: 2 ** 31 - 1 };

/** How often a failing task is tried, and how long it pauses in between. */
export interface RetryOptions {
  readonly attempts: number;
  readonly backoffMs: NonNullable<ConsumeOptions["backoffMs"]>;
}

export interface IndexWorkOptions extends FilesOptions, Pick<LogWorkerOptions, "graceMs"> {
  readonly retry?: RetryOptions | undefined;
}

export class IndexWork implements TaskContext {
  /** False if this process neither indexes nor summarizes. */
  readonly isOn: boolean;
  readonly derived: Derived;
  readonly operations: () => Pick<FileOperations, "write">;
  readonly functions: UserFunctions;
  readonly queue: TaskQueue;
  readonly waits: LockWaits = new LockWaits();
  readonly worker: Worker;
  readonly log: LogWorker;
  readonly keeper: SnapshotKeeper;
  readonly sidecars: Sidecars;
  readonly archives: SessionArchives;
  readonly needed: NeededFunctions;
  readonly lasting: LastingWork;
  readonly loops: Loops;
  readonly #leases: Leases;
  readonly #retry: RetryOptions;

  constructor(
    derived: Derived,
    follower: Follower,
    operations: () => Pick<FileOperations, "write">,
    options: IndexWorkOptions,
  ) {
    const { ground, layout, root } = derived.tree;
    const { clock, host } = ground.ports;
    this.derived = derived;
    this.operations = operations;
    this.functions = new UserFunctions(clock, options);
    this.isOn = this.functions.has("index") || this.functions.has("summarize");
    this.#retry = { ...retryDefault, ...options.retry };
    this.queue = new TaskQueue(derived.tree, options.leaseMs);
    this.#leases = directoryLeases(layout.directory, async () => ground);
    this.loops = new Loops(clock, root);
    this.lasting = new LastingWork(clock, (error, isFirst) => {
      if (isFirst) host.warn(`${root}: indexing of changes is interrupted: ${String(error)}`);
      this.loops.progressed();
    });
    this.needed = new NeededFunctions(ground, layout.directory);
    this.keeper = new SnapshotKeeper(derived, follower, this.#leases);
    this.sidecars = new Sidecars(this);
    this.archives = new SessionArchives(this);
    const { index } = options;
    const sharedIndex = index !== false && index?.isShared === true ? index : undefined;
    const indexer = new Indexer(derived, this.functions, sharedIndex);
    this.worker = new Worker(this, indexer, this.sidecars, this.archives);
    const { backoffMs } = this.#retry;
    this.log = new LogWorker(this, this.#leases, this.worker, {
      retryDelayMs: typeof backoffMs === "object" ? backoffMs.min : 0,
      ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
    });
  }

  async announce(change: NewChange): Promise<Change> {
    const announced = await this.derived.tree.changes.append(change);
    this.log.wake();
    return announced;
  }

  onProgress(documents: number): void {
    this.keeper.noteDocuments(documents);
    this.loops.progressed();
  }

  /** Runs until it is stopped, and survives disk failures. */
  async run(concurrency: number, signals: LoopSignals): Promise<void> {
    await this.lasting.run(async () => {
      await this.derived.tree.reserve.fill();
      if (this.functions.has("index")) await this.derived.dropIndexOfAnotherLog({ isDeep: true });
      await this.#runOnce(concurrency, signals);
    }, signals.stopping);
  }

  async close(): Promise<void> {
    await this.loops.close();
    await this.queue.close();
    await this.#leases.close();
  }

  async #runOnce(concurrency: number, signals: LoopSignals): Promise<void> {
    await this.needed.add(this.functions.names);
    await together(signals, (each) => [
      this.#workWhenAble(concurrency, each),
      ...(this.functions.has("index") ? [this.keeper.run(each)] : []),
    ]);
    // If finished tickets cannot be removed now, the next process removes them.
    if (!signals.lettingGo.aborted) await this.queue.collect().catch(() => undefined);
  }

  /**
   * Works while this process has all needed functions: another process may open the tree with more
   * of them.
   */
  async #workWhenAble(concurrency: number, signals: LoopSignals): Promise<void> {
    while (await this.#hasFunctions(signals.stopping)) {
      const hide = await this.needed.show(this.functions.names);
      this.waits.addWorkers(concurrency);
      try {
        await this.#workWhileAble(concurrency, signals);
      } finally {
        this.waits.addWorkers(-concurrency);
        // On failure, the registration counts for as long as this process lives.
        await hide().catch(() => undefined);
      }
    }
  }

  /** Runs until it is stopped, or until another process opens the tree with a function that this one lacks. */
  async #workWhileAble(concurrency: number, { stopping, lettingGo }: LoopSignals): Promise<void> {
    const lacking = new AbortController();
    // Checked repeatedly: otherwise this process would produce less than the others do.
    const isAble = async (): Promise<boolean> => {
      if ((await this.#findMissing()).length > 0) lacking.abort();
      return !lacking.signal.aborted;
    };
    const signals = { stopping: AbortSignal.any([stopping, lacking.signal]), lettingGo };
    await together(signals, (each) => [
      this.#workOnTickets(concurrency, each, isAble),
      ...(this.isOn ? [this.log.run(concurrency, each, isAble)] : []),
    ]);
  }

  async #workOnTickets(
    concurrency: number,
    { stopping, lettingGo }: LoopSignals,
    isAble: () => Promise<boolean>,
  ): Promise<void> {
    const { queue, worker } = this;
    const { attempts, backoffMs } = this.#retry;
    await queue.replayLost();
    const burials = new Set<Promise<void>>();
    const handle = async (delivery: Delivery): Promise<unknown> => {
      if (await isAble()) return await worker.handle(delivery);
      await delivery.postpone({ delayMs: 0 });
      return undefined;
    };
    const consumer = await queue.consume(handle, {
      // The worker counts failures itself, and the deaths of workers separately.
      attempts: Number.MAX_SAFE_INTEGER,
      backoffMs,
      onError: (_, { id }) => (worker.takeFailures(id) + 1 >= attempts ? "fail" : "retry"),
      concurrency,
      onDeadLetter: (ticket) => {
        // If burying fails, `settled` finds the dead letter.
        const burial = worker.bury(ticket).catch(() => undefined);
        burials.add(burial);
        void burial.then(() => burials.delete(burial));
      },
    });
    const letGo = (): void => void consumer.stop({ drainMs: 0 });
    const stop = (): void => {
      void consumer.stop(forEver);
      // A lock may be held forever, even by a change that this process has committed. Such a ticket
      // returns to the queue.
      worker.whenOnlyWaiting(letGo);
    };
    const stopListening = [onAbort(stopping, stop), onAbort(lettingGo, letGo)];
    if (stopping.aborted) stop();
    try {
      await consumer.done;
    } finally {
      for (const end of stopListening) end();
      await Promise.all(burials);
    }
  }

  /**
   * Waits until this process has all functions that the work needs. Returns false if it was stopped
   * first.
   */
  async #hasFunctions(stopping: AbortSignal): Promise<boolean> {
    const { ground, root } = this.derived.tree;
    for (let checks = 0; !stopping.aborted; checks++) {
      const missing = await this.#findMissing();
      if (missing.length === 0) return true;
      if (checks === 0)
        ground.ports.host.warn(
          `${root}: this process leaves indexing to others, because it was opened without these functions: ${missing.join(", ")}.`,
        );
      await ground.ports.clock.sleep(needsPauseMs, { signal: stopping, background: true }).catch(() => undefined);
    }
    return false;
  }

  async #findMissing(): Promise<string[]> {
    const own: readonly string[] = this.functions.names;
    return (await this.needed.list()).filter((name) => !own.includes(name));
  }
}

/**
 * Runs all loops. The first failure stops the others; the call rejects with it after all have
 * ended.
 */
async function together(
  { stopping, lettingGo }: LoopSignals,
  start: (signals: LoopSignals) => Promise<void>[],
): Promise<void> {
  const failed = new AbortController();
  const running = start({ stopping: AbortSignal.any([stopping, failed.signal]), lettingGo });
  for (const each of running) each.catch((error: unknown) => failed.abort(error));
  await allEnded(running);
}
