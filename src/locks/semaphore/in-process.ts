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

/** One for a whole process: two semaphores on one path share its place. */
export class InProcessLocks {
  readonly #places = new Map<string, LocalLock>();

  /** To be used at once or not at all: a place that nobody has taken is forgotten when somebody leaves it. */
  at(path: string): LocalLock {
    const place = this.#places.get(path) ?? { turn: new Fifo(), hold: undefined };
    this.#places.set(path, place);
    return place;
  }

  find(path: string): LocalLock | undefined {
    return this.#places.get(path);
  }

  /** The turn goes to the next in line. */
  leave(path: string, place: LocalLock): void {
    place.turn.give();
    if (!place.turn.tryTake()) return;
    // Nobody was in line. A later caller makes a new place; this one stays taken, so that nobody who still has it can use it.
    if (this.#places.get(path) === place) this.#places.delete(path);
  }
}
