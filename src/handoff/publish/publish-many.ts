// Publishes many tickets, several at the same time, so that they share directory syncs.
import type { Published } from "../model/publication.ts";

/** Maximum number of tickets in progress. */
const windowSize = 64;

/**
 * Publishes items in a window and yields their results in the order of the items. A ticket that
 * fails rejects only its own `next`, and later calls continue with the tickets after it. A `for
 * await` ends at that rejection; tickets already started have settled by then. When the iteration
 * ends, no publish is in progress.
 */
export class PublishedMany<Item> implements AsyncIterableIterator<Published> {
  readonly #publish: (item: Item) => Promise<Published>;
  readonly #source: AsyncIterator<Item> | Iterator<Item>;
  readonly #signal: AbortSignal | undefined;
  readonly #begun: Promise<Published>[] = [];
  #isOver = false;
  /** Calls of `next` wait for each other, so that results keep their order. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    items: Iterable<Item> | AsyncIterable<Item>,
    publish: (item: Item) => Promise<Published>,
    signal: AbortSignal | undefined,
  ) {
    this.#publish = publish;
    this.#source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Published, undefined>> {
    const result = this.#turn.then(() => this.#next());
    this.#turn = result.catch(() => undefined);
    return await result;
  }

  /** Starts no more tickets, and waits for those already started. */
  async return(): Promise<IteratorResult<Published, undefined>> {
    await this.#turn;
    await this.#end();
    await Promise.allSettled(this.#begun.splice(0));
    return { done: true, value: undefined };
  }

  async #next(): Promise<IteratorResult<Published, undefined>> {
    await this.#fill();
    const first = this.#begun.shift();
    if (first === undefined) return { done: true, value: undefined };
    try {
      return { done: false, value: await first };
    } catch (error) {
      // A caller that stops here leaves nothing in progress.
      await Promise.allSettled(this.#begun);
      throw error;
    }
  }

  async #fill(): Promise<void> {
    while (!this.#isOver && this.#begun.length < windowSize) {
      let publishing: Promise<Published>;
      try {
        this.#signal?.throwIfAborted();
        const { done, value } = await this.#source.next();
        if (done === true) {
          this.#isOver = true;
          return;
        }
        publishing = this.#publish(value);
      } catch (error) {
        // Set if the source failed or the caller gave up; reported after the results of tickets
        // already started.
        await this.#end();
        publishing = Promise.reject(error);
      }
      publishing.catch(() => undefined);
      this.#begun.push(publishing);
    }
  }

  async #end(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    // An error of the source on `return` is ignored: the caller gets the failure that ended the
    // iteration.
    await Promise.resolve(this.#source.return?.()).catch(() => undefined);
  }
}
