// A few threads that explore compiled code and share one queue, so that no core is idle while work
// is left.
import { Worker } from "node:worker_threads";
import type { Exploration, ExploreOptions } from "../../src/testing/explorer/explore.ts";
import { compiledModule } from "../processes/compiled-module.ts";

/** Work is sent to a thread by name, because functions cannot be sent. */
export interface ExploreTask {
  readonly kind: "scenario" | "mutant";
  readonly name: string;
  readonly options: Omit<ExploreOptions, "onProgress">;
}

export type WorkerAnswer =
  | { readonly kind: "done"; readonly exploration: Exploration }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "progress"; readonly states: number; readonly schedules: number };

interface Queued {
  readonly task: ExploreTask;
  readonly onProgress: ExploreOptions["onProgress"];
  readonly resolve: (exploration: Exploration) => void;
  readonly reject: (error: unknown) => void;
}

export class ExplorerPool {
  readonly #workersMax: number;
  readonly #queue: Queued[] = [];
  /** What each thread explores now; undefined when it is idle. */
  readonly #workers = new Map<Worker, Queued | undefined>();

  constructor(workersMax: number) {
    this.#workersMax = workersMax;
  }

  /** Explorations begin in the order of the calls. */
  explore(task: ExploreTask, onProgress?: ExploreOptions["onProgress"]): Promise<Exploration> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ task, onProgress, resolve, reject });
      this.#begin();
    });
  }

  /** Ends the threads, with any work in progress. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers.keys()].map((worker) => worker.terminate()));
  }

  #begin(): void {
    const worker = this.#findIdle();
    const queued = worker === undefined ? undefined : this.#queue.shift();
    if (worker === undefined || queued === undefined) return;
    this.#workers.set(worker, queued);
    worker.postMessage(queued.task);
  }

  #findIdle(): Worker | undefined {
    for (const [worker, queued] of this.#workers) if (queued === undefined) return worker;
    return this.#workers.size < this.#workersMax ? this.#newWorker() : undefined;
  }

  #newWorker(): Worker {
    const worker = new Worker(compiledModule(new URL("./worker.ts", import.meta.url)));
    worker.on("message", (answer: WorkerAnswer) => this.#hear(worker, answer));
    // The thread itself failed. A new one replaces it.
    worker.on("error", (error) => {
      this.#workers.get(worker)?.reject(error);
      this.#workers.delete(worker);
      this.#begin();
    });
    this.#workers.set(worker, undefined);
    return worker;
  }

  #hear(worker: Worker, answer: WorkerAnswer): void {
    const queued = this.#workers.get(worker);
    if (answer.kind === "progress") return queued?.onProgress?.(answer);
    if (answer.kind === "done") queued?.resolve(answer.exploration);
    else queued?.reject(answer.error);
    this.#workers.set(worker, undefined);
    this.#begin();
  }
}
