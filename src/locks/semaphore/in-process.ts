// The semaphores of one process: which caller is next at each path, and which hold of this process exists there.
import { Fifo } from "../../durable/wait/fifo.ts";

/** A hold of this process, with what other callers need to end it. */
export interface OwnHold {
  readonly token: string;
  /** The pid of the owner, if that is another process. */
  readonly ownerPid: number | undefined;
  /** Releases it. Returns false if the lock was lost before. */
  readonly end: () => Promise<boolean>;
}

/** The lock at one path, shared by the callers of this process. */
export interface LocalLock {
  readonly turn: Fifo;
  hold: OwnHold | undefined;
}

/** One for the whole process, so that two semaphores on one path share an entry. */
export class InProcessLocks {
  readonly #locks = new Map<string, LocalLock>();

  /**
   * Returns the entry of a path. Take its turn at once or drop it: an entry is forgotten when its turn is given up
   * and no caller waits.
   */
  at(path: string): LocalLock {
    const lock = this.#locks.get(path) ?? { turn: new Fifo(), hold: undefined };
    this.#locks.set(path, lock);
    return lock;
  }

  find(path: string): LocalLock | undefined {
    return this.#locks.get(path);
  }

  /** Passes the turn to the next caller. */
  leave(path: string, lock: LocalLock): void {
    lock.turn.give();
    if (!lock.turn.tryTake()) return;
    // No caller waits, so forget the entry. Its turn stays taken, so that a caller that still refers to it cannot use
    // it; the next caller gets a new entry.
    if (this.#locks.get(path) === lock) this.#locks.delete(path);
  }
}
