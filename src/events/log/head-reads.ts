// Reads the head for a consumer that starts at "head". Appends of this process wait for such reads, so that the
// consumer misses nothing that is appended after its start.

export class HeadReads {
  readonly #findHead: () => Promise<number>;
  #pending: Promise<unknown> | undefined;

  constructor(findHead: () => Promise<number>) {
    this.#findHead = findHead;
  }

  /** The pending reads; undefined if there are none. An append waits for them first. */
  get pending(): Promise<unknown> | undefined {
    return this.#pending;
  }

  /** Returns the head. Everything that this store appends after this call comes after it. */
  async read(): Promise<number> {
    const head = this.#findHead();
    const pending = Promise.allSettled([this.#pending, head]);
    this.#pending = pending;
    await pending;
    if (this.#pending === pending) this.#pending = undefined;
    return await head;
  }
}
