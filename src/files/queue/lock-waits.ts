// Which workers of this process may wait for a lock that a user holds: all but one, so that the work on everything else
// goes on. The last one puts its ticket back.
import { isHoldfastError } from "../../errors.ts";

/** A ticket that finds its paths locked, and no worker that may wait for them, is taken again after a while. */
const pauseMs = { min: 100, max: 5_000 };
/** Beyond that some tickets begin again with the shortest pause. */
const rememberedMax = 10_000;

/** What is asked for is locked, and the other workers of this process wait already. */
export class OthersWait extends Error {}

export class LockWaits {
  #workers = 0;
  #waiting = 0;
  /** By ticket: how often it was put back. */
  readonly #putBack = new Map<string, number>();

  /** So many more workers than before, or fewer. */
  addWorkers(count: number): void {
    this.#workers += count;
  }

  /** What `acquire` gives, after a wait if this worker may wait. OthersWait. */
  async get<T>(acquire: (timeoutMs: number) => Promise<T>): Promise<T> {
    try {
      return await acquire(0);
    } catch (error) {
      if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw error;
      if (this.#waiting + 1 >= this.#workers) throw new OthersWait(error.message, { cause: error });
    }
    this.#waiting++;
    try {
      return await acquire(Infinity);
    } finally {
      this.#waiting--;
    }
  }

  /** How long a ticket stays away that is put back now: longer each time. */
  nextPauseMs(ticket: string): number {
    const before = this.#putBack.get(ticket) ?? 0;
    if (this.#putBack.size >= rememberedMax) this.#putBack.clear();
    this.#putBack.set(ticket, before + 1);
    return Math.min(pauseMs.max, pauseMs.min * 2 ** before);
  }

  /** The ticket was worked on. */
  forget(ticket: string): void {
    this.#putBack.delete(ticket);
  }
}
