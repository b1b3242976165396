// Runs work of this package in a thread beside the event loop.

/** Starts threads. Each runs one module of this package. */
export interface Threads {
  /**
   * Joins the thread of the module `name`, a path relative to the module `base`. All who join share
   * one thread, which starts with the first request. Returns undefined if there is no such file, as
   * in a bundle.
   */
  join(name: string, base: string): HelperThread | undefined;
}

/** A worker thread that runs the requests of one module. An idle one does not keep the process alive. */
export interface HelperThread {
  /**
   * Resolves with true once the request is done. False: it was not done, and nothing of it is still
   * in progress. The thread could not start, died or hung, the work failed, or `signal` aborted it.
   * The caller then does the work itself.
   */
  run(request: object, signal?: AbortSignal): Promise<boolean>;
  /** Call it once, after the last `run` has resolved. The thread ends when all have left. */
  leave(): Promise<void>;
}
