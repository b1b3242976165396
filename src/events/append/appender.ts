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
// Nothing of a refused call is written. A refusal that depends on a call of the same batch is reported
// only after the publish, and judged again if the batch fails.
import { onAbort } from "../../durable/wait/on-abort.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { StoreHold, StoreLock } from "../../locks/store/store-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { isSameTip } from "../log/format/tip.ts";
import { WriteSessionLost, type Publisher, type WriteSession } from "../log/publish/publisher.ts";
import type { EventReader } from "../log/read/event-reader.ts";
import type { LogView } from "../log/read/view.ts";
import type { Appended } from "../model/event-store.ts";
import {
  answer,
  encode,
  failed,
  hasAccepted,
  isAccepted,
  withIds,
  type JudgedBatch,
  type JudgedCall,
} from "./batch.ts";
import { CallQueue, type AppendRequest, type AppendCall } from "./call-queue.ts";
import { GateWait } from "./gate-wait.ts";
import { Judge, type AppendVerdict } from "./judge.ts";

/** How long a process keeps the gate while others wait: a hand-over costs more than a batch. */
const quantumMs = 20;
/** How often the holder asks whether another process waits, if none did the last time. */
const askAgainMs = 2;
/**
 * If no process waits, a lone caller's turn still ends after this time, so that the note in the lock file is renewed.
 */
const turnMsMax = 1000;
const microtasksToComeAgain = 16;
/** A call that arrives this soon after the last turn comes from a caller that appends in a loop. */
const atOnceMs = 1;
/** Limits the queue in memory while the disk hangs. */
const queueMax = 100_000;
/** After this many lost sessions in a row the call fails: that many are no coincidence. */
const sessionsLostMax = 100;

export interface AppenderContext {
  readonly ports: Ports;
  readonly lock: StoreLock;
  readonly publisher: Publisher;
  readonly view: LogView;
  readonly reader: EventReader;
}

export class Appender {
  readonly #context: AppenderContext;
  readonly #queue = new CallQueue();
  readonly #gateWait: GateWait;
  /** Calls that are judged but not answered yet. */
  readonly #answers: JudgedCall[] = [];
  #flushing: Promise<void> | undefined;
  #sessionsLost = 0;
  #hasGate = false;
  /**
   * When the last turn ended. If a call arrives right after it (`isQuick`), the next turn keeps the gate between
   * calls.
   */
  #endedMs = -Infinity;
  #isQuick = false;
  /** The last batch was not published. */
  #hasFailed = false;

  constructor(parts: AppenderContext) {
    this.#context = parts;
    this.#gateWait = new GateWait(parts.ports.clock, parts.lock, this.#queue);
  }

  /** True while this process holds the gate. Background work then pauses, because other processes may wait. */
  get hasGate(): boolean {
    return this.#hasGate;
  }

  /** Resolves when the events are durable. A call can be cancelled until its batch is formed. */
  append(request: AppendRequest): Promise<Appended> {
    request.signal?.throwIfAborted();
    if (this.#queue.size >= queueMax)
      throw holdfastError("TOO_LARGE", `${queueMax} appends are waiting already.`, {
        limit: queueMax,
        actual: this.#queue.size + 1,
      });
    const nowMs = this.#context.ports.clock.monotonicMs();
    if (this.#flushing === undefined && nowMs - this.#endedMs < atOnceMs) this.#isQuick = true;
    const deadlineMs = nowMs + request.timeoutMs;
    let stopListening: (() => void) | undefined;
    const answered = new Promise<Appended>((resolve, reject) => {
      const { content, heads, payload, condition, retag, timeoutMs, signal } = request;
      // Field by field: a spread was a fifteenth of the cost of an append.
      const call: AppendCall = {
        content,
        heads,
        payload,
        condition,
        retag,
        timeoutMs,
        signal,
        deadlineMs,
        resolve,
        reject,
      };
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
        // None of these calls was written. Later calls start another attempt.
        for (const call of this.#queue.takeAll()) call.reject(withIds(error, call));
      }
    }
    this.#flushing = undefined;
  }

  /**
   * One turn with the gate: writes batch after batch, until the queue is empty or another process has waited for a
   * quantum.
   *
   * One call stays unanswered until the gate is free or other calls are queued. If the only caller of a process
   * computes for seconds after its answer, the process does not hold the gate meanwhile. A process with several
   * callers keeps the gate for its quantum: those that were answered call again, and a hand-over after each batch
   * would cost a third of the throughput.
   */
  async #workUnder(hold: StoreHold): Promise<void> {
    this.#hasGate = true;
    const { clock } = this.#context.ports;
    const beganMs = clock.monotonicMs();
    let askAtMs: number | undefined;
    const mayGoOn = async (): Promise<boolean> => {
      const nowMs = clock.monotonicMs();
      // The quantum starts at the end of the first batch. A process that waited long must first read more; if that
      // counted, it would write less in each turn, and have even more to read before the next.
      askAtMs ??= nowMs + quantumMs;
      if (nowMs < askAtMs) return true;
      askAtMs = nowMs + askAgainMs;
      return !(await hold.isContended());
    };
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
        // The lock file was deleted, and another writer may have entered. Enter again through the new lock file.
        if (this.#hasFailed && hold.signal.aborted) break;
        if (!(await mayGoOn())) break;
        if (this.#queue.size === 0) {
          await session?.close();
          session = undefined;
          if (clock.monotonicMs() - beganMs > turnMsMax || !(await this.#comesAgain(hold))) break;
          continue;
        }
        // Other calls are queued, so the withheld answer need not wait until the gate is free: its caller may join
        // the next batch.
        this.#giveAnswers(this.#answers.length);
        await this.#letComeAgain();
      }
    } finally {
      try {
        // Close before the release: no disk call may be in progress when the next writer enters.
        await session?.close();
        this.#hasGate = false;
        await hold.release();
      } finally {
        this.#endedMs = clock.monotonicMs();
        this.#giveAnswers(this.#answers.length);
      }
    }
  }

  /**
   * Answers the last caller while the gate is free, and resumes the turn if that caller appends again at once. A full
   * hand-over after each call of a lone caller took twice as long as the call.
   */
  async #comesAgain(hold: StoreHold): Promise<boolean> {
    if (!this.#isQuick || hold.pause === undefined || hold.resume === undefined) return false;
    await hold.pause();
    this.#giveAnswers(this.#answers.length);
    await this.#letComeAgain();
    this.#isQuick = this.#queue.size > 0;
    return this.#isQuick && (await hold.resume());
  }

  #giveAnswers(count: number): void {
    this.#answers.splice(0, Math.max(0, count)).forEach(answer);
  }

  /** A caller that was just answered may queue its next call a few microtasks from now. */
  async #letComeAgain(): Promise<void> {
    for (let turn = 0; turn < microtasksToComeAgain; turn++) await Promise.resolve();
  }

  /**
   * Answers every call of `batch`, or puts it back to be judged again. Returns the session if it can be used for
   * another batch.
   */
  async #writeBatch(
    hold: StoreHold,
    begun: WriteSession | undefined,
    batch: readonly AppendCall[],
  ): Promise<WriteSession | undefined> {
    const { publisher, view } = this.#context;
    let session = begun;
    this.#hasFailed = false;
    try {
      // Needed within a session too: the view has not read the header of a segment that the session began.
      await view.advance(session === undefined ? await publisher.tip() : session.published);
      let judged = await this.#judge(batch);
      if (hasAccepted(judged)) {
        session ??= await publisher.begin(hold);
        // A dead writer left lines, or another writer published since. Compares with `judged.at`, not with
        // `view.tip`, which a reader of this process may have moved.
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
      // None of this batch was written, whatever failed.
      for (const call of batch) this.#answers.push(failed(call, withIds(error, call)));
      return undefined;
    }
  }

  /** True if the lock file was deleted before anything was written. */
  #mayEnterAgain(hold: StoreHold, error: unknown): boolean {
    if (this.#context.lock.gate !== "os" || !isHoldfastError(error, "LOCK_LOST") || !hold.signal.aborted) return false;
    this.#hasFailed = ++this.#sessionsLost < sessionsLostMax;
    return this.#hasFailed;
  }

  async #judge(batch: readonly AppendCall[]): Promise<JudgedBatch> {
    const { view, reader, ports } = this.#context;
    const time = new Date(ports.clock.wallMs()).toISOString();
    const at = view.tip;
    const judge = new Judge(view, reader, time);
    const calls: JudgedCall[] = [];
    for (const call of batch)
      try {
        calls.push({ call, verdict: judge.tryJudge(call) ?? (await judge.judge(call)) });
      } catch (error) {
        // If a call cannot be judged, only that call fails.
        calls.push(failed(call, error));
      }
    return { at, time, calls };
  }

  /** Writes and publishes the accepted calls, then answers. Returns false if the session has ended. */
  async #publish(session: WriteSession, { time, calls }: JudgedBatch): Promise<boolean> {
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
    for (const { retag } of accepted) if (retag !== undefined) this.#context.view.retags.add(retag);
    this.#context.view.addOwn(from, next, lines);
    this.#answers.push(...calls);
    // Calls that were queued meanwhile need another session: after a last publish, another writer may write at this
    // offset.
    if (isLast) await session.close();
    return !isLast;
  }

  /** Answers calls after a failed publish. Those whose verdict depends on the failed lines are judged again. */
  #answerAfter(error: unknown, calls: readonly JudgedCall[]): void {
    const mayRepeat = error instanceof WriteSessionLost && ++this.#sessionsLost < sessionsLostMax;
    const again: AppendCall[] = [];
    for (const judged of calls) {
      const { call, verdict } = judged;
      if (verdict.kind === "accepted") {
        if (mayRepeat) again.push(call);
        else
          this.#answers.push(
            failed(call, error instanceof WriteSessionLost ? this.#alwaysLost(error) : withIds(error, call)),
          );
      } else if (this.dependsOnBatch(verdict)) again.push(call);
      else this.#answers.push(judged);
    }
    this.#queue.putBack(again);
  }

  protected dependsOnBatch({ needsBatch }: Exclude<AppendVerdict, { kind: "accepted" }>): boolean {
    return needsBatch;
  }

  #alwaysLost(cause: unknown): Error {
    const { path } = this.#context.lock;
    const message = `${path}: another writer took over ${sessionsLostMax} times in a row. Nothing was written.`;
    return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true }, cause);
  }
}
