// Appending: callers queue, and whoever holds the gate writes for all of them: catch up, judge in order, one write, one sync, publish, answer.
import type { BlockingLock } from "../../common.ts";
import { onAbort } from "../../durable/wait/on-abort.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { StoreHold, StoreLock } from "../../locks/store/store-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Appended } from "../model/event-store.ts";
import type { EventReader } from "../log/read/event-reader.ts";
import { TenureLost, type Publisher, type Tenure } from "../log/publish/publisher.ts";
import { isSameTip } from "../log/format/tip.ts";
import type { LogView } from "../log/read/view.ts";
import { answer, encode, failed, hasAccepted, isAccepted, withIds, type Judged, type JudgedCall } from "./batch.ts";
import type { AppendRequest, Call } from "./call.ts";
import { Judge, type Verdict } from "./judge.ts";
import { nobodyWaits, GateDeadline } from "./gate-deadline.ts";

/** How long the gate is kept while others wait for it: a hand-over costs more than a batch. */
const quantumMs = 20;
const turnsToComeAgain = 16;
const batchCallsMax = 1024;
const batchBytesMax = 4 * 1024 * 1024;
/** A disk that hangs must not eat the memory too. */
const queueMax = 100_000;
/** Whoever loses so often is not unlucky. */
const tenuresLostMax = 100;

export interface AppenderParts {
  readonly ports: Ports;
  readonly lock: StoreLock;
  readonly publisher: Publisher;
  readonly view: LogView;
  readonly reader: EventReader;
}

export class Appender {
  readonly #parts: AppenderParts;
  /** In the order in which they are judged. A set, because any of them may be called off. */
  #queue = new Set<Call>();
  /** What has been decided and is not told yet. */
  readonly #answers: JudgedCall[] = [];
  #flushing: Promise<void> | undefined;
  #tenuresLost = 0;
  #hasGate = false;
  /** The last batch was not published. */
  #hasFailed = false;
  /** While the gate is waited for. */
  #patience: GateDeadline | undefined;

  constructor(parts: AppenderParts) {
    this.#parts = parts;
  }

  /** Others wait for us: what can wait should. */
  get hasGate(): boolean {
    return this.#hasGate;
  }

  /** Resolves when it is durable. Once its batch is formed it is no longer cancelled: then the outcome is told. */
  append(request: AppendRequest): Promise<Appended> {
    request.signal?.throwIfAborted();
    if (this.#queue.size >= queueMax)
      throw holdfastError("TOO_LARGE", `${queueMax} appends are waiting already.`, {
        limit: queueMax,
        actual: this.#queue.size + 1,
      });
    const deadlineMs = this.#parts.ports.clock.monotonicMs() + request.timeoutMs;
    let stopListening: (() => void) | undefined;
    const answered = new Promise<Appended>((resolve, reject) => {
      const { content, heads, payload, condition, retag, timeoutMs, signal } = request;
      // One by one: copying with a spread was a fifteenth of the cost of an append.
      const call: Call = { content, heads, payload, condition, retag, timeoutMs, signal, deadlineMs, resolve, reject };
      this.#queue.add(call);
      this.#patience?.expect(deadlineMs);
      if (signal !== undefined)
        stopListening = onAbort(signal, () => {
          if (this.#queue.delete(call)) reject(signal.reason);
        });
      this.#flushing ??= this.#flush();
    });
    return stopListening === undefined ? answered : answered.finally(stopListening);
  }

  /** Resolves when all that was queued is answered. */
  async drained(): Promise<void> {
    while (this.#flushing !== undefined) await this.#flushing;
  }

  async #flush(): Promise<void> {
    // Callers of this very moment join the first batch.
    await Promise.resolve();
    while (this.#queue.size > 0) {
      try {
        const hold = await this.#enter();
        if (hold !== undefined) await this.#workUnder(hold);
      } catch (error) {
        // Nothing of these was written; who comes later tries again.
        const calls = [...this.#queue];
        this.#queue.clear();
        for (const call of calls) call.reject(withIds(error, call));
      }
    }
    this.#flushing = undefined;
  }

  /** The gate; undefined when nobody wants it any more. Each caller waits only as long as he said. */
  async #enter(): Promise<StoreHold | undefined> {
    const { lock, ports } = this.#parts;
    // Who has no time to wait has one try all the same.
    const hasHurry = [...this.#queue].some(({ timeoutMs }) => timeoutMs <= 0);
    const atOnce = hasHurry ? await lock.tryAcquire() : undefined;
    if (atOnce !== undefined) return atOnce;
    const patience = new GateDeadline(ports.clock, () => this.#dismissLate(patience));
    this.#patience = patience;
    for (const { deadlineMs } of this.#queue) patience.expect(deadlineMs);
    try {
      return await lock.acquire({ timeoutMs: Infinity, signal: patience.signal });
    } catch (error) {
      if (error === nobodyWaits) return undefined;
      throw error;
    } finally {
      patience.end();
      this.#patience = undefined;
    }
  }

  #dismissLate(patience: GateDeadline): number {
    const nowMs = this.#parts.ports.clock.monotonicMs();
    let next = Infinity;
    const late: Call[] = [];
    for (const call of this.#queue) {
      if (call.deadlineMs > nowMs) next = Math.min(next, call.deadlineMs);
      else if (this.#queue.delete(call)) late.push(call);
    }
    if (late.length > 0) void this.#rejectLate(late);
    if (this.#queue.size === 0) patience.giveUp();
    return next;
  }

  async #rejectLate(late: readonly Call[]): Promise<void> {
    const { lock } = this.#parts;
    // Not between machines: a server that does not answer would make those wait who wait for no longer.
    const holder = lock.gate === "os" ? await lock.findHolder() : undefined;
    for (const call of late) call.reject(this.#timedOut(call, holder));
  }

  /**
   * As long as the gate is kept, one call stays without its answer, and it is answered when the gate is free. A process
   * whose only caller goes on to compute for seconds then keeps no other process out. A process with several callers keeps
   * the gate for its quantum all the same: those that were answered come again, and a hand-over for each batch would cost
   * a third of what such a crowd gets done.
   */
  async #workUnder(hold: StoreHold): Promise<void> {
    this.#hasGate = true;
    const { clock } = this.#parts.ports;
    const handOverMs = clock.monotonicMs() + quantumMs;
    const mayGoOn = async (): Promise<boolean> => clock.monotonicMs() < handOverMs || !(await hold.isContended());
    let tenure: Tenure | undefined;
    try {
      do {
        tenure = await this.#writeBatch(hold, tenure, this.#nextBatch());
        if (tenure?.isFull) {
          await tenure.close();
          tenure = undefined;
        }
        this.#giveAnswers(this.#answers.length - 1);
        if (this.#queue.size === 0) await this.#letComeAgain();
        // Another may be inside: come in again by the lock file that is there now.
        if (this.#hasFailed && hold.signal.aborted) break;
      } while (this.#queue.size > 0 && (await mayGoOn()));
    } finally {
      try {
        // In this order: no call to the disk is under way when the next one comes in.
        await tenure?.close();
        this.#hasGate = false;
        await hold.release();
      } finally {
        this.#giveAnswers(this.#answers.length);
      }
    }
  }

  #giveAnswers(count: number): void {
    this.#answers.splice(0, Math.max(0, count)).forEach(answer);
  }

  /** A caller that was just answered may have its next call ready a few turns of the queue of promises from now. */
  async #letComeAgain(): Promise<void> {
    for (let turn = 0; turn < turnsToComeAgain; turn++) await Promise.resolve();
  }

  #nextBatch(): Call[] {
    let bytes = 0;
    const batch: Call[] = [];
    for (const call of this.#queue) {
      bytes += call.content.length;
      if (batch.length >= batchCallsMax || (batch.length > 0 && bytes > batchBytesMax)) break;
      batch.push(call);
      this.#queue.delete(call);
      // Whoever comes after it is judged by the new tags, so they have to be there.
      if (call.retag !== undefined) break;
    }
    return batch;
  }

  /** Answers all of `batch`, or puts back into the queue what has to be judged again. The tenure to go on with, if any. */
  async #writeBatch(hold: StoreHold, tenure: Tenure | undefined, batch: readonly Call[]): Promise<Tenure | undefined> {
    const { publisher, view } = this.#parts;
    let current = tenure;
    this.#hasFailed = false;
    try {
      // Also of this very tenure: what began a segment was not taken over without reading it.
      await view.advance(current === undefined ? await publisher.tip() : current.published);
      let judged = await this.#judge(batch);
      if (hasAccepted(judged)) {
        current ??= await publisher.begin(hold);
        // A dead writer has left something, or another was faster than our look. Not by where the view is now: a reader of this process may have moved it since.
        if (!isSameTip(judged.at, current.published)) {
          await view.advance(current.published);
          judged = await this.#judge(batch);
        }
      }
      if (current === undefined || !hasAccepted(judged)) this.#answers.push(...judged.calls);
      else if (!(await this.#publish(current, judged))) return undefined;
      return current;
    } catch (error) {
      await current?.close();
      if (this.#mayEnterAgain(hold, error)) {
        this.#queue = new Set([...batch, ...this.#queue]);
        return undefined;
      }
      // Whatever it was, nothing of this batch was written.
      for (const call of batch) this.#answers.push(failed(call, withIds(error, call)));
      return undefined;
    }
  }

  /** The lock file was deleted before anything was written. */
  #mayEnterAgain(hold: StoreHold, error: unknown): boolean {
    if (this.#parts.lock.gate !== "os" || !isHoldfastError(error, "LOCK_LOST") || !hold.signal.aborted) return false;
    this.#hasFailed = ++this.#tenuresLost < tenuresLostMax;
    return this.#hasFailed;
  }

  async #judge(batch: readonly Call[]): Promise<Judged> {
    const { view, reader, ports } = this.#parts;
    const time = new Date(ports.clock.wallMs()).toISOString();
    const at = view.tip;
    const judge = new Judge(view, reader, time);
    const calls: JudgedCall[] = [];
    for (const call of batch)
      try {
        calls.push({ call, verdict: judge.tryJudge(call) ?? (await judge.judge(call)) });
      } catch (error) {
        // What cannot be judged concerns nobody but its caller.
        calls.push(failed(call, error));
      }
    return { at, time, calls };
  }

  /** Writes what was accepted, and answers. False when the tenure is over. */
  async #publish(tenure: Tenure, { time, calls }: Judged): Promise<boolean> {
    const accepted = calls.filter(isAccepted).map(({ call }) => call);
    const from = tenure.end;
    const { bytes, lines, next } = encode(from, accepted, time);
    const isLast = this.#queue.size === 0;
    try {
      await tenure.publish(bytes, next, isLast, () => this.#queue.size === 0);
    } catch (error) {
      this.#hasFailed = true;
      await tenure.close();
      this.#answerAfter(error, calls);
      return false;
    }
    this.#tenuresLost = 0;
    for (const { retag } of accepted) if (retag !== undefined) this.#parts.view.retags.add(retag);
    this.#parts.view.addOwn(from, next, lines);
    this.#answers.push(...calls);
    // Whoever has come meanwhile needs another: this one has said that it is done, and somebody else may write there now.
    if (isLast) await tenure.close();
    return !isLast;
  }

  /** The batch failed. Whoever was answered by what it would have written is judged again. */
  #answerAfter(error: unknown, calls: readonly JudgedCall[]): void {
    const mayRepeat = error instanceof TenureLost && ++this.#tenuresLost < tenuresLostMax;
    const again: Call[] = [];
    for (const judged of calls) {
      const { call, verdict } = judged;
      if (verdict.kind === "accepted") {
        if (mayRepeat) again.push(call);
        else
          this.#answers.push(
            failed(call, error instanceof TenureLost ? this.#alwaysLost(error) : withIds(error, call)),
          );
      } else if (this.restsOnBatch(verdict)) again.push(call);
      else this.#answers.push(judged);
    }
    this.#queue = new Set([...again, ...this.#queue]);
  }

  protected restsOnBatch({ needsBatch }: Exclude<Verdict, { kind: "accepted" }>): boolean {
    return needsBatch;
  }

  #alwaysLost(cause: unknown): Error {
    const { path } = this.#parts.lock;
    const message = `${path}: another writer took over ${tenuresLostMax} times in a row. Nothing was written.`;
    return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true }, cause);
  }

  #timedOut({ timeoutMs }: Call, blocking: BlockingLock | undefined): Error {
    const { path } = this.#parts.lock;
    const by =
      blocking === undefined
        ? "another writer"
        : `process ${blocking.holder.pid} on ${blocking.holder.host}, since ${blocking.since.toISOString()}`;
    const message = `${path} is held by ${by}; waited ${timeoutMs} ms (options lockTimeoutMs of the store, timeoutMs of the call). Nothing was written.`;
    const blockedBy = blocking === undefined ? [] : [blocking];
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs: timeoutMs, blockedBy });
  }
}
