// The open parts of a store: each is opened once for equal arguments, and all are closed with the
// store.
import { Lifetime } from "../durable/wait/lifetime.ts";

export interface Closable {
  close(): Promise<void>;
}

interface SharedPart {
  readonly name: string;
  readonly options: object;
  readonly opening: Promise<Closable>;
}

export class SharedParts {
  readonly #parts = new Set<SharedPart>();
  /** Parts that a caller has closed. Their work in progress still needs the ground. */
  readonly #ending = new Set<Promise<void>>();
  readonly #life: Lifetime;

  constructor(location: string) {
    this.#life = new Lifetime(location);
  }

  /** Returns the part opened with the same name and options, or the result of `open`. Throws CLOSED. */
  async share<T extends Closable>(name: string, options: object, open: () => Promise<T>): Promise<T> {
    this.mustBeOpen();
    for (const part of this.#parts)
      if (part.name === name && areEqual(part.options, options)) return (await part.opening) as T;
    const part: SharedPart = { name, options: { ...options }, opening: open() };
    this.#parts.add(part);
    try {
      const opened = (await part.opening) as T;
      this.#watchClose(part, opened);
      return opened;
    } catch (error) {
      // The next caller tries again.
      this.#parts.delete(part);
      throw error;
    }
  }

  mustBeOpen(): void {
    this.#life.mustBeOpen();
  }

  /** Closes all parts, then their ground. Rejects with the first failure, after everything was closed. */
  async close(closeGround: () => Promise<void>): Promise<void> {
    await this.#life.close(() => this.#close(closeGround));
  }

  async #close(closeGround: () => Promise<void>): Promise<void> {
    const closing = [...this.#parts].map(async ({ opening }) => {
      // A part that could not be opened needs no close.
      const part = await opening.catch(() => undefined);
      await part?.close();
    });
    const ends = await Promise.allSettled([...closing, ...this.#ending]);
    await closeGround();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  /** Stops returning the part to callers once it is closed. */
  #watchClose(part: SharedPart, opened: Closable): void {
    const close = opened.close.bind(opened);
    let closing: Promise<void> | undefined;
    opened.close = async () => {
      this.#parts.delete(part);
      if (closing === undefined) {
        closing = close();
        const ended = closing.catch(() => undefined);
        this.#ending.add(ended);
        void ended.then(() => this.#ending.delete(ended));
      }
      await closing;
    };
  }
}

/** True if each option has the same value; undefined equals absent. */
function areEqual(one: object, other: object): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => Object.is(Reflect.get(one, name), Reflect.get(other, name)));
}
