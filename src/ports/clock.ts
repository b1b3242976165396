// Time as this process sees it. Times of two machines are never compared.

export interface Clock {
  /**
   * Milliseconds since 1970 by this machine's clock, which may jump either way. For people, and for
   * my own deadline after a sleep.
   */
  wallMs(): number;
  /** Milliseconds that never go back. Stands still while the machine sleeps (Linux, macOS). */
  monotonicMs(): number;
  /**
   * Resolves after `ms`; rejects with the signal's reason when it is aborted. Does not keep the
   * process alive by itself when `background` is set. A blocked event loop or a sleeping laptop
   * makes it late, never early. `sleep(0)` lets other callbacks run: calls to a local disk block,
   * so that a loop of them lets none run.
   */
  sleep(ms: number, options?: { signal?: AbortSignal | undefined; background?: boolean }): Promise<void>;
  /**
   * Calls `ring` once after `ms`, never early and never before this call returns, unless the
   * returned function is called first. A sleep without a promise and a signal, for waits that
   * mostly end early.
   */
  alarm(ms: number, ring: () => void): () => void;
}
