// Time as this process sees it. The times of two machines are never compared.

/** Time as this process sees it. The times of two machines are never compared. */
export interface Clock {
  /**
   * Returns milliseconds since 1970 by the clock of this machine, which may jump in both
   * directions. For people, and for the own deadline after a sleep.
   */
  wallMs(): number;
  /** Returns milliseconds that never go back. They stand still while the machine sleeps (Linux, macOS). */
  monotonicMs(): number;
  /**
   * Resolves after `ms`, late after a blocked event loop or a sleep of the machine, but never
   * early. Rejects with the signal's reason if it is aborted. With `background` it does not keep
   * the process alive. `sleep(0)` lets other callbacks run: calls to a local disk block, so a loop
   * of them lets none run.
   */
  sleep(ms: number, options?: { signal?: AbortSignal | undefined; background?: boolean }): Promise<void>;
  /**
   * Calls `ring` once after `ms`, never early and never before this call returns, unless the
   * returned function is called first. It is cheaper than `sleep`, for waits that mostly end early.
   */
  alarm(ms: number, ring: () => void): () => void;
}
