// IndexWork: everything that one process does for all: it follows the change log, processes tickets
// and publishes snapshots until it is stopped.
import { allEnded } from "../../durable/wait/in-parallel.ts";
import { onAbort } from "../../durable/wait/on-abort.ts";
import type { ConsumeOptions } from "../../handoff/model/consume-options.ts";
import type { Delivery } from "../../handoff/model/delivery.ts";
import { directoryLeases, type Leases } from "../../part/leases.ts";
import type { LoopSignals } from "../../part/loop.ts";
import type { IndexSide } from "../index-side.ts";
import type { DerivedIndex } from "../model/derived-index.ts";
import { SnapshotKeeper } from "../search/snapshot-keeper.ts";
import { Indexer } from "./indexer.ts";
import { LastingWork } from "./lasting-work.ts";
import { LogWorker, type LogWorkerOptions } from "./log-worker.ts";
import { NeededFunctions } from "./needed-functions.ts";
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

export interface IndexWorkOptions extends Pick<LogWorkerOptions, "graceMs"> {
  readonly retry?: RetryOptions | undefined;
}

export class IndexWork {
  readonly worker: Worker;
  readonly log: LogWorker;
  readonly keeper: SnapshotKeeper;
  readonly needed: NeededFunctions;
  readonly lasting: LastingWork;
  readonly #side: IndexSide;
  readonly #leases: Leases;
  readonly #retry: RetryOptions;

  constructor(
    side: IndexSide,
    sharedIndex: DerivedIndex | undefined,
    { retry = retryDefault, graceMs }: IndexWorkOptions,
  ) {
    const { derived, follower, functions } = side;
    const { ground, layout, root } = derived.tree;
    const { clock, host } = ground.ports;
    this.#side = side;
    this.#retry = retry;
    this.#leases = directoryLeases(layout.directory, async () => ground);
    this.lasting = new LastingWork(clock, (error, isFirst) => {
      if (isFirst) host.warn(`${root}: indexing of changes is interrupted: ${String(error)}`);
      side.loops.progressed();
    });
    this.needed = new NeededFunctions(ground, layout.directory);
    this.keeper = new SnapshotKeeper(derived, follower, this.#leases);
    this.worker = new Worker(side, new Indexer(derived, functions, sharedIndex));
    const { backoffMs } = retry;
    this.log = new LogWorker(side, this.#leases, this.worker, {
      retryDelayMs: typeof backoffMs === "object" ? backoffMs.min : 0,
      ...(graceMs === undefined ? {} : { graceMs }),
    });
  }

  /** Runs until it is stopped, and survives disk failures. */
  async run(concurrency: number, signals: LoopSignals): Promise<void> {
    await this.lasting.run(async () => {
      const { derived, functions } = this.#side;
      await derived.tree.reserve.fill();
      if (functions.has("index")) await derived.dropIndexOfAnotherLog({ isDeep: true });
      await this.#runOnce(concurrency, signals);
    }, signals.stopping);
  }

  async close(): Promise<void> {
    const { loops, queue, follower } = this.#side;
    await loops.close();
    await queue.close();
    await this.#leases.close();
    await follower.close();
  }

  async #runOnce(concurrency: number, signals: LoopSignals): Promise<void> {
    const { functions, queue } = this.#side;
    await this.needed.add(functions.names);
    await together(signals, (each) => [
      this.#workWhenAble(concurrency, each),
      ...(functions.has("index") ? [this.keeper.run(each)] : []),
    ]);
    // If finished tickets cannot be removed now, the next process removes them.
    if (!signals.lettingGo.aborted) await queue.collect().catch(() => undefined);
  }

  /**
   * Works while this process has all needed functions: another process may open the tree with more
   * of them.
   */
  async #workWhenAble(concurrency: number, signals: LoopSignals): Promise<void> {
    const { functions, waits } = this.#side;
    while (await this.#hasFunctions(signals.stopping)) {
      const hide = await this.needed.show(functions.names);
      waits.addWorkers(concurrency);
      try {
        await this.#workWhileAble(concurrency, signals);
      } finally {
        waits.addWorkers(-concurrency);
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
      ...(this.#side.isOn ? [this.log.run(concurrency, each, isAble)] : []),
    ]);
  }

  async #workOnTickets(
    concurrency: number,
    { stopping, lettingGo }: LoopSignals,
    isAble: () => Promise<boolean>,
  ): Promise<void> {
    const { worker } = this;
    const { queue } = this.#side;
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
    const { ground, root } = this.#side.derived.tree;
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
    const own: readonly string[] = this.#side.functions.names;
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
