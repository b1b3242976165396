// A long hand-off between real processes that are killed and stopped at every named point of the
// protocol.
import { expect, test } from "vitest";
import { canStop } from "../../harness/processes/child.ts";
import { crashPoints } from "../../harness/processes/handoff/steps.ts";
import { runAndAudit } from "./handoff-run.ts";

test(
  "of 3,000 tickets each key is done once, though 8 workers are killed and stopped at every step",
  { timeout: 1_800_000 },
  async () => {
    const { kills, stops, points } = await runAndAudit({
      tickets: 3000,
      producers: 4,
      workers: 8,
      duplicates: 0.1,
      poisons: 4,
      attempts: 5,
      // More than are wanted: a child that is left without work comes to no point.
      kills: { producer: 70, worker: 190 },
      stops: { producer: 8, worker: 24 },
      leaseMs: 2000,
      seed: 2,
    });
    expect(kills).toBeGreaterThanOrEqual(200);
    if (canStop) expect(stops).toBeGreaterThan(20);
    const missed = Object.values(crashPoints).flatMap((all) => all.filter((point) => !points.has(point)));
    expect(missed).toEqual([]);
  },
);
