// Publishing many tickets: a window of them is on its way at the same time, so that they share directory syncs.
import type { Published } from "./publisher.ts";

/** How many are on their way at most. */
const windowSize = 64;

/**
 * Publishes items in a window and gives their answers in the order of the items. A ticket that fails fails alone:
 * the call of `next` whose turn it is rejects, and later calls go on with the tickets behind it. A `for await` ends
 * at that rejection; what was begun behind it is settled by then. When the iteration ends, nothing is on its way.
 */
export class PublishedMany<Item> implements AsyncIterableIterator<Published> {
  readonly #publish: (item: Item) => Promise<Published>;
  readonly #source: AsyncIterator<Item> | Iterator<Item>;
  readonly #signal: AbortSignal | undefined;
  readonly #begun: Promise<Published>[] = [];
  #isOver = false;
  /** Calls of `next` wait for each other: answers keep their order. */
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

  /** Begins nothing more, and waits for what was begun. */
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
      // A caller that stops here leaves nothing behind that is still on its way.
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
        // The source failed, or the caller gives up: told behind the answers of what was begun.
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
    // The caller is told of its own failure, not of one of a source that is no longer wanted.
    await Promise.resolve(this.#source.return?.()).catch(() => undefined);
  }
}
