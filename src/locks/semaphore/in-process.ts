// What the callers of one process know of each other: who is next at a lock, and which locks this process holds.
import { Fifo } from "../../durable/wait/fifo.ts";

/** A hold of this process, as far as others in the process may end it. */
export interface OwnHold {
  readonly token: string;
  /** Taken for another process than this one. */
  readonly ownerPid: number | undefined;
  /** False when it was lost before. */
  readonly end: () => Promise<boolean>;
}

/** One lock, among the callers of one process. */
export interface LocalLock {
  readonly turn: Fifo;
  hold: OwnHold | undefined;
}

/** One for a whole process: two semaphores on one path share its lock. */
export class InProcessLocks {
  readonly #locks = new Map<string, LocalLock>();

  /** To be used at once or not at all: a place that nobody has taken is forgotten when somebody leaves it. */
  at(path: string): LocalLock {
    const lock = this.#locks.get(path) ?? { turn: new Fifo(), hold: undefined };
    this.#locks.set(path, lock);
    return lock;
  }

  find(path: string): LocalLock | undefined {
    return this.#locks.get(path);
  }

  /** The turn goes to the next in line. */
  leave(path: string, lock: LocalLock): void {
    lock.turn.give();
    if (!lock.turn.tryTake()) return;
    // Nobody was in line. A later caller makes a new place; this one stays taken, so that nobody who still has it can use it.
    if (this.#locks.get(path) === lock) this.#locks.delete(path);
  }
}
