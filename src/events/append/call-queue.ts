// Append calls that wait for their batch, in the order in which they are judged.
import type { Retag } from "../log/format/line.ts";
import type { EventHead } from "../model/stored-event.ts";
import type { Appended } from "../model/event-store.ts";
import type { Items } from "../model/query.ts";

const batchCallsMax = 1024;
const batchBytesMax = 4 * 1024 * 1024;

export interface AppendRequest {
  /** The part of the line that does not depend on its position. */
  readonly content: string;
  readonly heads: readonly EventHead[];
  /** The JSON of each body. Encoded at the call, because the caller may change its objects later. */
  readonly payload: readonly string[];
  readonly condition?: { readonly items: Items; readonly after: number } | undefined;
  readonly retag?: Retag | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface AppendCall extends AppendRequest {
  /** When the call stops waiting for the gate, by the monotonic clock. */
  readonly deadlineMs: number;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

export class CallQueue {
  /** A set, because any call may be cancelled. */
  #calls = new Set<AppendCall>();

  get size(): number {
    return this.#calls.size;
  }

  /** True if a queued call has a timeout of 0. */
  get hasUrgentCall(): boolean {
    for (const { timeoutMs } of this.#calls) if (timeoutMs <= 0) return true;
    return false;
  }

  /** The earliest deadline of all calls; Infinity if there is none. */
  get deadlineMs(): number {
    let first = Infinity;
    for (const { deadlineMs } of this.#calls) first = Math.min(first, deadlineMs);
    return first;
  }

  add(call: AppendCall): void {
    this.#calls.add(call);
  }

  /** Returns false for a call that is already in a batch or answered. */
  cancel(call: AppendCall): boolean {
    return this.#calls.delete(call);
  }

  takeBatch(): AppendCall[] {
    let bytes = 0;
    const batch: AppendCall[] = [];
    for (const call of this.#calls) {
      bytes += call.content.length;
      if (batch.length >= batchCallsMax || (batch.length > 0 && bytes > batchBytesMax)) break;
      batch.push(call);
      this.#calls.delete(call);
      // A retag ends its batch: later calls are judged with the new tags, so these must be published first.
      if (call.retag !== undefined) break;
    }
    return batch;
  }

  takeLate(nowMs: number): AppendCall[] {
    const late: AppendCall[] = [];
    for (const call of this.#calls) if (call.deadlineMs <= nowMs && this.#calls.delete(call)) late.push(call);
    return late;
  }

  takeAll(): AppendCall[] {
    const calls = [...this.#calls];
    this.#calls.clear();
    return calls;
  }

  /** Puts calls of a batch back at the front of the queue. */
  putBack(calls: readonly AppendCall[]): void {
    this.#calls = new Set([...calls, ...this.#calls]);
  }
}
