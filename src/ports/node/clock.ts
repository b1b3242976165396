// The clock of this machine.
import type { Clock } from "../clock.ts";

// A longer delay overflows in Node, which then fires at once.
const timerMsMax = 2 ** 31 - 1;

export const nodeClock: Clock = { wallMs: () => Date.now(), monotonicMs, sleep };

/** From the start of the machine, not of this thread as with `performance.now`: the heart's thread and the main thread must agree. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

function sleep(ms: number, options: { signal?: AbortSignal | undefined; background?: boolean } = {}): Promise<void> {
  const { signal, background = false } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const untilMs = monotonicMs() + ms;
    let timer: NodeJS.Timeout;
    const wait = (): void => {
      const leftMs = untilMs - monotonicMs();
      // Timers count whole milliseconds and can fire a fraction early: look at the clock, and wait for the rest.
      if (leftMs <= 0) {
        signal?.removeEventListener("abort", abort);
        return resolve();
      }
      timer = setTimeout(wait, Math.min(Math.ceil(leftMs), timerMsMax));
      if (background) timer.unref();
    };
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    wait();
  });
}
