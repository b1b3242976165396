// What a part of the torture is: work that a child repeats, an audit of what came of it, and the
// runs that prove it.
import { setTimeout as sleep } from "node:timers/promises";
import type { Ground } from "../../durable/liveness/ground.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { AuditorReport, WorkerOrders, WorkerReport } from "./report.ts";

/** What happened in a run so far. */
export interface TortureFigures {
  readonly seconds: number;
  readonly appends: number;
  readonly kills: number;
  /** Kills of a child that was in the middle of a change. */
  readonly killsInside: number;
  readonly stops: number;
  /** Sessions that ended because their process was stopped for too long. */
  readonly livesOver: number;
}

/** A run of `npm run test:deep`: it goes on until as much has happened as it is to show. */
export interface LongRun {
  /** What is special about it. Default: nothing. */
  readonly about?: string;
  readonly seed: number;
  readonly seconds: number;
  readonly atLeast: Partial<TortureFigures>;
  /** Old epochs are collected all the time, or the run shows nothing. Default 0. */
  readonly epochsMin?: number;
}

/**
 * The proof that the audit would notice: a known-wrong variant that `WorkerOrders.sabotage` runs.
 */
export interface Sabotage {
  /** What is wrong, as the end of "a variant that …". */
  readonly about: string;
  readonly seed: number;
  /** What the audit must say. Default: a lost or doubled acknowledgement. */
  readonly breaks?: RegExp;
  /** It shows only if processes can be stopped. */
  readonly needsStops?: boolean;
}

export interface TortureTools extends WorkerOrders {
  readonly ground: Ground;
  readonly life: HolderSession;
  /**
   * Whether this start of the child syncs what it writes. A kill takes nothing from the page cache,
   * so both are right, and without syncs there are more races a second.
   */
  readonly sync: boolean;
  readonly report: (report: WorkerReport) => void;
}

export interface TortureTask {
  /** What is promised, as the end of a sentence that begins with the name of the part. */
  readonly promise: string;
  readonly longRuns: readonly LongRun[];
  readonly sabotage?: Sabotage;
  /** The seeds of the short run in `npm test`. Default: one. */
  readonly shortSeeds?: readonly number[];
  /**
   * A child says when it is in the middle of a change, so that kills there can be counted. Default
   * true.
   */
  readonly tellsInside?: boolean;
  /** It is for processes of one machine: the share bed leaves it out. */
  readonly isForOneMachine?: boolean;
  /**
   * A lock file in the directory that no process takes over on a share: a person removes it when
   * its machine is dead.
   */
  readonly lockFileForPerson?: string;
  /**
   * Default 1000. Short where nothing but a lease ends a hold, so that living holders lose it all
   * the time.
   */
  readonly leaseMs?: number;
  /** How many of its calls to the disk dawdle. Default 0.03; less for a task that makes many. */
  readonly dawdling?: number;
  /** Works until it is told to finish, or until its life is over: then it rejects. */
  readonly work: (tools: TortureTools, finish: AbortSignal) => Promise<void>;
  /** What is there, seen by a process that took no part. */
  readonly find: (tools: TortureTools) => Promise<Pick<AuditorReport, "state" | "epochs" | "wrong">>;
}

/**
 * To be called after each round. Sweeps as often as it takes to judge a silent holder: five looks
 * within a lease.
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
