// The real heart: starts the thread that beats, signals to it that the main thread turns, and
// reports how it ended.
import { Worker } from "node:worker_threads";
import type { DiskFile, Volume } from "../disk.ts";
import type { Beating, BeatTimes, Heart, HeartOptions } from "../heart.ts";
import { toDiskError } from "./disk/errno.ts";
import { NodeFile } from "./disk/file.ts";
import {
  heartProgram,
  monotonicTime,
  sharedBytes,
  stopCell,
  timesOffset,
  turnsCell,
  wallTime,
  type HeartOrders,
  type HeartReport,
} from "./heart-worker.ts";

export function createNodeHeart(volume: Volume): Heart {
  return {
    start(file: DiskFile, options: HeartOptions): Beating {
      if (!(file instanceof NodeFile)) throw new TypeError("a heart needs a file of the real disk");
      return startBeating(file, options, volume.kind !== "local");
    },
  };
}

function startBeating(file: NodeFile, options: HeartOptions, sync: boolean): Beating {
  const { everyMs, stallMs, from, gapMsMax, after, leaseMs } = options;
  const shared = new SharedArrayBuffer(sharedBytes);
  const cells = new Int32Array(shared, 0, 2);
  const times = new BigInt64Array(shared, timesOffset, 2);
  const orders: HeartOrders = { fd: file.fd, everyMs, stallMs, from, gapMsMax, after, leaseMs, sync, shared };
  // Pass neither flags nor environment of this process: a module preloaded there would be loaded in
  // the heart's thread too.
  const worker = new Worker(heartProgram, { eval: true, workerData: orders, execArgv: [], env: {} });
  const turning = setInterval(() => Atomics.add(cells, turnsCell, 1), Math.max(1, stallMs / 4)).unref();

  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  let over = false;
  const lose = (cause: unknown): void => {
    if (over) return;
    over = true;
    options.onLost(cause);
  };
  worker.on("message", (report: HeartReport) => {
    if (report.kind === "stalled") {
      lose(new Error(`the event loop did not turn for ${stallMs} ms, so the heart stopped`));
    } else if (report.kind === "late") {
      lose(new Error(`the heart could not beat for ${gapMsMax} ms, so it stopped`));
    } else {
      lose(toDiskError(Object.assign(new Error(report.message), { code: report.code }), "beat", file.path));
    }
  });
  worker.on("error", lose);
  worker.once("exit", (code) => {
    clearInterval(turning);
    leaveFile();
    lose(new Error(`the heart's thread ended unexpectedly, with code ${code}`));
  });

  // After adding the listeners: listening for messages refs the worker again.
  worker.unref();

  const stop = (): Promise<void> => {
    over = true;
    // A caller that awaits the end keeps the process alive until then. Nothing else of the heart
    // does.
    worker.ref();
    Atomics.store(cells, stopCell, 1);
    Atomics.notify(cells, stopCell);
    return ended;
  };
  const leaveFile = file.use(stop);
  return { lastBeat: () => lastBeatOf(times), stop };
}

/**
 * The two times are not read in one step, so they may come from two beats. The thread writes the
 * wall time first and this function reads it last, so it is never from an earlier beat than the
 * monotonic time. The pair may then look older than the last beat by the monotonic clock, which
 * only makes the caller more careful. In the other order it could look younger: an old wall time
 * may date from before the clock was set back.
 */
function lastBeatOf(times: BigInt64Array): BeatTimes | undefined {
  const monotonicUs = Atomics.load(times, monotonicTime);
  if (monotonicUs === 0n) return undefined;
  return { monotonicMs: Number(monotonicUs) / 1000, wallMs: Number(Atomics.load(times, wallTime)) };
}
