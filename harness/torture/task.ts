// The definition of a torture task: the work that a child repeats, the audit of its results, and the runs that prove
// it.
import { setTimeout as sleep } from "node:timers/promises";
import type { Ground } from "../../src/durable/liveness/ground.ts";
import type { HolderSession } from "../../src/durable/liveness/holder-session.ts";
import type { AuditorReport, WorkerOrders, WorkerReport } from "./report.ts";

/** The figures of a run so far. */
export interface TortureFigures {
  readonly seconds: number;
  readonly appends: number;
  readonly kills: number;
  /** The number of kills that hit a child in the middle of a change. */
  readonly killsInside: number;
  readonly stops: number;
  /** The number of sessions that ended because their process was stopped for too long. */
  readonly livesOver: number;
}

/** A run of `npm run test:deep`. It continues until it has reached all the figures in `atLeast`. */
export interface LongRun {
  /** The special feature of this run. Default: none. */
  readonly about?: string;
  readonly seed: number;
  readonly seconds: number;
  readonly atLeast: Partial<TortureFigures>;
  /** The number of epochs that the run must reach: only then were old ones collected. Default 0. */
  readonly epochsMin?: number;
}

/** The proof that the audit finds errors: a known-wrong variant that `WorkerOrders.sabotage` runs. */
export interface Sabotage {
  /** The error, as the end of "a variant that …". */
  readonly about: string;
  readonly seed: number;
  /** The text that the audit must report. Default: a lost or doubled acknowledgement. */
  readonly breaks?: RegExp;
  /** True if the error shows only when processes can be stopped. */
  readonly needsStops?: boolean;
}

export interface TortureTools extends WorkerOrders {
  readonly ground: Ground;
  readonly life: HolderSession;
  /**
   * True if this start of the child syncs its writes. A kill removes nothing from the page cache, so both ways are
   * safe, and without syncs there are more races a second.
   */
  readonly sync: boolean;
  readonly report: (report: WorkerReport) => void;
}

export interface TortureTask {
  /** The promise, as the end of a sentence that begins with the name of the part. */
  readonly promise: string;
  readonly longRuns: readonly LongRun[];
  readonly sabotage?: Sabotage;
  /** The seeds of the short run in `npm test`. Default: one. */
  readonly shortSeeds?: readonly number[];
  /** True if a child reports when it is in the middle of a change, so that kills there can be counted. Default true. */
  readonly tellsInside?: boolean;
  /** True if the task needs processes of one machine: the share bed leaves it out. */
  readonly isForOneMachine?: boolean;
  /**
   * A lock file in the directory that no process takes over on a share. A person removes it when its machine is dead.
   */
  readonly lockFileForPerson?: string;
  /** Default 1000. Short where only a lease ends a hold, so that living holders constantly lose it. */
  readonly leaseMs?: number;
  /** The fraction of disk calls that are delayed. Default 0.03; less for a task that makes many calls. */
  readonly dawdling?: number;
  /** Works until it is told to finish. Rejects if its session ends. */
  readonly work: (tools: TortureTools, finish: AbortSignal) => Promise<void>;
  /** Returns the state, as seen by a process that took no part. */
  readonly find: (tools: TortureTools) => Promise<Pick<AuditorReport, "state" | "epochs" | "wrong">>;
}

/**
 * Returns a function to call after each round. It sweeps often enough to judge a silent holder: five times within a
 * lease.
 */
export function sweeper({ ground, leaseMs, restMs = 0 }: TortureTools): () => Promise<void> {
  let nextMs = 0;
  return async () => {
    if (restMs > 0) await sleep(restMs);
    if (performance.now() < nextMs) return;
    nextMs = performance.now() + leaseMs / 5;
    await ground.sweep();
  };
}
