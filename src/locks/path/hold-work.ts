// What is under way under a hold: appends, changes of its extent, and redos that are not known to
// be done. The request of the hold must stay its own until all of it has ended.
import type { Redo } from "../redo/record.ts";

export class HoldWork {
  /** Committed under the request of the hold, or perhaps committed, and not known to be done. */
  readonly #redos: Map<string, Redo>;
  readonly #running = new Set<Promise<unknown>>();
  #lastChange: Promise<unknown> = Promise.resolve();

  /**
   * `shared`: the work of the hold that covers this one. They have one request, and so the same
   * redos.
   */
  constructor(shared?: HoldWork) {
    this.#redos = shared === undefined ? new Map() : shared.#redos;
  }

  /** For an append under the hold, which may count as long as it is under way. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const done = work();
    this.#running.add(done);
    try {
      return await done;
    } finally {
      this.#running.delete(done);
    }
  }

  /** The same for a change of the extent: one at a time, because each rests on the one before. */
  async duringChange<T>(change: () => Promise<T>): Promise<T> {
    return await this.during(async () => {
      const done = this.#lastChange.then(change);
      this.#lastChange = done.catch(() => undefined);
      return await done;
    });
  }

  /** Resolves when nothing is under way. To be called when nothing new can begin. */
  async untilQuiet(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  get redos(): ReadonlyMap<string, Redo> {
    return this.#redos;
  }

  /**
   * Noted before the append: if its answer is lost, the hold must not end before the outcome is
   * known.
   */
  noteRedo(redo: Redo): void {
    this.#redos.set(redo.id, redo);
  }

  /** The redo is done, or was never committed. */
  forgetRedo(id: string): void {
    this.#redos.delete(id);
  }
}
