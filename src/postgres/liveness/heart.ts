// The heart of a session: the main thread's side of the thread that beats and listens.
import { Worker } from "node:worker_threads";
import type { Clock } from "../../ports/clock.ts";
import type { BeatTimes } from "../../ports/heart.ts";
import {
  heartProgram,
  sharedBytes,
  timesOffset,
  turnsCell,
  type HeartOrders,
  type HeartReport,
} from "./heart-program.ts";

export interface HeartOptions extends Omit<HeartOrders, "shared"> {
  readonly clock: Clock;
  readonly onReport: (report: HeartReport) => void;
}

export class Heart {
  readonly #times: BigInt64Array;
  readonly #worker: Worker;
  readonly #ended: Promise<void>;

  constructor({ onReport, clock, ...options }: HeartOptions) {
    const shared = new SharedArrayBuffer(sharedBytes);
    const cells = new Int32Array(shared, 0, 2);
    this.#times = new BigInt64Array(shared, timesOffset, 2);
    const orders: HeartOrders = { ...options, shared };
    // The thread gets neither flags nor environment of this process, except the variables that the
    // driver reads. Otherwise modules preloaded here would be loaded there too.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("PG")));
    const worker = new Worker(heartProgram, { eval: true, workerData: orders, execArgv: [], env });
    const ended = new AbortController();
    const turn = async (): Promise<void> => {
      for (;;) {
        await clock.sleep(Math.max(1, options.stallMs / 4), { background: true, signal: ended.signal });
        Atomics.add(cells, turnsCell, 1);
      }
    };
    // It rejects when the thread has ended.
    turn().catch(() => undefined);
    this.#worker = worker;
    worker.on("message", onReport);
    // The deadline of the session decides: without beats it expires soon.
    worker.on("error", () => undefined);
    this.#ended = new Promise((resolve) =>
      worker.once("exit", () => {
        ended.abort();
        resolve();
      }),
    );
    // After adding the listeners, which ref the worker.
    worker.unref();
  }

  /** Returns the times at which the last acknowledged beat was sent; undefined before the first. */
  lastBeat(): BeatTimes | undefined {
    // Read the monotonic time first, as in ports/node/heart.ts: the pair may look older, never
    // younger.
    const monotonicUs = Atomics.load(this.#times, 0);
    if (monotonicUs === 0n) return undefined;
    return { monotonicMs: Number(monotonicUs) / 1000, wallMs: Number(Atomics.load(this.#times, 1)) };
  }

  async stop(): Promise<void> {
    this.#worker.ref();
    this.#worker.postMessage("stop");
    await this.#ended;
  }
}
