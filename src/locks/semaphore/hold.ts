// One hold of a semaphore in the hands of its user: it is watched, and it ends by being released or lost.
import type { Hold } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { SemaphoreClaim } from "./owner.ts";
import { infoOf, type LockFileInfo } from "./lock-file.ts";
import type { SemaphoreProtocol } from "./protocol.ts";

/** Between two tries of a release that failed, at first and at most. */
const againMs = { first: 100, max: 5000 };

export interface SemaphoreHold extends Hold {
  readonly info: Readonly<LockFileInfo>;
}

export interface ClaimHoldOptions {
  readonly clock: Clock;
  readonly protocol: SemaphoreProtocol;
  readonly claim: SemaphoreClaim;
  /** How often it is looked whether the lock still stands. Infinity: never. */
  readonly watchMs: number;
  /** Called once, when it is over. */
  readonly onEnd: () => void;
}

export class ClaimHold implements SemaphoreHold {
  readonly info: Readonly<LockFileInfo>;
  readonly acquiredAt: Date;
  readonly token: string;
  readonly #options: ClaimHoldOptions;
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  #releasing: Promise<boolean> | undefined;
  #isLate = false;

  constructor(options: ClaimHoldOptions) {
    const { record, since } = options.claim;
    this.#options = options;
    this.info = Object.freeze(infoOf(record));
    this.acquiredAt = new Date(since.wallMs);
    this.token = record.token ?? "";
    if (options.watchMs < Infinity) void this.#watch();
  }

  /** Aborts when the lock is found to be another's, or gone: it was removed by hand or by force, or another program took it for stale. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  async release(): Promise<void> {
    await this.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  /** False when it was lost before. Idempotent; after a failure it can be tried again, and is, whether or not anybody asks for it. */
  async end(): Promise<boolean> {
    if (this.#lost.signal.aborted) return false;
    this.#releasing ??= this.#release();
    try {
      return await this.#releasing;
    } catch (error) {
      this.#releasing = undefined;
      void this.#endLater();
      throw error;
    }
  }

  /** In the background, until it is done: as long as this process lives nobody else may end it, and on a share not even then. */
  async #endLater(): Promise<void> {
    if (this.#isLate) return;
    this.#isLate = true;
    const { clock } = this.#options;
    for (let pauseMs = againMs.first; !this.#over.signal.aborted; pauseMs = Math.min(2 * pauseMs, againMs.max))
      try {
        await clock.sleep(pauseMs, { signal: this.#over.signal, background: true });
        await this.end();
      } catch {
        // Over; or it failed again.
      }
  }

  async #release(): Promise<boolean> {
    const { protocol, claim } = this.#options;
    const wasOurs = await protocol.giveUp(claim);
    if (wasOurs) this.#finish();
    else this.#lose();
    return wasOurs;
  }

  /** In the background: it keeps no process alive, and a look that fails is made again. */
  async #watch(): Promise<void> {
    const { clock, protocol, claim, watchMs } = this.#options;
    while (!this.#over.signal.aborted) {
      try {
        await clock.sleep(watchMs, { signal: this.#over.signal, background: true });
        // Whoever is releasing it finds out by himself, and what he finds is no loss.
        if (this.#releasing === undefined && !(await protocol.isStanding(claim)) && this.#releasing === undefined)
          this.#lose();
      } catch {
        // Over; or the disk did not answer, which proves nothing about the lock.
      }
    }
  }

  #lose(): void {
    if (this.#over.signal.aborted) return;
    const { path } = this.#options.protocol;
    const message = `${path} is no longer held: the lock was removed or taken over by somebody else. What was done under it may have met others.`;
    this.#lost.abort(holdfastError("LOCK_LOST", message, { path }));
    this.#finish();
  }

  #finish(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#options.onEnd();
  }
}
