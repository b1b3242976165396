// A heartbeat that keeps beating while the event loop is busy.
import type { DiskFile } from "./disk.ts";

/** Options of a heartbeat. */
export interface HeartOptions {
  /** Time between two beats, in milliseconds. */
  readonly everyMs: number;
  /**
   * The beat stops if the event loop did not turn for this long: a process that hangs permanently
   * must not look alive forever.
   */
  readonly stallMs: number;
  /**
   * If a beat would start more than this after the previous one, by either of both clocks, the heart
   * stops: such a holder may have been judged dead, and must not look alive again.
   */
  readonly gapMsMax: number;
  /** A beat that was written before this heart starts, if any; `gapMsMax` counts from it. */
  readonly after?: BeatTimes | undefined;
  /** The number of the first beat. */
  readonly from: number;
  /** The lease to record in each beat. Default: none. */
  readonly leaseMs?: number | undefined;
  /**
   * Called at most once, if the beat cannot continue: it was too late, the write failed, or the
   * thread ended.
   */
  readonly onLost: (cause: unknown) => void;
}

/** Writes the heartbeat of this process, even while the event loop is busy. */
export interface Heart {
  /**
   * Writes a beat at offset 0 of `file`, over the previous one, at once and then every `everyMs`
   * until it is stopped. The caller keeps the handle; closing it stops the heart first.
   *
   * The implementation for Node writes synchronously in a worker thread: asynchronous writes share
   * four threads with everything else, and were measured 11 s late. The handle must belong to the
   * main thread, because a worker that ends closes its files, and with them the OS lock.
   */
  start(file: DiskFile, options: HeartOptions): Beating;
}

/** The clocks of this process just before the write of a beat began. */
export interface BeatTimes {
  /** The monotonic clock. */
  readonly monotonicMs: number;
  /** The wall clock. */
  readonly wallMs: number;
}

/**
 * Returns how long `now` is after `then`, by the later of both clocks: one stands still while the
 * machine sleeps, the other may have been set back.
 */
export function elapsedMs(then: BeatTimes, now: BeatTimes): number {
  return Math.max(now.monotonicMs - then.monotonicMs, now.wallMs - then.wallMs);
}

/** A running heartbeat. */
export interface Beating {
  /**
   * Returns the last beat that reached the file, or undefined before the first. It is up to date
   * even right after the event loop was blocked.
   */
  lastBeat(): BeatTimes | undefined;
  /** Stops the heartbeat. No beat begins after the promise resolves. Calling it again does nothing. */
  stop(): Promise<void>;
}
