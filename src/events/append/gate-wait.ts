// Waits for the gate on behalf of all queued calls. Each call waits only as long as its own timeout, including one
// that is queued during the wait.
import type { BlockingLock } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { StoreHold, StoreLock } from "../../locks/store/store-lock.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AppendCall, CallQueue } from "./call-queue.ts";

/** The reason with which the wait is aborted once the queue is empty. */
const queueIsEmpty = "no call waits for the gate any more";

export class GateWait {
  readonly #clock: Clock;
  readonly #lock: StoreLock;
  readonly #queue: CallQueue;
  /** Set while this process waits for the gate. */
  #abort: AbortController | undefined;
  #deadlineMs = Infinity;
  #cancelAlarm: (() => void) | undefined;

  constructor(clock: Clock, lock: StoreLock, queue: CallQueue) {
    this.#clock = clock;
    this.#lock = lock;
    this.#queue = queue;
  }

  /** Returns undefined if all calls were cancelled or timed out meanwhile. */
  async enter(): Promise<StoreHold | undefined> {
    // A call with a timeout of 0 gets one try.
    const atOnce = this.#queue.hasUrgentCall ? await this.#lock.tryAcquire() : undefined;
    if (atOnce !== undefined) return atOnce;
    const abort = new AbortController();
    this.#abort = abort;
    this.expect(this.#queue.deadlineMs);
    try {
      return await this.#lock.acquire({ timeoutMs: Infinity, signal: abort.signal });
    } catch (error) {
      if (error === queueIsEmpty) return undefined;
      throw error;
    } finally {
      this.#abort = undefined;
      this.#cancelAlarm?.();
      this.#cancelAlarm = undefined;
      this.#deadlineMs = Infinity;
    }
  }

  /** Extends the wait to this deadline. */
  expect(deadlineMs: number): void {
    if (this.#abort === undefined || deadlineMs >= this.#deadlineMs) return;
    this.#deadlineMs = deadlineMs;
    this.#cancelAlarm?.();
    const leftMs = Math.max(0, deadlineMs - this.#clock.monotonicMs());
    this.#cancelAlarm = this.#clock.alarm(leftMs, () => {
      this.#cancelAlarm = undefined;
      this.#deadlineMs = Infinity;
      this.#dismissLate();
      this.expect(this.#queue.deadlineMs);
    });
  }

  #dismissLate(): void {
    const late = this.#queue.takeLate(this.#clock.monotonicMs());
    if (late.length > 0) void this.#rejectAll(late);
    if (this.#queue.size === 0) this.#abort?.abort(queueIsEmpty);
  }

  async #rejectAll(late: readonly AppendCall[]): Promise<void> {
    // Not on a share: a server that does not respond would delay callers that have timed out.
    const holder = this.#lock.gate === "os" ? await this.#lock.findHolder() : undefined;
    for (const call of late) call.reject(this.#timedOut(call, holder));
  }

  #timedOut({ timeoutMs }: AppendCall, blocking: BlockingLock | undefined): Error {
    const { path } = this.#lock;
    const by =
      blocking === undefined
        ? "another writer"
        : `process ${blocking.holder.pid} on ${blocking.holder.host}, since ${blocking.since.toISOString()}`;
    const message = `${path} is held by ${by}; waited ${timeoutMs} ms (options lockTimeoutMs of the store, timeoutMs of the call). Nothing was written.`;
    const blockedBy = blocking === undefined ? [] : [blocking];
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs: timeoutMs, blockedBy });
  }
}
