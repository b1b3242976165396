// Waits until the log has grown: by hints on a local disk, and by polling everywhere. One check
// serves all waiters.
import type { Cancel } from "../../../common.ts";
import { onAbort } from "../../../durable/wait/on-abort.ts";
import { holdfastError } from "../../../errors.ts";
import type { ChangeSource } from "../../../durable/wait/change-waiter.ts";
import { Sleeper } from "../../../ports/sleeper.ts";

/** Polls even with hints, because hints may be lost. A network mount gives none. */
const pollMs = { withHints: 50, withoutHints: 250 };
/** Waiters that are resolved in one turn of the event loop. On a local disk each of them reads in that same turn. */
const toldPerTurn = 64;

interface Waiter {
  readonly position: number;
  readonly resolve: (head: number) => void;
  readonly reject: (error: unknown) => void;
}

export class LogGrowth {
  readonly #source: ChangeSource;
  readonly #directory: string;
  readonly #findHead: () => Promise<number>;
  readonly #waiters = new Set<Waiter>();
  readonly #sleeper: Sleeper;
  #isLooking = false;
  #isClosed = false;
  #stopWatch: (() => void) | undefined;

  constructor(source: ChangeSource, directory: string, findHead: () => Promise<number>) {
    this.#source = source;
    this.#directory = directory;
    this.#findHead = findHead;
    this.#sleeper = new Sleeper(source.ports.clock);
  }

  /**
   * Resolves with the head once it is beyond `position`. Rejects with the signal's reason, the
   * error of a check, or CLOSED.
   */
  async waitBeyond(position: number, { signal }: Cancel = {}): Promise<number> {
    signal?.throwIfAborted();
    if (this.#isClosed) throw this.#closed();
    let stopListening: (() => void) | undefined;
    try {
      return await new Promise<number>((resolve, reject) => {
        const waiter: Waiter = { position, resolve, reject };
        this.#waiters.add(waiter);
        if (signal !== undefined) stopListening = onAbort(signal, () => this.#giveUp(waiter, signal.reason));
        this.#stopWatch ??= this.#source.ports.watch.start(this.#directory, () => this.wakeAll());
        // Wakes even if a check is in progress: it may have begun before the event that this caller waits for.
        this.wakeAll();
        if (!this.#isLooking) void this.#lookWhileAwaited();
      });
    } finally {
      stopListening?.();
    }
  }

  /** Called after an append of this process, and by hints. */
  wakeAll(): void {
    this.#sleeper.wake();
  }

  /** Ends the watch. It persists between waits, because a caller that waited once usually waits again. */
  close(): void {
    this.#isClosed = true;
    this.#stopWatch?.();
    this.#stopWatch = undefined;
    const error = this.#closed();
    for (const waiter of this.#waiters) this.#giveUp(waiter, error);
  }

  async #lookWhileAwaited(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiters.size > 0) {
      // Forget before the check: a change during the check needs another check.
      this.#sleeper.forgetWakeUps();
      try {
        await this.#tell(await this.#findHead());
      } catch (error) {
        for (const waiter of this.#waiters) this.#giveUp(waiter, error);
      }
      if (this.#waiters.size > 0)
        await this.#sleeper.sleep(this.#source.hasHints ? pollMs.withHints : pollMs.withoutHints);
    }
    this.#isLooking = false;
  }

  async #tell(head: number): Promise<void> {
    let told = 0;
    // A copy: resolved waiters wait again, so the set grows during this loop.
    for (const waiter of [...this.#waiters]) {
      if (waiter.position >= head || !this.#waiters.delete(waiter)) continue;
      waiter.resolve(head);
      if (++told % toldPerTurn === 0) await this.#source.ports.clock.sleep(0);
    }
  }

  #giveUp(waiter: Waiter, reason: unknown): void {
    if (!this.#waiters.delete(waiter)) return;
    waiter.reject(reason);
    // Nobody waits any more: the sleep would only keep the process alive.
    if (this.#waiters.size === 0) this.#sleeper.wake();
  }

  #closed(): Error {
    return holdfastError("CLOSED", `${this.#directory} was closed.`, {});
  }
}
