// The heart of a memory disk. Every possible observer shares its event loop, so a timer of that
// loop is as good as a thread.
import type { Clock } from "../clock.ts";
import type { DiskFile } from "../disk.ts";
import { elapsedMs, type Beating, type BeatTimes, type Heart, type HeartOptions } from "../heart.ts";
import { MemoryFile } from "./file.ts";

export function createMemoryHeart(clock: Clock): Heart {
  return { start: (file, options) => startBeating(clock, file, options) };
}

function startBeating(clock: Clock, file: DiskFile, options: HeartOptions): Beating {
  const { everyMs, stallMs, from, gapMsMax, after, leaseMs, onLost } = options;
  const stopped = new AbortController();
  let last: BeatTimes | undefined;
  let previous = after;

  const beat = async (): Promise<void> => {
    for (let count = from; !stopped.signal.aborted; count++) {
      const times = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
      if (previous !== undefined && elapsedMs(previous, times) > gapMsMax)
        throw new Error(`the heart could not beat for ${gapMsMax} ms, so it stopped`);
      previous = times;
      await file.write(0, encodeBeat(count, times.wallMs, leaseMs));
      last = times;
      await clock.sleep(everyMs, { signal: stopped.signal, background: true });
      // The loop did not turn, so it could not stop this heart in time either. The heart stops
      // permanently: a judge that counts its silence must not see it wake again.
      if (clock.monotonicMs() - times.monotonicMs - everyMs >= stallMs)
        throw new Error(`the event loop did not turn for ${stallMs} ms, so the heart stopped`);
    }
  };
  const ended = beat().catch((cause: unknown) => {
    leaveFile();
    if (!stopped.signal.aborted) onLost(cause);
  });

  const stop = async (): Promise<void> => {
    stopped.abort();
    await ended;
  };
  const leaveFile = file instanceof MemoryFile ? file.use(stop) : (): void => undefined;
  return { lastBeat: () => last, stop };
}

const wallMsMax = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Produces the bytes of format/beat.ts, which is a layer above this one; a test compares them. */
function encodeBeat(count: number, wallMs: number, leaseMs: number | undefined): Uint8Array {
  const time = new Date(Math.min(Math.max(wallMs, 0), wallMsMax)).toISOString();
  const lease = leaseMs === undefined ? "" : ` ${String(leaseMs).padStart(10, "0")}`;
  return new TextEncoder().encode(`beat ${String(count).padStart(16, "0")} ${time}${lease}\n`);
}
