// Append calls that wait for their batch, in the order in which they are judged.
import type { Retag } from "../log/format/line.ts";
import type { EventHead } from "../model/stored-event.ts";
import type { Appended } from "../model/event-store.ts";
import type { Items } from "../model/query.ts";

const batchCallsMax = 1024;
const batchBytesMax = 4 * 1024 * 1024;

export interface AppendRequest {
  /** The part of its line that does not depend on its position. */
  readonly content: string;
  readonly heads: readonly EventHead[];
  /**
   * The JSON of each body: the caller may change its objects, and what is judged is what will be
   * read.
   */
  readonly payload: readonly string[];
  readonly condition?: { readonly items: Items; readonly after: number } | undefined;
  readonly retag?: Retag | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Call extends AppendRequest {
  /** By the monotonic clock: when it stops waiting for the gate. */
  readonly deadlineMs: number;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

export class CallQueue {
  /** A set, because any call may be cancelled. */
  #calls = new Set<Call>();

  get size(): number {
    return this.#calls.size;
  }

  /** Whether a call has no time to wait for the gate. */
  get hasHurry(): boolean {
    for (const { timeoutMs } of this.#calls) if (timeoutMs <= 0) return true;
    return false;
  }

  /** The first deadline; Infinity for none. */
  get deadlineMs(): number {
    let first = Infinity;
    for (const { deadlineMs } of this.#calls) first = Math.min(first, deadlineMs);
    return first;
  }

  add(call: Call): void {
    this.#calls.add(call);
  }

  /** False for a call that is in a batch already, or answered. */
  cancel(call: Call): boolean {
    return this.#calls.delete(call);
  }

  takeBatch(): Call[] {
    let bytes = 0;
    const batch: Call[] = [];
    for (const call of this.#calls) {
      bytes += call.content.length;
      if (batch.length >= batchCallsMax || (batch.length > 0 && bytes > batchBytesMax)) break;
      batch.push(call);
      this.#calls.delete(call);
      // Later calls are judged by the new tags, so these are published first.
      if (call.retag !== undefined) break;
    }
    return batch;
  }

  takeLate(nowMs: number): Call[] {
    const late: Call[] = [];
    for (const call of this.#calls) if (call.deadlineMs <= nowMs && this.#calls.delete(call)) late.push(call);
    return late;
  }

  takeAll(): Call[] {
    const calls = [...this.#calls];
    this.#calls.clear();
    return calls;
  }

  /** Puts calls of a batch back, before all others. */
  putBack(calls: readonly Call[]): void {
    this.#calls = new Set([...calls, ...this.#calls]);
  }
}
