// The crash table as a suite: a worker is killed at its disk calls, or they fail. Every ticket is done once,
// nothing is stuck, nothing is lost.
import { describe, expect, it } from "vitest";
import type { Fault } from "../../sites/world.ts";
import { trials } from "./trial-list.ts";
import { countCalls, failAt, killAt, volumes, type Trial } from "./trials.ts";

const faults: readonly Pick<Fault, "label" | "lasting">[] = [
  { label: "ENOSPC", lasting: false },
  { label: "ENOSPC", lasting: true },
  { label: "EIO", lasting: false },
  { label: "done, but the reply is lost", lasting: false },
  { label: "done, and the repeated request fails", lasting: false },
];

/** Every `stride`th call, and another beginning for each trial: together they meet calls of every kind. */
export function describeCrashPoints(stride: number): void {
  describe.each(volumes)("on a %s disk", (volume) => {
    it.each(trials)("a worker that $what is killed at any call: every ticket is done once", async (trial) => {
      const calls = await countCalls(volume, trial);
      await eachCall(trial, calls, stride, async (at) => {
        const { handled } = await killAt(volume, trial, at);
        // In the order of their publication.
        if (trial.keys.length > 1) expect(handled).toEqual(trial.keys.slice(-handled.length));
      });
    });

    it.each(trials.flatMap((trial) => faults.map((fault) => ({ ...trial, ...fault }))))(
      "a worker that $what meets $label at any call (for good: $lasting): it goes on, and every ticket is done once",
      async ({ label, lasting, ...trial }) => {
        const calls = await countCalls(volume, trial);
        await eachCall(trial, calls, stride, async (at) => void (await failAt(volume, trial, { at, label, lasting })));
      },
    );
  });
}

async function eachCall(
  trial: Trial,
  calls: number,
  stride: number,
  attempt: (at: number) => Promise<void>,
): Promise<void> {
  expect(calls).toBeGreaterThan(5);
  const failures: string[] = [];
  for (let at = 1 + (trials.findIndex(({ what }) => what === trial.what) % stride); at <= calls; at += stride)
    try {
      await attempt(at);
    } catch (error) {
      failures.push(`at call ${at} of ${calls}: ${(error as Error).message}`);
      if (failures.length >= 3) break;
    }
  expect(failures).toEqual([]);
}
