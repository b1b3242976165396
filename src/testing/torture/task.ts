// What a part of the torture is: work that a child does over and over, and a way to find out what came of it.
import { setTimeout as sleep } from "node:timers/promises";
import type { Ground } from "../../durable/liveness/ground.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { AuditorReport, WorkerOrders, WorkerReport } from "./report.ts";

export interface TortureTools extends WorkerOrders {
  readonly ground: Ground;
  readonly life: HolderSession;
  /** Whether this start of the child syncs what it writes. A kill takes nothing from the page cache, so both are right, and without there are more races a second. */
  readonly sync: boolean;
  readonly report: (report: WorkerReport) => void;
}

export interface TortureTask {
  /** Default 1000. Short where nothing but a lease ends a hold, so that living holders lose it all the time. */
  readonly leaseMs?: number;
  /** How many of its calls to the disk dawdle. Default 0.03; less for a task that makes many. */
  readonly dawdling?: number;
  /** Works until it is told to finish, or until its life is over: then it rejects. */
  readonly work: (tools: TortureTools, finish: AbortSignal) => Promise<void>;
  /** What is there, seen by a process that took no part. */
  readonly find: (tools: TortureTools) => Promise<Pick<AuditorReport, "state" | "epochs" | "wrong">>;
}

/** To be called after each round. Sweeps as often as it takes to judge a silent holder: five looks within a lease. */
export function sweeper({ ground, leaseMs, restMs = 0 }: TortureTools): () => Promise<void> {
  let nextMs = 0;
  return async () => {
    if (restMs > 0) await sleep(restMs);
    if (performance.now() < nextMs) return;
    nextMs = performance.now() + leaseMs / 5;
    await ground.sweep();
  };
}
