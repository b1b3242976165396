// The real threads: starts them, notices that one died or hangs, and ends them.
import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { Threads } from "../threads.ts";
import type { ThreadAnswer, ThreadOrder } from "./thread-side.ts";

/** A thread that makes no progress for this long is considered hung. Requests call `pause` many times a second. */
const stallMsDefault = 10_000;

export function createNodeThreads(stallMs: number = stallMsDefault): Threads {
  const shared = new Map<string, NodeThread>();
  return {
    join(name, base) {
      const url = findModule(name, base);
      if (url === undefined) return undefined;
      const thread = shared.get(url.href) ?? new NodeThread(url, stallMs);
      shared.set(url.href, thread);
      thread.users++;
      return {
        run: (request, signal) => thread.run(request, signal),
        leave: async () => {
          if (--thread.users > 0) return;
          shared.delete(url.href);
          await thread.end();
        },
      };
    },
  };
}

/**
 * Returns undefined if there is no such file: a bundle has no separate modules, and a test runner loads TypeScript. A
 * bundle in CommonJS does not even have `import.meta.url`.
 */
function findModule(name: string, base: string | undefined): URL | undefined {
  const url = base?.startsWith("file:") === true ? new URL(name, base) : undefined;
  return url !== undefined && existsSync(url) ? url : undefined;
}

class NodeThread {
  users = 0;
  readonly #url: URL;
  readonly #stallMs: number;
  readonly #progress = new Int32Array(new SharedArrayBuffer(4));
  readonly #running = new Map<number, (isDone: boolean) => void>();
  #worker: Worker | undefined;
  #watch: NodeJS.Timeout | undefined;
  #hasFailed = false;
  #count = 0;

  constructor(url: URL, stallMs: number) {
    this.#url = url;
    this.#stallMs = stallMs;
  }

  async run(request: object, signal?: AbortSignal): Promise<boolean> {
    const worker = signal?.aborted === true ? undefined : this.#findWorker();
    if (worker === undefined) return false;
    const id = ++this.#count;
    const done = new Promise<boolean>((resolve) => this.#running.set(id, resolve));
    const cancel = (): void => worker.postMessage({ id } satisfies ThreadOrder);
    signal?.addEventListener("abort", cancel, { once: true });
    if (this.#running.size === 1) this.#begin(worker);
    worker.postMessage({ id, request } satisfies ThreadOrder);
    return await done.finally(() => signal?.removeEventListener("abort", cancel));
  }

  async end(): Promise<void> {
    await this.#worker?.terminate();
  }

  #findWorker(): Worker | undefined {
    if (this.#hasFailed) return undefined;
    try {
      return (this.#worker ??= this.#start());
    } catch {
      // Threads may be forbidden or exhausted. The callers then do the work.
      this.#hasFailed = true;
      return undefined;
    }
  }

  #start(): Worker {
    // Pass neither flags nor environment of this process: a module preloaded there would be loaded
    // here too.
    const worker = new Worker(this.#url, { workerData: this.#progress, execArgv: [], env: {} });
    worker.on("message", ({ id, isDone }: ThreadAnswer) => {
      this.#running.get(id)?.(isDone);
      this.#running.delete(id);
      if (this.#running.size === 0) this.#rest(worker);
    });
    // An exit follows each error.
    worker.on("error", () => undefined);
    worker.once("exit", () => {
      // Not tried again: whatever ended this thread would end the next one.
      this.#hasFailed = true;
      for (const resolve of this.#running.values()) resolve(false);
      this.#running.clear();
      clearInterval(this.#watch);
    });
    worker.unref();
    return worker;
  }

  /** Keeps the process alive while the thread works, as work in this thread would. */
  #begin(worker: Worker): void {
    worker.ref();
    let seen: number | undefined;
    const look = (): void => {
      const now = Atomics.load(this.#progress, 0);
      if (now === seen) void worker.terminate();
      seen = now;
    };
    this.#watch = setInterval(look, this.#stallMs).unref();
  }

  #rest(worker: Worker): void {
    clearInterval(this.#watch);
    worker.unref();
  }
}

/** Shared by all stores of the process. */
export const nodeThreads: Threads = createNodeThreads();
