// What the parent tells the processes of a torture, and what they tell it.
import type { Counter } from "../scenarios/durable/counter.ts";
import type { ConfirmedVisit } from "./visit-ledger.ts";

/** The one argument of a worker, as JSON. */
export interface WorkerOrders {
  /** One of those in parts.ts. */
  readonly part: string;
  readonly role: "worker" | "auditor";
  readonly name: string;
  readonly directory: string;
  readonly leaseMs: number;
  readonly seed: number;
  /**
   * How long it rests after each round. Default 0: then all processes wait for the machine's
   * processors.
   */
  readonly restMs?: number;
  /** Run the known-wrong variant: the audit must find it out. */
  readonly sabotage: boolean;
}

export type WorkerReport =
  /** Acknowledged: append `count` of this child, which won `number` among all where there are numbers. */
  | {
      readonly kind: "won";
      readonly count: number;
      readonly number?: number;
      /** Which of several counters. */
      readonly of?: string;
      /** What all children together win once. */
      readonly key?: string;
    }
  /** It is in the middle of a change that no other process may see half done. */
  | { readonly kind: "entered" }
  | { readonly kind: "left" }
  /** It has checked and not yet written: the worst moment to be stopped. */
  | { readonly kind: "vulnerable" }
  /** It was inside and is sure that it held all the time. */
  | ({ readonly kind: "visited" } & ConfirmedVisit)
  /** It was told that the outcome of its last append is unknown. */
  | { readonly kind: "unknown" }
  /**
   * Its life ended while it slept; whether its last append happened is open. It opened the ground
   * again.
   */
  | { readonly kind: "lifeOver"; readonly why: string }
  | AuditorReport;

/** What a fresh process finds when all is over. */
export interface AuditorReport {
  readonly kind: "found";
  readonly state: Counter;
  readonly epochs: number;
  /** Temp directories of holders that are dead. */
  readonly unswept: readonly string[];
  /** What is wrong with what it found, whatever was acknowledged. */
  readonly wrong?: readonly string[];
}
