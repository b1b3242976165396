// The program of the thread that beats while the main thread is busy.
import type { BeatTimes } from "../heart.ts";

/** The arguments of the thread. */
export interface HeartOrders {
  readonly fd: number;
  readonly everyMs: number;
  readonly stallMs: number;
  readonly from: number;
  readonly gapMsMax: number;
  readonly after: BeatTimes | undefined;
  readonly leaseMs: number | undefined;
  /**
   * True if each beat is synced: on a share an unsynced write stays in this machine's cache, where
   * no other machine sees it.
   */
  readonly sync: boolean;
  /** `sharedBytes` of memory, all zero: two cells of 32 bits, then two times of 64 bits. */
  readonly shared: SharedArrayBuffer;
}

/** How often the main thread's event loop turned. */
export const turnsCell = 0;
/** Not 0: the thread must stop. */
export const stopCell = 1;

/** Byte offset of the times. */
export const timesOffset = 8;
/** In whole microseconds, rounded down, so that a beat never looks younger than it is; 0 before the first. */
export const monotonicTime = 0;
/** In milliseconds. */
export const wallTime = 1;

export const sharedBytes = 24;

/** The thread reports one of these and ends. It does not report beats: a message waits until the event loop turns. */
export type HeartReport =
  | { readonly kind: "failed"; readonly code: unknown; readonly message: string }
  | { readonly kind: "stalled" }
  | { readonly kind: "late" };

/**
 * A string, not a module: a thread starts from a file that Node can run, and this file is compiled
 * JavaScript in the package, TypeScript in the tests, and part of something larger in a user's
 * bundle. A test compares the bytes that it writes with format/beat.ts.
 *
 * It has no timers: between beats it sleeps in `Atomics.wait`, from which a stop wakes it at once.
 * All calls are synchronous, because the asynchronous calls of all threads queue for the same four
 * pool threads.
 */
export const heartProgram: string = `"use strict";
const { writeSync, fsyncSync } = require("node:fs");
const { parentPort, workerData } = require("node:worker_threads");
const { fd, everyMs, stallMs, from, gapMsMax, after, leaseMs, sync, shared } = workerData;
const lease = leaseMs === undefined ? "" : " " + String(leaseMs).padStart(10, "0");
const cells = new Int32Array(shared, 0, 2);
const times = new BigInt64Array(shared, ${timesOffset}, 2);
const wallMsMax = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

function monotonicMs() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

function beat(count, wallMs) {
  const time = new Date(Math.min(Math.max(wallMs, 0), wallMsMax)).toISOString();
  const bytes = Buffer.from("beat " + String(count).padStart(16, "0") + " " + time + lease + "\\n");
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, done);
  if (sync) fsyncSync(fd);
}

function run() {
  let turns = Atomics.load(cells, ${turnsCell});
  let turnedMs = monotonicMs();
  let previous = after;
  for (let count = from; Atomics.load(cells, ${stopCell}) === 0; count++) {
    const beganMs = monotonicMs();
    const wallMs = Date.now();
    const turnsNow = Atomics.load(cells, ${turnsCell});
    if (turnsNow !== turns) {
      turns = turnsNow;
      turnedMs = beganMs;
    } else if (beganMs - turnedMs >= stallMs) {
      // Permanently: a judge that counts the silence of this process must not see it wake again.
      return parentPort.postMessage({ kind: "stalled" });
    }
    if (previous !== undefined && Math.max(beganMs - previous.monotonicMs, wallMs - previous.wallMs) > gapMsMax)
      return parentPort.postMessage({ kind: "late" });
    previous = { monotonicMs: beganMs, wallMs };
    try {
      beat(count, wallMs);
    } catch (error) {
      return parentPort.postMessage({ kind: "failed", code: error.code, message: error.message });
    }
    // Stored first, and read last by the main thread: see lastBeatOf.
    Atomics.store(times, ${wallTime}, BigInt(wallMs));
    Atomics.store(times, ${monotonicTime}, BigInt(Math.floor(beganMs * 1000)));
    Atomics.wait(cells, ${stopCell}, 0, Math.max(0, everyMs - (monotonicMs() - beganMs)));
  }
}
run();
`;
