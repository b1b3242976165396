// DiskSyncs: the syncs of one disk. A sync runs in libuv's pool, or blocks if that is faster:
// recent syncs of the device were fast, and no other sync of this process waits, or all of them
// together take less than one round trip to the pool.
import type { FileCalls } from "./file-calls.ts";

/**
 * A longer sync runs in the pool: the round trip, usually 0.1 ms, is then a small part of it, and
 * the event loop stays free.
 */
const briefMs = 0.5;
/** The longest round trip to the pool on a busy machine. It is not counted as time of the device. */
const poolWayMs = 0.5;
/** After this many brief syncs in a row, in the pool or not, the next one blocks. */
const briefSyncsToBlock = 3;
/** A sync of more unsynced bytes runs in the pool, however fast the last small ones were. */
const blockingBytesMax = 256 * 1024;

/** The round trip to the pool on a quiet machine. Consecutive syncs that take less need no thread. */
const quietWayMs = 0.1;

/** Number of syncs of this process, on all its disks, that have not ended. */
let unfinished = 0;

export type SyncCalls = Pick<FileCalls, "fsync" | "fsyncAtOnce" | "fdatasync" | "fdatasyncAtOnce">;

interface Request {
  /** `data`: the content and the metadata needed to read it. `all`: the time stamps too. */
  readonly what: "all" | "data";
  /** Bytes written since the last sync. */
  readonly bytes: number;
  /** A hint: false if this process has other work to do meanwhile. */
  readonly isIdle?: (() => boolean) | undefined;
}

export class DiskSyncs {
  readonly #calls: SyncCalls;
  readonly #nowMs: () => number;
  #briefInARow = 0;
  /** Duration of the last blocking sync. */
  #blockedMs = Infinity;

  constructor(calls: SyncCalls, nowMs: () => number = () => performance.now()) {
    this.#calls = calls;
    this.#nowMs = nowMs;
  }

  async run(fd: number, { what, bytes, isIdle = () => true }: Request): Promise<void> {
    const [pooled, atOnce] =
      what === "data"
        ? [this.#calls.fdatasync, this.#calls.fdatasyncAtOnce]
        : [this.#calls.fsync, this.#calls.fsyncAtOnce];
    const isQuicker = (): boolean => isIdle() && (unfinished === 1 || unfinished * this.#blockedMs < quietWayMs);
    const mayBlock = this.#briefInARow >= briefSyncsToBlock && bytes <= blockingBytesMax;
    unfinished++;
    try {
      const isBlocking = atOnce !== undefined && mayBlock && (await isStillSo(isQuicker));
      const startedMs = this.#nowMs();
      if (isBlocking) atOnce(fd);
      else await pooled(fd);
      const tookMs = this.#nowMs() - startedMs;
      if (isBlocking) this.#blockedMs = tookMs;
      const isBrief = tookMs < (isBlocking ? briefMs : briefMs + poolWayMs);
      this.#briefInARow = isBrief ? this.#briefInARow + 1 : 0;
    } finally {
      unfinished--;
    }
  }
}

/**
 * Yields once first: requests already queued can join this sync, and another caller may reach its
 * own sync. Then both run in the pool, in parallel.
 */
async function isStillSo(isQuicker: () => boolean): Promise<boolean> {
  if (!isQuicker()) return false;
  await new Promise<void>((resolve) => setImmediate(resolve));
  return isQuicker();
}
