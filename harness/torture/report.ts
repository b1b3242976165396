// The messages between the parent and the processes of a torture.
import type { Counter } from "../scenarios/durable/counter.ts";
import type { ConfirmedVisit } from "./visit-ledger.ts";

/** The one argument of a worker, as JSON. */
export interface WorkerOrders {
  /** The name of a part in parts.ts. */
  readonly part: string;
  readonly role: "worker" | "auditor";
  readonly name: string;
  readonly directory: string;
  readonly leaseMs: number;
  readonly seed: number;
  /** The pause after each round. Default 0: then all processes compete for the machine's processors. */
  readonly restMs?: number;
  /** Runs the known-wrong variant, which the audit must find. */
  readonly sabotage: boolean;
}

export type WorkerReport =
  /** Append `count` of this child was acknowledged. If appends have numbers, it won `number`. */
  | {
      readonly kind: "won";
      readonly count: number;
      readonly number?: number;
      /** The counter that was increased, if there are several. */
      readonly of?: string;
      /** A key that only one append of all children may win. */
      readonly key?: string;
    }
  /** The child is in the middle of a change that no other process may see half done. */
  | { readonly kind: "entered" }
  | { readonly kind: "left" }
  /** The child has checked but not yet written: the worst moment to be stopped. */
  | { readonly kind: "vulnerable" }
  /** The child was inside, and has confirmed that it held the lock all the time. */
  | ({ readonly kind: "visited" } & ConfirmedVisit)
  /** The outcome of the child's last append is unknown. */
  | { readonly kind: "unknown" }
  /**
   * The child's session ended while it slept, and the outcome of its last append is unknown. It opened the ground
   * again.
   */
  | { readonly kind: "lifeOver"; readonly why: string }
  | AuditorReport;

/** The findings of a fresh process after the run. */
export interface AuditorReport {
  readonly kind: "found";
  readonly state: Counter;
  readonly epochs: number;
  /** The temp directories of dead holders. */
  readonly unswept: readonly string[];
  /** Errors in the state itself, whatever was acknowledged. */
  readonly wrong?: readonly string[];
}
