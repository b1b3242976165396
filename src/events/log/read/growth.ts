// Waiting until the log has grown: by hints on a local disk, by polling everywhere. One look serves
// all waiters.
import type { Cancel } from "../../../common.ts";
import { onAbort } from "../../../durable/wait/on-abort.ts";
import { holdfastError } from "../../../errors.ts";
import type { Ports } from "../../../ports/ports.ts";
import { Sleeper } from "../../../ports/sleeper.ts";

/** Hints may be lost, and a network mount gives none. */
const pollMs = { local: 50, network: 250, unknown: 250 };
/**
 * Waiters resolved in one turn of the event loop: on a local disk each of them then reads in that
 * same turn.
 */
const toldPerTurn = 64;

interface Waiter {
  readonly position: number;
  readonly resolve: (head: number) => void;
  readonly reject: (error: unknown) => void;
}

export class LogGrowth {
  readonly #ports: Ports;
  readonly #directory: string;
  readonly #findHead: () => Promise<number>;
  readonly #waiters = new Set<Waiter>();
  readonly #sleeper: Sleeper;
  #isLooking = false;
  #isClosed = false;
  #stopWatch: (() => void) | undefined;

  constructor(ports: Ports, directory: string, findHead: () => Promise<number>) {
    this.#ports = ports;
    this.#directory = directory;
    this.#findHead = findHead;
    this.#sleeper = new Sleeper(ports.clock);
  }

  /**
   * The head once it is beyond `position`. Rejects with the reason of the signal, the error of a
   * look, or CLOSED.
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
        this.#stopWatch ??= this.#ports.watch.start(this.#directory, () => this.wakeAll());
        // Also when a look is under way: it may have begun before the event that this caller waits
        // for.
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

  /** Ends the watch, which stays between two waits: a caller that has waited once waits again. */
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
      // Before the look: a change during the look needs another one.
      this.#sleeper.forgetWakeUps();
      try {
        await this.#tell(await this.#findHead());
      } catch (error) {
        for (const waiter of this.#waiters) this.#giveUp(waiter, error);
      }
      if (this.#waiters.size > 0) await this.#sleeper.sleep(pollMs[this.#ports.disk.volume.kind]);
    }
    this.#isLooking = false;
  }

  async #tell(head: number): Promise<void> {
    let told = 0;
    // A copy: waiters that were resolved wait again, and the set grows during the loop.
    for (const waiter of [...this.#waiters]) {
      if (waiter.position >= head || !this.#waiters.delete(waiter)) continue;
      waiter.resolve(head);
      if (++told % toldPerTurn === 0) await this.#ports.clock.sleep(0);
    }
  }

  #giveUp(waiter: Waiter, reason: unknown): void {
    if (!this.#waiters.delete(waiter)) return;
    waiter.reject(reason);
    // The sleep would keep the process alive.
    if (this.#waiters.size === 0) this.#sleeper.wake();
  }

  #closed(): Error {
    return holdfastError("CLOSED", `${this.#directory} was closed.`, {});
  }
}
