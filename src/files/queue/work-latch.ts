// WorkLatch: decides which tickets a process works on at the same time. A ticket whose workers keep
// dying is processed alone. If its worker dies again, no other ticket can be the cause, and none is
// lost with it.

export class WorkLatch {
  #present = 0;
  #isClosed = false;
  #whenEmpty: (() => void) | undefined;
  #whenOpen: (() => void)[] = [];

  /**
   * Counts a ticket as in progress. Returns false while another is processed alone, or is about to
   * be: try again later.
   */
  enter(): boolean {
    if (this.#isClosed) return false;
    this.#present++;
    return true;
  }

  /** Waits until no ticket is processed alone, then enters. */
  async join(): Promise<void> {
    while (this.#isClosed) await new Promise<void>((resolve) => this.#whenOpen.push(resolve));
    this.#present++;
  }

  leave(): void {
    this.#present--;
    if (this.#present === 0) this.#whenEmpty?.();
  }

  /** Runs `wait`, which is not work and may last forever: no ticket waits for it. */
  async away<T>(wait: () => Promise<T>): Promise<T> {
    this.leave();
    try {
      return await wait();
    } finally {
      await this.join();
    }
  }

  /**
   * Runs `work` while no other ticket is in progress. Returns undefined while another ticket is
   * processed alone, or is about to be: try again later.
   */
  async alone<T>(work: () => Promise<T>): Promise<{ readonly result: T } | undefined> {
    if (this.#isClosed) return undefined;
    this.#isClosed = true;
    try {
      while (this.#present > 0) await new Promise<void>((resolve) => (this.#whenEmpty = resolve));
      return { result: await work() };
    } finally {
      this.#isClosed = false;
      this.#whenEmpty = undefined;
      for (const call of this.#whenOpen.splice(0)) call();
    }
  }
}
