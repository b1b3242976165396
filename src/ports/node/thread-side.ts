// The thread's side of `Threads`: runs requests concurrently, and stops those that are cancelled.
import { setImmediate } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

/** An order without a request cancels the request with this id. */
export interface ThreadOrder {
  readonly id: number;
  readonly request?: object;
}

export interface ThreadAnswer {
  readonly id: number;
  readonly isDone: boolean;
}

/**
 * Runs `work` for each request. `work` calls `pause` often: that shows that the thread does not hang, lets other
 * requests continue, and throws if the request was cancelled.
 */
export function doRequests<T>(work: (request: T, pause: () => Promise<void>) => Promise<void>): void {
  const port = parentPort;
  if (port === null) throw new Error("This module runs in a thread only.");
  const progress = workerData as Int32Array;
  const running = new Set<number>();
  const run = async (id: number, request: T): Promise<boolean> => {
    const pause = async (): Promise<void> => {
      Atomics.add(progress, 0, 1);
      await setImmediate();
      if (!running.has(id)) throw new Error("cancelled");
    };
    try {
      await work(request, pause);
      return true;
    } catch {
      // The main thread then does the work itself. If the error persists, it gets the same one.
      return false;
    }
  };
  port.on("message", ({ id, request }: ThreadOrder) => {
    if (request === undefined) return void running.delete(id);
    running.add(id);
    void run(id, request as T).then((isDone) => {
      running.delete(id);
      port.postMessage({ id, isDone } satisfies ThreadAnswer);
    });
  });
}
