// Loops: work of a part that continues until it is stopped, and the callers that wait for its
// progress.
import type { Running } from "../common.ts";
import { holdfastError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";

const drainMsDefault = 30_000;

export interface LoopSignals {
  /** Aborts when the loop must take no new work. */
  readonly stopping: AbortSignal;
  /** Aborts when the time to drain is over: abandon the work in progress too. */
  readonly lettingGo: AbortSignal;
}

export interface LoopOptions {
  /** Stops the loop. */
  readonly signal?: AbortSignal | undefined;
  readonly onEnd?: ((loop: Loop) => void) | undefined;
  /** Called first when the loop fails. Returns true if a caller received the failure. */
  readonly tell?: ((failure: Failure, loop: Loop) => Promise<boolean>) | undefined;
}

export interface Failure {
  readonly error: unknown;
}

/** The reason of signals that only end waits in this file: no caller sees it. */
const stopped = "stopped";

/** All loops of an open part in this process, and the waits for their progress. Closed with the part. */
export class Loops {
  readonly clock: Clock;
  readonly #directory: string;
  readonly #running = new Set<Loop>();
  readonly #waits = new Set<() => void>();
  #isClosed = false;

  constructor(clock: Clock, directory: string) {
    this.clock = clock;
    this.#directory = directory;
  }

  add(loop: Loop): void {
    this.#running.add(loop);
  }

  delete(loop: Loop): void {
    this.#running.delete(loop);
  }

  /**
   * Calls `wake` when a loop of this process made progress or failed, and at the end. Returns a
   * function that stops this.
   */
  onProgress(wake: () => void): () => void {
    this.#waits.add(wake);
    return () => this.#waits.delete(wake);
  }

  progressed(): void {
    for (const wake of [...this.#waits]) wake();
  }

  /** Ends all waits with CLOSED, and drains all loops. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.progressed();
    await Promise.all([...this.#running].map((loop) => loop.stop()));
  }

  /** Throws CLOSED. */
  mustBeOpen(): void {
    if (this.#isClosed) throw holdfastError("CLOSED", `${this.#directory} was closed.`, {});
  }
}

export class Loop implements Running {
  /**
   * Rejects when the work fails. If a waiting caller received the failure, `done` counts as
   * handled; otherwise a rejection without a listener ends the process, as with every promise.
   */
  readonly done: Promise<void>;
  readonly #loops: Loops;
  readonly #tell: LoopOptions["tell"];
  readonly #stopping = new AbortController();
  readonly #lettingGo = new AbortController();
  #failure: Failure | undefined;

  constructor(loops: Loops, work: (signals: LoopSignals) => Promise<void>, { signal, onEnd, tell }: LoopOptions = {}) {
    this.#loops = loops;
    this.#tell = tell;
    const onAbort = (): void => void this.stop();
    if (signal?.aborted) this.#stopping.abort(stopped);
    signal?.addEventListener("abort", onAbort, { once: true });
    loops.add(this);
    this.done = this.#run(work).finally(() => {
      signal?.removeEventListener("abort", onAbort);
      loops.delete(this);
      onEnd?.(this);
    });
  }

  /** Set once the work has failed, for callers that start to wait later. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  async stop({ drainMs = drainMsDefault }: { drainMs?: number | undefined } = {}): Promise<void> {
    this.#stopping.abort(stopped);
    const over = new AbortController();
    const drained = this.#loops.clock.sleep(drainMs, { signal: over.signal }).then(
      () => this.#lettingGo.abort(stopped),
      () => undefined, // The loop ended in time.
    );
    // `done` reports a failure: the caller of `stop` only waits for the end.
    await this.done.catch(() => undefined);
    over.abort(stopped);
    await drained;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #run(work: (signals: LoopSignals) => Promise<void>): Promise<void> {
    try {
      this.#loops.mustBeOpen();
      await work({ stopping: this.#stopping.signal, lettingGo: this.#lettingGo.signal });
    } catch (error) {
      this.#failure = { error };
      const telling = this.#tell?.(this.#failure, this);
      // Waiting callers check again now, not at their next poll.
      this.#loops.progressed();
      // Before `done` rejects: later it is too late to mark the rejection as handled.
      if (await telling) this.done.catch(() => undefined);
      throw error;
    }
  }
}

/**
 * Returns the result of `work`; undefined if `lettingGo` aborts first. Then `work` continues, and
 * its result is ignored.
 */
export async function unlessAborted<T>(
  work: Promise<T>,
  lettingGo: AbortSignal,
): Promise<{ readonly value: T } | undefined> {
  return await new Promise((resolve, reject) => {
    const leave = (): void => resolve(undefined);
    if (lettingGo.aborted) leave();
    lettingGo.addEventListener("abort", leave, { once: true });
    work.then((value) => resolve({ value }), reject).finally(() => lettingGo.removeEventListener("abort", leave));
  });
}

interface ProgressWait {
  failure: Failure | undefined;
  ended: Promise<void>;
}

/** The callers that wait for one loop. If the loop fails, they reject with its error. */
export class ProgressWaiters {
  readonly #waits = new Set<ProgressWait>();

  /** Runs `wait`, which calls `findFailure` and rejects with that error unless it has reached its goal. */
  async listen(wait: (findFailure: () => Failure | undefined) => Promise<void>): Promise<void> {
    const waiting: ProgressWait = { failure: undefined, ended: Promise.resolve() };
    waiting.ended = wait(() => waiting.failure);
    this.#waits.add(waiting);
    try {
      await waiting.ended;
    } finally {
      this.#waits.delete(waiting);
    }
  }

  /**
   * Resolves when all present waits have ended: true if one of them rejected with this failure. A
   * wait may also have reached its position before, or been aborted; that caller did not receive
   * the failure.
   */
  async tell(failure: Failure): Promise<boolean> {
    const waits = [...this.#waits].map((waiting) => {
      waiting.failure = failure;
      return waiting.ended;
    });
    const ends = await Promise.allSettled(waits);
    return ends.some((end) => end.status === "rejected" && end.reason === failure.error);
  }
}
