// A loop that runs until it is stopped: how it is told, how long it may finish what it has in hand, and how it ends.
import type { Running } from "../../common.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Following } from "./following.ts";

const drainMsDefault = 30_000;

export interface LoopSignals {
  /** Nothing new is to be taken. */
  readonly stopping: AbortSignal;
  /** What is in hand is to be left alone, too. */
  readonly lettingGo: AbortSignal;
}

export interface LoopOptions {
  readonly following: Following;
  readonly clock: Clock;
  /** Stops it. */
  readonly signal?: AbortSignal | undefined;
  readonly onEnd?: (loop: Loop) => void;
  /** Tells those who wait for what it does; whether one of them was told. Before anything else hears of the failure. */
  readonly tell?: (failure: Failure, loop: Loop) => Promise<boolean>;
}

export interface Failure {
  readonly error: unknown;
}

/** Nobody sees it: it only ends waits. */
const stopped = "stopped";

export class Loop implements Running {
  /**
   * Caught here only when somebody else was told of the failure: one that failed, and that nobody watches, is a failure of the program, as with every promise.
   */
  readonly done: Promise<void>;
  readonly #clock: Clock;
  readonly #tell: LoopOptions["tell"];
  readonly #stopping = new AbortController();
  readonly #lettingGo = new AbortController();
  #failure: Failure | undefined;

  constructor({ following, clock, signal, onEnd, tell }: LoopOptions, work: (signals: LoopSignals) => Promise<void>) {
    this.#clock = clock;
    this.#tell = tell;
    const onAbort = (): void => void this.stop();
    if (signal?.aborted) this.#stopping.abort(stopped);
    signal?.addEventListener("abort", onAbort, { once: true });
    following.loops.add(this);
    this.done = this.#run(following, work).finally(() => {
      signal?.removeEventListener("abort", onAbort);
      following.loops.delete(this);
      onEnd?.(this);
    });
  }

  /** How it has ended, if it has failed: for those who come to wait for what it was to do. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  async stop({ drainMs = drainMsDefault }: { drainMs?: number | undefined } = {}): Promise<void> {
    this.#stopping.abort(stopped);
    const over = new AbortController();
    const drained = this.#clock.sleep(drainMs, { signal: over.signal }).then(
      () => this.#lettingGo.abort(stopped),
      () => undefined, // It has ended in time.
    );
    // How it ended is told by `done`: who stops it wants it to end.
    await this.done.catch(() => undefined);
    over.abort(stopped);
    await drained;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #run(following: Following, work: (signals: LoopSignals) => Promise<void>): Promise<void> {
    try {
      following.mustBeOpen();
      await work({ stopping: this.#stopping.signal, lettingGo: this.#lettingGo.signal });
    } catch (error) {
      this.#failure = { error };
      const telling = this.#tell?.(this.#failure, this);
      // Those who wait need not wait for their next look.
      following.progressed();
      // Before `done` rejects: nobody could tell afterwards whether that was heard.
      if (await telling) this.done.catch(() => undefined);
      throw error;
    }
  }
}

/** What `work` gives, or undefined when it has to be left alone before that: it goes on by itself, and nobody hears of it. */
export async function inHand<T>(work: Promise<T>, lettingGo: AbortSignal): Promise<{ readonly value: T } | undefined> {
  return await new Promise((resolve, reject) => {
    const leave = (): void => resolve(undefined);
    if (lettingGo.aborted) leave();
    lettingGo.addEventListener("abort", leave, { once: true });
    work.then((value) => resolve({ value }), reject).finally(() => lettingGo.removeEventListener("abort", leave));
  });
}
