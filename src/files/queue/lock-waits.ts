// LockWaits: decides which workers of this process may wait for a user's lock. All but one may, so
// that other work continues; the last one returns its ticket to the queue.
import { isHoldfastError } from "../../errors.ts";
import { WorkLatch } from "./work-latch.ts";

/** How long a ticket with locked paths stays away while no worker may wait for them. */
const pauseMs = { min: 100, max: 5_000 };
/** How many tickets are remembered. At this limit all are forgotten, and start again with the shortest pause. */
const rememberedMax = 10_000;

/** Thrown if the paths are locked and the other workers of this process already wait. */
export class AllWorkersWaiting extends Error {}

export interface WaitOptions {
  /** True for a ticket that is processed alone. */
  readonly isAlone?: boolean | undefined;
}

export class LockWaits {
  /** The tickets in progress. One that waits for a lock is not among them. */
  readonly latch: WorkLatch = new WorkLatch();
  #workers = 0;
  #waiting = 0;
  /** How often each ticket was returned. */
  readonly #putBack = new Map<string, number>();

  /** Adds workers; a negative count removes them. */
  addWorkers(count: number): void {
    this.#workers += count;
  }

  /** Returns the result of `acquire`, after a wait if this worker may wait. Throws AllWorkersWaiting. */
  async get<T>(acquire: (timeoutMs: number) => Promise<T>, { isAlone = false }: WaitOptions = {}): Promise<T> {
    try {
      return await acquire(0);
    } catch (error) {
      if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw error;
      // A ticket that is processed alone blocks all others.
      if (isAlone || this.#waiting + 1 >= this.#workers) throw new AllWorkersWaiting(error.message, { cause: error });
    }
    this.#waiting++;
    try {
      return await this.latch.away(() => acquire(Infinity));
    } finally {
      this.#waiting--;
    }
  }

  /** Returns how long a ticket that is returned now stays away; the time grows with each return. */
  nextPauseMs(ticket: string): number {
    const before = this.#putBack.get(ticket) ?? 0;
    if (this.#putBack.size >= rememberedMax) this.#putBack.clear();
    this.#putBack.set(ticket, before + 1);
    return Math.min(pauseMs.max, pauseMs.min * 2 ** before);
  }

  /** Forgets a ticket that was processed. */
  forget(ticket: string): void {
    this.#putBack.delete(ticket);
  }
}
