// The heartbeat that keeps beating while the event loop is busy.
import type { DiskFile } from "./disk.ts";

export interface HeartOptions {
  readonly everyMs: number;
  /**
   * The beat stops when the event loop has not turned for so long: a process that is stuck for good
   * must not look alive for ever.
   */
  readonly stallMs: number;
  /**
   * A beat that would begin later than this after the one before, by the later of both clocks, is
   * not written, and none after it: a holder that was silent for so long may have been judged dead,
   * and must not look alive again. So the age of the last beat tells the truth also just after a
   * sleep, whichever thread wakes first.
   */
  readonly gapMsMax: number;
  /** The beat before the first one, if there was any. */
  readonly after?: BeatTimes | undefined;
  /** The count to begin with. */
  readonly from: number;
  /**
   * The beat cannot go on (it came too late, the write failed, the thread ended). Called at most
   * once.
   */
  readonly onLost: (cause: unknown) => void;
}

export interface Heart {
  /**
   * Writes a beat (format/beat.ts) at offset 0 of `file`, over the previous one, at once and then
   * every `everyMs` until stopped. The real one runs synchronous writes in a worker thread:
   * asynchronous ones share four pool threads with everything else and were measured 11 s late. The
   * handle stays the caller's: it must belong to the main thread, because a worker that ends closes
   * its own files and with them the OS lock. Closing it stops the heart first.
   */
  start(file: DiskFile, options: HeartOptions): Beating;
}

/** Times of this process, taken just *before* the write of a beat began. */
export interface BeatTimes {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * How long `now` is after `then`, by the later of both clocks: one stands still while the machine
 * sleeps, the other may have been set back.
 */
export function elapsedMs(then: BeatTimes, now: BeatTimes): number {
  return Math.max(now.monotonicMs - then.monotonicMs, now.wallMs - then.wallMs);
}

export interface Beating {
  /**
   * The last beat that reached the file; undefined before the first. Answers at once, also right
   * after the event loop was blocked for long: a question whether the lease has run out must not be
   * answered by reports that are still in a queue.
   */
  lastBeat(): BeatTimes | undefined;
  /** Idempotent. No beat begins after it resolves. */
  stop(): Promise<void>;
}
