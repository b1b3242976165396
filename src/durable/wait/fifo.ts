// Fifo admits one caller of this process at a time: first come, first served.
import { onAbort } from "./on-abort.ts";

interface Waiter {
  readonly enter: () => void;
}

export class Fifo {
  #isTaken = false;
  readonly #waiters: Waiter[] = [];

  get waiting(): number {
    return this.#waiters.length;
  }

  tryTake(): boolean {
    if (this.#isTaken) return false;
    this.#isTaken = true;
    return true;
  }

  /** Resolves when it is the caller's turn. Rejects with the signal's reason, after leaving the queue. */
  async take(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.tryTake()) return;
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(signal?.reason);
      };
      const stopListening = signal && onAbort(signal, leave);
      const waiter: Waiter = {
        enter: () => {
          stopListening?.();
          resolve();
        },
      };
      this.#waiters.push(waiter);
    });
  }

  /** Hands over to the next caller in the queue, if any. */
  give(): void {
    const next = this.#waiters.shift();
    if (next === undefined) this.#isTaken = false;
    else next.enter();
  }
}
