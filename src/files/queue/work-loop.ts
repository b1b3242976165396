// The work of one process for all: its worker, the dispatcher and the keeper of snapshots, until it is stopped.
import { onAbort } from "../../durable/wait/on-abort.ts";
import type { ConsumeOptions } from "../../handoff/consume/consumer.ts";
import type { Delivery } from "../../handoff/consume/delivery.ts";
import type { LoopSignals } from "../../part/loop.ts";
import type { Host } from "../../ports/host.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LockWaits } from "./lock-waits.ts";
import type { NeededFunctions } from "./needed-functions.ts";
import type { TaskQueue } from "./task-queue.ts";
import type { UserFunctions } from "./user-functions.ts";
import type { Worker } from "./worker.ts";

const retryDefault = { attempts: 5, backoffMs: { min: 1_000, max: 60_000 } };
/** A process that lacks a function looks so often whether it is still needed. */
const needsPauseMs = 1_000;
/** The loop that it is part of has its own limit. */
const forEver = { drainMs: 2 ** 31 - 1 };

export interface WorkLoopParts {
  readonly root: string;
  readonly host: Host;
  readonly clock: Clock;
  readonly queue: TaskQueue;
  readonly worker: Worker;
  readonly waits: LockWaits;
  readonly functions: UserFunctions;
  readonly needed: NeededFunctions;
  /** What runs beside the worker. */
  readonly beside: readonly ((signals: LoopSignals) => Promise<void>)[];
  readonly retry?: Pick<ConsumeOptions, "attempts" | "backoffMs"> | undefined;
}

export class WorkLoop {
  readonly #parts: WorkLoopParts;

  constructor(parts: WorkLoopParts) {
    this.#parts = parts;
  }

  /** Rejects with the first failure, when all of it has ended. */
  async run(concurrency: number, { stopping, lettingGo }: LoopSignals): Promise<void> {
    const { needed, functions, beside, queue } = this.#parts;
    await needed.add(functions.names);
    const failed = new AbortController();
    const signals = { stopping: AbortSignal.any([stopping, failed.signal]), lettingGo };
    const running = [this.#consume(concurrency, signals), ...beside.map((run) => run(signals))];
    for (const each of running) each.catch((error: unknown) => failed.abort(error));
    const ends = await Promise.allSettled(running);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    // If what is done cannot be removed now, the next process does it.
    if (!lettingGo.aborted) await queue.collect().catch(() => undefined);
  }

  /** As long as this process has all that the work needs: another one may open the tree with more. */
  async #consume(concurrency: number, { stopping, lettingGo }: LoopSignals): Promise<void> {
    const { waits, needed, functions } = this.#parts;
    while (await this.#hasFunctions(stopping)) {
      const hide = await needed.show(functions.names);
      waits.addWorkers(concurrency);
      try {
        await this.#consumeAll(concurrency, { stopping, lettingGo });
      } finally {
        waits.addWorkers(-concurrency);
        // Otherwise it counts for as long as this process lives.
        await hide().catch(() => undefined);
      }
    }
  }

  async #consumeAll(concurrency: number, { stopping, lettingGo }: LoopSignals): Promise<void> {
    const { queue, worker, retry } = this.#parts;
    const burials = new Set<Promise<void>>();
    const lacking = new AbortController();
    const handle = async (delivery: Delivery): Promise<unknown> => {
      // Asked for each: what it made would be less than what others make.
      if ((await this.#findMissing()).length > 0) lacking.abort();
      if (!lacking.signal.aborted) return await worker.handle(delivery);
      await delivery.postpone({ delayMs: 0 });
      return undefined;
    };
    const consumer = await queue.consume(handle, {
      ...retryDefault,
      ...retry,
      concurrency,
      onDeadLetter: (ticket) => {
        // If it fails, `settled` finds the dead letter.
        const burial = worker.bury(ticket).catch(() => undefined);
        burials.add(burial);
        void burial.then(() => burials.delete(burial));
      },
    });
    const letGo = (): void => void consumer.stop({ drainMs: 0 });
    const stop = (): void => {
      void consumer.stop(forEver);
      // A lock may be held for ever, also by what this process itself has committed: such a ticket goes back.
      worker.whenOnlyWaiting(letGo);
    };
    const leave = (): void => void consumer.stop(forEver);
    const stopListening = [onAbort(stopping, stop), onAbort(lettingGo, letGo), onAbort(lacking.signal, leave)];
    if (stopping.aborted) stop();
    if (lacking.signal.aborted) leave();
    try {
      await consumer.done;
    } finally {
      for (const end of stopListening) end();
      await Promise.all(burials);
    }
  }

  /** Waits until this process has all functions that the work needs. False when it was stopped before. */
  async #hasFunctions(stopping: AbortSignal): Promise<boolean> {
    const { root, clock, host } = this.#parts;
    for (let looks = 0; !stopping.aborted; looks++) {
      const missing = await this.#findMissing();
      if (missing.length === 0) return true;
      if (looks === 0)
        host.warn(
          `${root}: this process leaves indexing to others, which have functions that it was opened without: ${missing.join(", ")}.`,
        );
      await clock.sleep(needsPauseMs, { signal: stopping, background: true }).catch(() => undefined);
    }
    return false;
  }

  async #findMissing(): Promise<string[]> {
    const own: readonly string[] = this.#parts.functions.names;
    return (await this.#parts.needed.list()).filter((name) => !own.includes(name));
  }
}
