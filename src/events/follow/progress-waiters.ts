// Those who wait for what a loop is to do. When it fails they are told, and a failure that somebody was told is not one that nobody has heard of.
import type { Failure } from "./loop.ts";

interface Listener {
  news: Failure | undefined;
  wait: Promise<void>;
}

export class ProgressWaiters {
  readonly #listeners = new Set<Listener>();

  /** `wait` asks for the failure, and rejects with it or has come to its end without it. */
  async listen(wait: (findNews: () => Failure | undefined) => Promise<void>): Promise<void> {
    const listener: Listener = { news: undefined, wait: Promise.resolve() };
    listener.wait = wait(() => listener.news);
    this.#listeners.add(listener);
    try {
      await listener.wait;
    } finally {
      this.#listeners.delete(listener);
    }
  }

  /** True as soon as all who wait now have come to an end, and one of them by this failure: others had what they waited for before, or were called off. */
  async tell(failure: Failure): Promise<boolean> {
    const waits = [...this.#listeners].map((listener) => {
      listener.news = failure;
      return listener.wait;
    });
    const ends = await Promise.allSettled(waits);
    return ends.some((end) => end.status === "rejected" && end.reason === failure.error);
  }
}
