// Whose turn it is among the callers of one process: first come, first served.

interface Waiting {
  readonly enter: () => void;
}

export class Fifo {
  #taken = false;
  readonly #waiting: Waiting[] = [];

  /** How many stand in line. */
  get waiting(): number {
    return this.#waiting.length;
  }

  tryTake(): boolean {
    if (this.#taken) return false;
    this.#taken = true;
    return true;
  }

  /** Waits for its turn, or rejects with the signal's reason and is out of the line. */
  async take(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.tryTake()) return;
    await new Promise<void>((resolve, reject) => {
      const waiting: Waiting = {
        enter: () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        },
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(signal?.reason as Error);
      };
      this.#waiting.push(waiting);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  /** Hands over to the next in line, if there is one. */
  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken = false;
    else next.enter();
  }
}
