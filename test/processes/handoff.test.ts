// A hand-off between real processes that are killed and stopped at named points of the protocol.
// A longer run is in handoff.deep.ts.
import { expect, test } from "vitest";
import { canStop } from "../../harness/processes/child.ts";
import { runAndAudit } from "./handoff-run.ts";

test("of 300 tickets each is done once, though producers and workers are killed and stopped in the middle of a step", async () => {
  const { kills, stops } = await runAndAudit({
    tickets: 300,
    producers: 2,
    workers: 3,
    duplicates: 0.1,
    poisons: 1,
    attempts: 5,
    // A few more than are wanted: a child that is left without work comes to no point.
    kills: { producer: 7, worker: 17 },
    stops: { producer: 1, worker: 3 },
    leaseMs: 1000,
    seed: 1,
  });
  expect(kills).toBeGreaterThanOrEqual(20);
  if (canStop) expect(stops).toBeGreaterThan(0);
});
