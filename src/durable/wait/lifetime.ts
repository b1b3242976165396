// Lifetime: the time from the opening of something to its close. Calls after the close throw CLOSED, and
// the close waits for calls in progress.
import { holdfastError } from "../../errors.ts";

export class Lifetime {
  readonly #location: string;
  readonly #closed = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /** `location` names what was opened, in messages. */
  constructor(location: string) {
    this.#location = location;
  }

  /** Aborts with CLOSED when the close begins. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Throws CLOSED once the close has begun. */
  mustBeOpen(): void {
    if (this.#closed.signal.aborted) throw this.#error();
  }

  /** Returns the result of a call that the close waits for. Throws CLOSED once the close has begun. */
  async run<T>(call: () => Promise<T>): Promise<T> {
    this.mustBeOpen();
    const running = call();
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    this.#running.add(ended);
    void ended.then(() => this.#running.delete(ended));
    return await running;
  }

  /** Refuses further calls, waits for those in progress, then runs `release`, once: later calls wait for the first. */
  async close(release: () => Promise<void>): Promise<void> {
    await (this.#closing ??= this.#close(release));
  }

  async #close(release: () => Promise<void>): Promise<void> {
    this.#closed.abort(this.#error());
    await Promise.all(this.#running);
    await release();
  }

  #error(): Error {
    return holdfastError("CLOSED", `${this.#location} was closed.`, {});
  }
}
