// Measures the granularity of file times, and the offset between the clock that sets them and this
// machine's.
import type { Ports } from "../../ports/ports.ts";
import {
  bytesOf,
  formatMs,
  good,
  limited,
  type CheckAnswer,
  type CheckDefinition,
  type CheckContext,
} from "../check.ts";
import { clockOffsetMsMax, measureClockOffsetMs } from "../clock-offset.ts";

export const stampGranularity: CheckDefinition = {
  id: "stamps",
  question: "How finely are files stamped with a time?",
  isVital: false,
  ask: askGranularity,
};

export const clockOffset: CheckDefinition = {
  id: "clock",
  question: "Does the clock that stamps files agree with this machine's?",
  isVital: false,
  ask: askClock,
};

async function askGranularity({ ports, scratch }: CheckContext): Promise<CheckAnswer> {
  const granularityMs = await measureGranularityMs(ports, scratch);
  const measured = { granularityMs };
  const unit = granularityMs === 0 ? "a part of a millisecond" : formatMs(granularityMs);
  if (granularityMs < 1_000)
    return good(
      `Stamps of files are as fine as ${unit}.`,
      "Files can be told apart by age as well as needed.",
      measured,
    );
  return {
    ...limited(
      `Stamps of files are whole multiples of ${unit}.`,
      "Holdfast judges semaphore files of other programs, and silent holders that it sees for the first time, by the age of a file: never more precisely than that.",
      "Keep `staleMs` and leases well above it.",
    ),
    measured,
  };
}

// From coarse to fine; FAT has 2 s, ext3 and HFS+ have 1 s.
const granularitiesMs = [2_000, 1_000, 100, 10, 1] as const;

/** 0 if it is finer than a millisecond. */
async function measureGranularityMs(ports: Ports, scratch: string): Promise<number> {
  const stampsMs: number[] = [];
  const fits = (granularityMs: number): boolean => stampsMs.every((stampMs) => stampMs % granularityMs === 0);
  // The odd pauses make it unlikely that a fine clock shows only round numbers. If all stamps are
  // whole seconds, two more, a second apart, distinguish 1 s from 2 s.
  for (const [index, pauseMs] of [0, 3, 7, 11, 1_000, 1_000].entries()) {
    if (pauseMs === 1_000 && !fits(1_000)) break;
    await ports.clock.sleep(pauseMs);
    const path = `${scratch}/stamp-${index}`;
    await ports.disk.createFile(path, bytesOf("stamp"), { sync: true });
    stampsMs.push((await ports.disk.stat(path)).mtimeMs);
  }
  return granularitiesMs.find(fits) ?? 0;
}

async function askClock({ ports, scratch }: CheckContext): Promise<CheckAnswer> {
  const offsetMs = await measureClockOffsetMs(ports, `${scratch}/clock`);
  const measured = { offsetMs };
  if (Math.abs(offsetMs) <= clockOffsetMsMax)
    return good(
      `The clock that stamps files agrees with this machine's to within ${formatMs(clockOffsetMsMax)}.`,
      "Times in files and in messages can be compared.",
      measured,
    );
  const direction = offsetMs > 0 ? "ahead of" : "behind";
  return {
    ...limited(
      `The clock that stamps files is ${formatMs(Math.abs(offsetMs))} ${direction} this machine's.`,
      "Holdfast never compares the clocks of two machines, so nothing is lost; people who compare times are misled, and so are other programs that judge a semaphore file by its age.",
      "Let this machine and the file server take their time from the same place (NTP).",
    ),
    measured,
  };
}
