// The clock of this machine.
import type { Clock } from "../clock.ts";

// Node overflows on a longer delay and fires at once.
const timerMsMax = 2 ** 31 - 1;

export const nodeClock: Clock = { wallMs: () => Date.now(), monotonicMs, sleep, alarm };

/**
 * Counts from the start of the machine, not of this thread as `performance.now` does: the heart's
 * thread and the main thread must agree.
 */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

function sleep(ms: number, options: { signal?: AbortSignal | undefined; background?: boolean } = {}): Promise<void> {
  const { signal, background = false } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    // Takes one turn of the event loop. A timer would take a millisecond.
    if (ms <= 0) return void setImmediate(resolve);
    const stop = startTimer(ms, { background }, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    const abort = (): void => {
      stop();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}

function alarm(ms: number, ring: () => void): () => void {
  return startTimer(ms, { background: false }, ring);
}

function startTimer(ms: number, { background }: { readonly background: boolean }, ring: () => void): () => void {
  const untilMs = monotonicMs() + ms;
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    timer = setTimeout(look, Math.min(Math.ceil(leftMs), timerMsMax));
    if (background) timer.unref();
  };
  const look = (): void => {
    const leftMs = untilMs - monotonicMs();
    // Timers count whole milliseconds and can fire a fraction early: check the clock, and wait for
    // the rest.
    if (leftMs <= 0) ring();
    else wait(leftMs);
  };
  wait(ms);
  return () => clearTimeout(timer);
}
