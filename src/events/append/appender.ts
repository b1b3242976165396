// An append, from the call to its answer. Calls queue, and the holder of the gate writes for all:
//
//   queue     the call waits for its batch                                   call-queue.ts
//   gate      one process writes at a time; a call waits for its timeout     gate-wait.ts
//   catch up  the view reads up to the published tip                         log/read/view.ts
//   judge     every call of the batch, in order: known ids, then condition   judge.ts, pending.ts
//   begin     a write session, if a call was accepted; if the tip has
//             moved, all calls are judged again                              log/publish/
//   write     the lines of all accepted calls: one write, one sync           log/publish/
//   publish   the new tip: now the lines count                               log/publish/
//   answer    all calls; the last one of a turn when the gate is free        batch.ts
//
// Refused calls reach the disk at no point. A refusal that rests on a call of the same batch is
// told only after the publish, and judged again if the batch fails.
import { onAbort } from "../../durable/wait/on-abort.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { StoreHold, StoreLock } from "../../locks/store/store-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { isSameTip } from "../log/format/tip.ts";
import { WriteSessionLost, type Publisher, type WriteSession } from "../log/publish/publisher.ts";
import type { EventReader } from "../log/read/event-reader.ts";
import type { LogView } from "../log/read/view.ts";
import type { Appended } from "../model/event-store.ts";
import { answer, encode, failed, hasAccepted, isAccepted, withIds, type Judged, type JudgedCall } from "./batch.ts";
import { CallQueue, type AppendRequest, type Call } from "./call-queue.ts";
import { GateWait } from "./gate-wait.ts";
import { Judge, type Verdict } from "./judge.ts";

/**
 * How long the gate is kept while other processes wait for it: a hand-over costs more than a batch.
 */
const quantumMs = 20;
const microtasksToComeAgain = 16;
/** A disk that hangs must not also fill the memory. */
const queueMax = 100_000;
/** A writer that loses so often has another problem than bad luck. */
const sessionsLostMax = 100;

export interface AppenderParts {
  readonly ports: Ports;
  readonly lock: StoreLock;
  readonly publisher: Publisher;
  readonly view: LogView;
  readonly reader: EventReader;
}

export class Appender {
  readonly #parts: AppenderParts;
  readonly #queue = new CallQueue();
  readonly #gateWait: GateWait;
  /** Decided, and not told yet. */
  readonly #answers: JudgedCall[] = [];
  #flushing: Promise<void> | undefined;
  #sessionsLost = 0;
  #hasGate = false;
  /** The last batch was not published. */
  #hasFailed = false;

  constructor(parts: AppenderParts) {
    this.#parts = parts;
    this.#gateWait = new GateWait(parts.ports.clock, parts.lock, this.#queue);
  }

  /** Other processes wait for this one: background work should pause. */
  get hasGate(): boolean {
    return this.#hasGate;
  }

  /**
   * Resolves when the events are durable. Once its batch is formed, a call cannot be cancelled any
   * more.
   */
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
      // Field by field: a spread was a fifteenth of the cost of an append.
      const call: Call = { content, heads, payload, condition, retag, timeoutMs, signal, deadlineMs, resolve, reject };
      this.#queue.add(call);
      this.#gateWait.expect(deadlineMs);
      if (signal !== undefined)
        stopListening = onAbort(signal, () => {
          if (this.#queue.cancel(call)) reject(signal.reason);
        });
      this.#flushing ??= this.#flush();
    });
    return stopListening === undefined ? answered : answered.finally(stopListening);
  }

  /** Resolves when all queued calls are answered. */
  async drained(): Promise<void> {
    while (this.#flushing !== undefined) await this.#flushing;
  }

  async #flush(): Promise<void> {
    // Calls made in this same turn of the event loop join the first batch.
    await Promise.resolve();
    while (this.#queue.size > 0) {
      try {
        const hold = await this.#gateWait.enter();
        if (hold !== undefined) await this.#workUnder(hold);
      } catch (error) {
        // None of these calls was written. Later calls try again.
        for (const call of this.#queue.takeAll()) call.reject(withIds(error, call));
      }
    }
    this.#flushing = undefined;
  }

  /**
   * A turn with the gate: batch after batch, until the queue is empty or another process has waited
   * for a quantum.
   *
   * One call stays unanswered until the gate is free or other calls are queued: if the only caller of
   * a process computes for seconds after its answer, or after the last of many, it keeps no other
   * process out. A process with several callers keeps the gate for its quantum: the callers that were
   * answered come again, and a hand-over for each batch would cost a third of the throughput.
   */
  async #workUnder(hold: StoreHold): Promise<void> {
    this.#hasGate = true;
    const { clock } = this.#parts.ports;
    const handOverMs = clock.monotonicMs() + quantumMs;
    const mayGoOn = async (): Promise<boolean> => clock.monotonicMs() < handOverMs || !(await hold.isContended());
    let session: WriteSession | undefined;
    try {
      for (;;) {
        session = await this.#writeBatch(hold, session, this.#queue.takeBatch());
        if (session?.isFull) {
          await session.close();
          session = undefined;
        }
        this.#giveAnswers(this.#answers.length - 1);
        if (this.#queue.size === 0) await this.#letComeAgain();
        // The lock file was deleted, and another writer may be inside: enter again by the new lock
        // file.
        if (this.#hasFailed && hold.signal.aborted) break;
        if (this.#queue.size === 0 || !(await mayGoOn())) break;
        // Other calls are queued, so the answer that was kept back need not wait for the gate: its
        // caller may join the next batch.
        this.#giveAnswers(this.#answers.length);
        await this.#letComeAgain();
      }
    } finally {
      try {
        // In this order: no disk call is under way when the next writer enters.
        await session?.close();
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

  /** A caller that was just answered may queue its next call a few microtasks from now. */
  async #letComeAgain(): Promise<void> {
    for (let turn = 0; turn < microtasksToComeAgain; turn++) await Promise.resolve();
  }

  /**
   * Answers all of `batch`, or puts calls back that are to be judged again. Returns the session, if
   * it may go on.
   */
  async #writeBatch(
    hold: StoreHold,
    begun: WriteSession | undefined,
    batch: readonly Call[],
  ): Promise<WriteSession | undefined> {
    const { publisher, view } = this.#parts;
    let session = begun;
    this.#hasFailed = false;
    try {
      // Also in a session: the view has not read the header of a segment that the session began.
      await view.advance(session === undefined ? await publisher.tip() : session.published);
      let judged = await this.#judge(batch);
      if (hasAccepted(judged)) {
        session ??= await publisher.begin(hold);
        // A dead writer left lines, or another writer published since. Not by `view.tip`: a reader
        // of this process may have moved it.
        if (!isSameTip(judged.at, session.published)) {
          await view.advance(session.published);
          judged = await this.#judge(batch);
        }
      }
      if (session === undefined || !hasAccepted(judged)) this.#answers.push(...judged.calls);
      else if (!(await this.#publish(session, judged))) return undefined;
      return session;
    } catch (error) {
      await session?.close();
      if (this.#mayEnterAgain(hold, error)) {
        this.#queue.putBack(batch);
        return undefined;
      }
      // Whatever failed, nothing of this batch was written.
      for (const call of batch) this.#answers.push(failed(call, withIds(error, call)));
      return undefined;
    }
  }

  /** The lock file was deleted before anything was written. */
  #mayEnterAgain(hold: StoreHold, error: unknown): boolean {
    if (this.#parts.lock.gate !== "os" || !isHoldfastError(error, "LOCK_LOST") || !hold.signal.aborted) return false;
    this.#hasFailed = ++this.#sessionsLost < sessionsLostMax;
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
        // A call that cannot be judged fails alone.
        calls.push(failed(call, error));
      }
    return { at, time, calls };
  }

  /** Writes the accepted calls, publishes them, and answers. False when the session is over. */
  async #publish(session: WriteSession, { time, calls }: Judged): Promise<boolean> {
    const accepted = calls.filter(isAccepted).map(({ call }) => call);
    const from = session.end;
    const { bytes, lines, next } = encode(from, accepted, time);
    const isLast = this.#queue.size === 0;
    try {
      await session.publish(bytes, next, isLast, () => this.#queue.size === 0);
    } catch (error) {
      this.#hasFailed = true;
      await session.close();
      this.#answerAfter(error, calls);
      return false;
    }
    this.#sessionsLost = 0;
    for (const { retag } of accepted) if (retag !== undefined) this.#parts.view.retags.add(retag);
    this.#parts.view.addOwn(from, next, lines);
    this.#answers.push(...calls);
    // Calls queued meanwhile need another session: after a last publish, another writer may write
    // at this offset.
    if (isLast) await session.close();
    return !isLast;
  }

  /** After a failed publish: calls that rest on the failed lines are judged again. */
  #answerAfter(error: unknown, calls: readonly JudgedCall[]): void {
    const mayRepeat = error instanceof WriteSessionLost && ++this.#sessionsLost < sessionsLostMax;
    const again: Call[] = [];
    for (const judged of calls) {
      const { call, verdict } = judged;
      if (verdict.kind === "accepted") {
        if (mayRepeat) again.push(call);
        else
          this.#answers.push(
            failed(call, error instanceof WriteSessionLost ? this.#alwaysLost(error) : withIds(error, call)),
          );
      } else if (this.restsOnBatch(verdict)) again.push(call);
      else this.#answers.push(judged);
    }
    this.#queue.putBack(again);
  }

  protected restsOnBatch({ needsBatch }: Exclude<Verdict, { kind: "accepted" }>): boolean {
    return needsBatch;
  }

  #alwaysLost(cause: unknown): Error {
    const { path } = this.#parts.lock;
    const message = `${path}: another writer took over ${sessionsLostMax} times in a row. Nothing was written.`;
    return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true }, cause);
  }
}
