// Waiting until the log has grown: hints wake up on a local disk, and looking again finds out everywhere. One look serves all
// who wait, whatever their number.
import type { Cancel } from "../../../common.ts";
import { onAbort } from "../../../durable/wait/on-abort.ts";
import { holdfastError } from "../../../errors.ts";
import type { Ports } from "../../../ports/ports.ts";
import { Sleeper } from "../../../ports/sleeper.ts";

/** A hint may be lost, and a network mount gives none. */
const pollMs = { local: 50, network: 250, unknown: 250 };
/** How many are told in one turn of the event loop: what each of them reads then is read in that same turn on a local disk. */
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

  /** The head as soon as it is beyond `position`. Rejects with the signal's reason, with what a look failed with, and with CLOSED. */
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
        // Also when a look is under way: it may have begun before what this caller waits for was there.
        this.wakeAll();
        if (!this.#isLooking) void this.#lookUntilNobodyWaits();
      });
    } finally {
      stopListening?.();
    }
  }

  /** This process knows best when it has appended itself. */
  wakeAll(): void {
    this.#sleeper.wake();
  }

  /** The watch stays between two waits: whoever has waited once will wait again. */
  close(): void {
    this.#isClosed = true;
    this.#stopWatch?.();
    this.#stopWatch = undefined;
    const error = this.#closed();
    for (const waiter of this.#waiters) this.#giveUp(waiter, error);
  }

  async #lookUntilNobodyWaits(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiters.size > 0) {
      // Before the look: what changes meanwhile is looked at again.
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
    // Those alone who wait now: the set grows while it is gone through, by those who were told and wait again.
    for (const waiter of [...this.#waiters]) {
      if (waiter.position >= head || !this.#waiters.delete(waiter)) continue;
      waiter.resolve(head);
      if (++told % toldPerTurn === 0) await this.#ports.clock.sleep(0);
    }
  }

  #giveUp(waiter: Waiter, reason: unknown): void {
    if (!this.#waiters.delete(waiter)) return;
    waiter.reject(reason);
    // Nobody is left to sleep for, and a sleep keeps the process alive.
    if (this.#waiters.size === 0) this.#sleeper.wake();
  }

  #closed(): Error {
    return holdfastError("CLOSED", `${this.#directory} was closed.`, {});
  }
}
