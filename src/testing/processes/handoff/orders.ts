// What the parent of a hand-off crew tells its children, and what they tell it.
import type { DocumentPlan } from "./documents.ts";

/** The one argument of a child, as JSON. */
export interface HandoffOrders {
  readonly role: "producer" | "worker";
  readonly name: string;
  /** Of the role, from 0. */
  readonly number: number;
  /** The two boxes are in here, and what the children remember for their next start. */
  readonly directory: string;
  readonly leaseMs: number;
  readonly attempts: number;
  readonly plan: DocumentPlan;
}

/** What a child is to suffer: each is taken by one start of a child of that role, in order. */
export interface CrashOrder {
  readonly point: string;
  /** At which time that it comes there, from 1. */
  readonly time: number;
  readonly how: "kill" | "stop";
}

export type HandoffReport =
  /** Acknowledged to a producer. */
  | { readonly kind: "published"; readonly key: string; readonly duplicate: boolean }
  /** A producer has published all of its documents. */
  | { readonly kind: "finished" }
  /** Acknowledged to a worker: what it committed. */
  | { readonly kind: "committed"; readonly key: string; readonly result: Result }
  /** It has come to a crash point, and ends or waits to be stopped right after it has said so. */
  | { readonly kind: "crash"; readonly order: CrashOrder; readonly point: string }
  /** It opens a document that kills it. */
  | { readonly kind: "poisoned"; readonly key: string }
  | { readonly kind: "wrong"; readonly what: string };

/** What a worker commits: which process did it, and at which attempt. */
export interface Result {
  readonly by: string;
  readonly pid: number;
  readonly attempt: number;
}
