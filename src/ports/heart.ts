// The heartbeat that keeps beating while the event loop is busy.
import type { DiskFile } from "./disk.ts";

export interface HeartOptions {
  readonly everyMs: number;
  /** The beat stops when the event loop has not turned for so long: a process that is stuck for good must not look alive for ever. */
  readonly stallMs: number;
  /** The count to begin with. */
  readonly from: number;
  /** After a beat reached the file; the times are of this process, from just *before* the write began. */
  readonly onBeat: (beat: { readonly monotonicMs: number; readonly wallMs: number }) => void;
  /** The beat cannot go on (the write failed, the thread ended). Called at most once. */
  readonly onLost: (cause: unknown) => void;
}

export interface Heart {
  /**
   * Writes a beat (format/beat.ts) at offset 0 of `file`, over the previous one, at once and then every `everyMs` until stopped. The real one
   * runs synchronous writes in a worker thread: asynchronous ones share four pool threads with everything else and were measured 11 s late.
   * The handle stays the caller's: it must belong to the main thread, because a worker that ends closes its own files and with them the OS lock.
   * Closing it stops the heart first.
   */
  start(file: DiskFile, options: HeartOptions): Beating;
}

export interface Beating {
  /** Idempotent. No beat begins after it resolves. */
  stop(): Promise<void>;
}
