// Syncs a file: in the pool, or at once when no caller waits behind it and the device was quick of
// late.
import type { FileCalls } from "./file-calls.ts";

/**
 * A longer sync goes to the pool: the way there and back, mostly 0.1 ms, is then a small part of
 * it, and the event loop stays free.
 */
const briefMs = 0.5;
/** What the way to the pool may take on a busy machine. It does not count as time of the device. */
const poolWayMs = 0.5;
/** After so many brief syncs in a row, in the pool or not, the next one blocks. */
const briefSyncsToBlock = 3;

export class FileSync {
  readonly #fd: number;
  readonly #calls: Pick<FileCalls, "fdatasync" | "fdatasyncAtOnce">;
  readonly #nowMs: () => number;
  #briefInARow = 0;

  constructor(
    fd: number,
    calls: Pick<FileCalls, "fdatasync" | "fdatasyncAtOnce">,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#fd = fd;
    this.#calls = calls;
    this.#nowMs = nowMs;
  }

  async run(isIdle?: () => boolean): Promise<void> {
    const { fdatasync, fdatasyncAtOnce } = this.#calls;
    const mayBlock = fdatasyncAtOnce !== undefined && this.#briefInARow >= briefSyncsToBlock;
    const isAtOnce = mayBlock && isIdle !== undefined && (await isStillSo(isIdle));
    const startedMs = this.#nowMs();
    if (isAtOnce) fdatasyncAtOnce(this.#fd);
    else await fdatasync(this.#fd);
    const isBrief = this.#nowMs() - startedMs < (isAtOnce ? briefMs : briefMs + poolWayMs);
    this.#briefInARow = isBrief ? this.#briefInARow + 1 : 0;
  }
}

/** Yields once first, so that requests already queued can join this sync. */
async function isStillSo(isIdle: () => boolean): Promise<boolean> {
  if (!isIdle()) return false;
  await new Promise<void>((resolve) => setImmediate(resolve));
  return isIdle();
}
