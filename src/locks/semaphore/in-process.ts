// The locks of one process: which caller is next at a path, and which hold of this process is
// there.
import { Fifo } from "../../durable/wait/fifo.ts";

/** A hold of this process, as other callers in the process may end it. */
export interface OwnHold {
  readonly token: string;
  /** The pid that the lock was taken for, if not this process's own. */
  readonly ownerPid: number | undefined;
  /** False when the lock was lost before. */
  readonly end: () => Promise<boolean>;
}

/** The lock at one path, among the callers of this process. */
export interface LocalLock {
  readonly turn: Fifo;
  hold: OwnHold | undefined;
}

/** One for a whole process, so that two semaphores on one path share an entry. */
export class InProcessLocks {
  readonly #locks = new Map<string, LocalLock>();

  /**
   * Take its turn at once or drop it: an entry is forgotten when its turn is given up and no caller
   * waits.
   */
  at(path: string): LocalLock {
    const lock = this.#locks.get(path) ?? { turn: new Fifo(), hold: undefined };
    this.#locks.set(path, lock);
    return lock;
  }

  find(path: string): LocalLock | undefined {
    return this.#locks.get(path);
  }

  /** Gives the turn to the next caller. */
  leave(path: string, lock: LocalLock): void {
    lock.turn.give();
    if (!lock.turn.tryTake()) return;
    // No caller waited. The next one makes a new entry; this one stays taken, so that a caller that
    // still refers to it cannot use it.
    if (this.#locks.get(path) === lock) this.#locks.delete(path);
  }
}
