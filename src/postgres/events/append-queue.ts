// The appends of this process, in their order. All that wait share one transaction.
import { onAbort } from "../../durable/wait/on-abort.ts";
import type { CheckedAppend, CheckedRetag } from "../../events/checked-events.ts";
import type { Appended } from "../../events/model/event-store.ts";
import { holdfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Database } from "../connection/database.ts";
import { isOutOfConnections, isLost, isRace, sqlStateOf } from "../connection/failure.ts";
import { escaped, keyOf } from "../connection/text.ts";
import { appendStatement, argumentsOf, type AppendOutcome, type BatchedAppend } from "./append-batch.ts";

const callsMax = 1024;
const bytesMax = 4 * 1024 * 1024;
const queueMax = 100_000;
const lockTimedOut = "55P03";
/** The maximum of `lock_timeout`. */
const lockMsMax = 2 ** 31 - 1;
/** The minimum time for finding out about a lost answer, even if the caller's time is over. */
const doubtMsMin = 2000;
const pauseMs = { first: 20, max: 500 };

/** Completes the calls of a batch after its transaction. */
export interface Answers {
  /** Returns the positions of events with known ids. Throws EVENT_ID_REUSED. */
  known(call: CheckedAppend): Promise<Appended>;
  /** Returns APPEND_CONDITION_FAILED with the conflicts up to a position. */
  refused(call: CheckedAppend, upTo: number): Promise<Error>;
  /** Called when the log has grown to `head`. */
  appended(head: number): void;
}

export interface AppendQueueContext {
  readonly database: Database;
  readonly clock: Clock;
  readonly part: number;
  readonly isSynced: boolean;
  readonly newId: () => string;
  readonly answers: Answers;
}

type Work = { readonly append: CheckedAppend } | { readonly retag: CheckedRetag; readonly id: string };

interface Call {
  readonly work: Work;
  readonly timeoutMs: number;
  readonly deadlineMs: number;
  readonly resolve: (appended: Appended | undefined) => void;
  readonly reject: (error: unknown) => void;
  /** When its answer was first lost: the call may count. */
  doubtMs?: number;
}

export class AppendQueue {
  readonly #context: AppendQueueContext;
  #waiting: Call[] = [];
  #running: Promise<void> | undefined;

  constructor(context: AppendQueueContext) {
    this.#context = context;
  }

  async append(append: CheckedAppend): Promise<Appended> {
    const appended = await this.#add({ append }, append);
    return appended ?? { first: 0, last: 0, repeated: false };
  }

  async retag(retag: CheckedRetag): Promise<void> {
    await this.#add({ retag, id: this.#context.newId() }, retag);
  }

  /** Resolves when all calls have been answered. */
  async drained(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  #add(work: Work, { timeoutMs, signal }: Pick<CheckedAppend, "timeoutMs" | "signal">): Promise<Appended | undefined> {
    signal?.throwIfAborted();
    if (this.#waiting.length >= queueMax)
      throw holdfastError("TOO_LARGE", `${queueMax} appends are waiting already.`, {
        limit: queueMax,
        actual: queueMax + 1,
      });
    let stopListening: (() => void) | undefined;
    const deadlineMs = this.#context.clock.monotonicMs() + timeoutMs;
    const answered = new Promise<Appended | undefined>((resolve, reject) => {
      const call: Call = { work, timeoutMs, deadlineMs, resolve, reject };
      this.#waiting.push(call);
      if (signal !== undefined)
        stopListening = onAbort(signal, () => {
          const index = this.#waiting.indexOf(call);
          // A call that was sent cannot be cancelled.
          if (index < 0 || call.doubtMs !== undefined) return;
          this.#waiting.splice(index, 1);
          reject(signal.reason);
        });
      this.#running ??= this.#run();
    });
    return stopListening === undefined ? answered : answered.finally(stopListening);
  }

  async #run(): Promise<void> {
    // Calls made in this same turn of the event loop join the first batch.
    await Promise.resolve();
    let pause = pauseMs.first;
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch();
      try {
        const [first] = batch;
        if (first !== undefined && "retag" in first.work) await this.#retag(first, first.work);
        else await this.#append(batch);
        pause = pauseMs.first;
      } catch (error) {
        const isPaused = await this.#answerFailure(batch, error);
        if (!isPaused) continue;
        await this.#context.clock.sleep(pause);
        pause = Math.min(pauseMs.max, 2 * pause);
      }
    }
    this.#running = undefined;
  }

  /**
   * Takes calls from the front of the queue. The batch ends before a call that repeats an id of an
   * earlier one. A call that adds tags is a batch of its own. Both depend on what was committed
   * before.
   */
  #takeBatch(): Call[] {
    const ids = new Set<string>();
    let length = 0;
    let bytes = 0;
    for (const { work } of this.#waiting) {
      if (length >= callsMax || (length > 0 && "retag" in work)) break;
      if ("retag" in work) {
        length++;
        break;
      }
      const { heads, payload } = work.append;
      for (const body of payload) bytes += body.length;
      if (length > 0 && (bytes > bytesMax || heads.some(({ id }) => ids.has(id)))) break;
      for (const { id } of heads) ids.add(id);
      length++;
    }
    return this.#waiting.splice(0, length);
  }

  async #append(batch: readonly Call[]): Promise<void> {
    const { database, part, isSynced, answers } = this.#context;
    const appends = batch.map(({ work, doubtMs }) => ({
      ...("append" in work ? work.append : none),
      isAgain: doubtMs !== undefined,
    }));
    const outcomes = await database.once<AppendOutcome & Record<string, unknown>>(appendStatement, [
      part,
      batch.length,
      this.#lockMs(batch),
      isSynced,
      ...argumentsOf(appends),
    ]);
    let head = 0;
    for (const { call: number, outcome, a, b } of outcomes) {
      const call = batch[number - 1];
      if (call === undefined || !("append" in call.work)) continue;
      const { append } = call.work;
      if (outcome === "ok") {
        head = b;
        call.resolve({ first: a, last: b, repeated: false });
      } else if (outcome === "known") {
        // Its own answer was lost, or another process has appended it. The caller gets the same
        // result.
        const known = answers.known(append);
        const isLostAnswer = call.doubtMs !== undefined && append.heads.every(({ given }) => given !== true);
        await known.then(
          (appended) => call.resolve(isLostAnswer ? { ...appended, repeated: false } : appended),
          call.reject,
        );
      } else await answers.refused(append, a).then(call.reject, call.reject);
    }
    if (head > 0) answers.appended(head);
  }

  async #retag(call: Call, { retag, id }: Extract<Work, { retag: unknown }>): Promise<void> {
    const { database, part } = this.#context;
    const { positions, tags } = retag.retag;
    await database.once("select from hf_retag_1($1, $2, $3, $4::bigint[], $5::text[], $6::text[], $7, null)", [
      part,
      id,
      this.#lockMs([call]),
      positions,
      tags.map(escaped),
      tags.map(keyOf),
      JSON.stringify({ positions, tags }),
    ]);
    call.resolve(undefined);
  }

  #lockMs(batch: readonly Call[]): number {
    const nowMs = this.#context.clock.monotonicMs();
    const left = Math.min(...batch.map(({ deadlineMs }) => deadlineMs - nowMs));
    // 0 would mean no limit.
    return Math.max(1, Math.min(lockMsMax, Math.ceil(left)));
  }

  /**
   * Returns calls that can be repeated to the queue. Returns true if the queue should pause first.
   */
  async #answerFailure(batch: readonly Call[], error: unknown): Promise<boolean> {
    const nowMs = this.#context.clock.monotonicMs();
    const isInDoubt = isLost(error);
    const isLocked = sqlStateOf(error) === lockTimedOut;
    const again: Call[] = [];
    for (const call of batch) {
      if (isInDoubt) call.doubtMs ??= nowMs;
      const deadlineMs = Math.max(call.deadlineMs, (call.doubtMs ?? -Infinity) + doubtMsMin);
      const isWorthIt = isInDoubt || isLocked || isOutOfConnections(error) || isRace(error);
      if (isWorthIt && deadlineMs > nowMs) again.push(call);
      else
        call.reject(
          call.doubtMs !== undefined ? this.#inDoubt(call, error) : isLocked ? this.#timedOut(call, error) : error,
        );
    }
    this.#waiting.unshift(...again);
    return again.length > 0 && !isLocked;
  }

  #timedOut({ timeoutMs }: Call, cause: unknown): Error {
    const path = this.#context.database.location.shown;
    const message = `${path}: the turn to append did not come within ${timeoutMs} ms.`;
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs: timeoutMs, blockedBy: [] }, cause);
  }

  #inDoubt({ work }: Call, cause: unknown): Error {
    const path = this.#context.database.location.shown;
    const ids = "append" in work ? work.append.heads.map(({ id }) => id) : [];
    const message = `${path}: the answer of the server was lost, so the append may or may not count. Append the same ids again.`;
    return holdfastError("OUTCOME_UNKNOWN", message, { path, ids }, cause);
  }
}

const none: Omit<BatchedAppend, "isAgain"> = { heads: [], payload: [], condition: undefined, stored: undefined };
