// The program of the thread that beats while the main thread is busy.

/** What the thread is started with. */
export interface HeartOrders {
  readonly fd: number;
  readonly everyMs: number;
  readonly stallMs: number;
  readonly from: number;
  /** Whether each beat is synced: on a share a write alone stays in this machine's cache, where nobody else sees it. */
  readonly sync: boolean;
  /** Two 32-bit cells: how often the main thread turned, and whether to stop. */
  readonly shared: SharedArrayBuffer;
}

export const turnsCell = 0;
export const stopCell = 1;

/** What the thread reports. After "failed" and "stalled" it ends. */
export type HeartReport =
  | { readonly kind: "beat"; readonly monotonicMs: number; readonly wallMs: number }
  | { readonly kind: "failed"; readonly code: unknown; readonly message: string }
  | { readonly kind: "stalled" };

/**
 * A text and not a module: a thread starts from a file that Node can run, and this file is compiled JavaScript in the package, TypeScript in
 * our tests, and a part of something larger in a user's bundle. A test compares the bytes that it writes with format/beat.ts.
 *
 * It has no timers: between beats it sleeps in `Atomics.wait`, from which a stop wakes it at once. All calls are synchronous, because
 * asynchronous ones of every thread queue for the same four pool threads.
 */
export const heartProgram: string = `"use strict";
const { writeSync, fsyncSync } = require("node:fs");
const { parentPort, workerData } = require("node:worker_threads");
const { fd, everyMs, stallMs, from, sync, shared } = workerData;
const cells = new Int32Array(shared);
const wallMsMax = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

function monotonicMs() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

function beat(count, wallMs) {
  const time = new Date(Math.min(Math.max(wallMs, 0), wallMsMax)).toISOString();
  const bytes = Buffer.from("beat " + String(count).padStart(16, "0") + " " + time + "\\n");
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, done);
  if (sync) fsyncSync(fd);
}

function run() {
  let turns = Atomics.load(cells, ${turnsCell});
  let turnedMs = monotonicMs();
  for (let count = from; Atomics.load(cells, ${stopCell}) === 0; count++) {
    const times = { kind: "beat", monotonicMs: monotonicMs(), wallMs: Date.now() };
    const turnsNow = Atomics.load(cells, ${turnsCell});
    if (turnsNow !== turns) {
      turns = turnsNow;
      turnedMs = times.monotonicMs;
    } else if (times.monotonicMs - turnedMs >= stallMs) {
      // For good: whoever waits for us to fall silent must not see us wake again.
      return parentPort.postMessage({ kind: "stalled" });
    }
    try {
      beat(count, times.wallMs);
    } catch (error) {
      return parentPort.postMessage({ kind: "failed", code: error.code, message: error.message });
    }
    parentPort.postMessage(times);
    Atomics.wait(cells, ${stopCell}, 0, Math.max(0, everyMs - (monotonicMs() - times.monotonicMs)));
  }
}
run();
`;
