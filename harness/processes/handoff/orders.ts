// The messages between the parent of a hand-off crew and its children.
import type { DocumentPlan } from "./documents.ts";

/** The one argument of a child, as JSON. */
export interface HandoffOrders {
  readonly role: "producer" | "worker";
  readonly name: string;
  /** The number within the role, from 0. */
  readonly number: number;
  /** The directory of the two boxes, and of the state that the children keep for their next start. */
  readonly directory: string;
  readonly leaseMs: number;
  readonly attempts: number;
  readonly plan: DocumentPlan;
}

/** An order to crash. Each order is taken by one start of a child of that role, in sequence. */
export interface CrashOrder {
  readonly point: string;
  /** Crashes when the child reaches the point for this time, counted from 1. */
  readonly time: number;
  readonly how: "kill" | "stop";
}

export type HandoffReport =
  /** A producer got an acknowledgement. */
  | { readonly kind: "published"; readonly key: string; readonly duplicate: boolean }
  /** A producer has published all of its documents. */
  | { readonly kind: "finished" }
  /** A worker got an acknowledgement for this result. */
  | { readonly kind: "committed"; readonly key: string; readonly result: Result }
  /** The child has reached a crash point. It ends, or waits to be stopped, right after this report. */
  | { readonly kind: "crash"; readonly order: CrashOrder; readonly point: string }
  /** The child opens a document that kills it. */
  | { readonly kind: "poisoned"; readonly key: string }
  | { readonly kind: "wrong"; readonly what: string };

/** The committed result of a worker: which process committed it, and at which attempt. */
export interface Result {
  readonly by: string;
  readonly pid: number;
  readonly attempt: number;
}
