// One hold of a semaphore: watches that its lock file still exists, and ends by release or loss.
import type { Hold } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { signal } from "../../telemetry/signals.ts";
import type { SemaphoreClaim } from "./owner.ts";
import { infoOf, type LockFileInfo } from "./lock-file.ts";
import type { SemaphoreProtocol } from "./protocol.ts";

/** The pauses between tries of a failed release: the first one, and the longest. */
const againMs = { first: 100, max: 5000 };

/** A held semaphore. */
export interface SemaphoreHold extends Hold {
  /** The record in the lock file. */
  readonly info: Readonly<LockFileInfo>;
}

export interface ClaimHoldOptions {
  readonly clock: Clock;
  readonly protocol: SemaphoreProtocol;
  readonly claim: SemaphoreClaim;
  /** Pause between two checks that the lock still exists. Infinity: no checks. */
  readonly watchMs: number;
  /** Called once, when the hold is over. */
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

  /**
   * Aborts if the lock file is gone or belongs to another process: it was removed by hand or by force, or another
   * program considered it stale.
   */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  async release(): Promise<void> {
    await this.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  /**
   * Releases the lock. Returns false if it was lost before. Idempotent. If it fails, the caller may try again; the
   * hold itself retries in the background.
   */
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

  /**
   * Retries in the background until the lock is gone. As long as this process lives, no other may take the lock over;
   * on a share, not even afterwards.
   */
  async #endLater(): Promise<void> {
    if (this.#isLate) return;
    this.#isLate = true;
    const { clock } = this.#options;
    for (let pauseMs = againMs.first; !this.#over.signal.aborted; pauseMs = Math.min(2 * pauseMs, againMs.max))
      try {
        await clock.sleep(pauseMs, { signal: this.#over.signal, background: true });
        await this.end();
      } catch {
        // The hold is over, or the release failed again.
      }
  }

  async #release(): Promise<boolean> {
    const { protocol, claim } = this.#options;
    const wasOurs = await protocol.giveUp(claim);
    if (wasOurs) this.#finish();
    else this.#lose();
    return wasOurs;
  }

  /** Watches in the background, without keeping the process alive. A failed check is repeated. */
  async #watch(): Promise<void> {
    const { clock, protocol, claim, watchMs } = this.#options;
    while (!this.#over.signal.aborted) {
      try {
        await clock.sleep(watchMs, { signal: this.#over.signal, background: true });
        // A release in progress removes the lock file itself. Then its absence is no loss.
        if (this.#releasing === undefined && !(await protocol.isStanding(claim)) && this.#releasing === undefined)
          this.#lose();
      } catch {
        // The hold is over, or the disk did not answer, which proves nothing about the lock.
      }
    }
  }

  #lose(): void {
    if (this.#over.signal.aborted) return;
    const { path } = this.#options.protocol;
    const message = `${path} is no longer held: its lock file was removed or replaced. Another process may have worked at the same time; check what was done since.`;
    const error = holdfastError("LOCK_LOST", message, { path });
    this.#lost.abort(error);
    signal("holdfast:lock.lost", () => ({ location: path, path, id: this.token, error }));
    this.#finish();
  }

  #finish(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#options.onEnd();
  }
}
