// One run of a hand-off between real processes, and everything that is promised of it.
import { expect } from "vitest";
import { openHandoff } from "../../src/handoff/index.ts";
import { auditHandoff } from "../../harness/processes/handoff/audit.ts";
import { runHandoffCrew, type HandoffRun, type HandoffRunOptions } from "../../harness/processes/handoff/run.ts";
import { boxName, nextBoxName } from "../../harness/processes/handoff/steps.ts";
import { makeScratch } from "../sites/scratch.ts";

/** Rejects when a promise is broken. */
export async function runAndAudit(options: Omit<HandoffRunOptions, "directory">): Promise<HandoffRun> {
  const directory = makeScratch();
  const run = await runHandoffCrew({ ...options, directory });
  expect(run.violations).toEqual([]);
  // Each claim counts an attempt. Most attempts have killed their worker by the document itself; a worker that was
  // killed between the claim and the document has used up one, too.
  expect(run.poisonings).toBeGreaterThan(options.poisons);
  expect(run.poisonings).toBeLessThanOrEqual(options.poisons * options.attempts);
  // The processes that were killed last have left something: the next consumer gives it back.
  const box = await openHandoff(`${directory}/${boxName}`);
  expect(await box.take()).toBe(undefined);
  await box.close();
  const next = await openHandoff(`${directory}/${nextBoxName}`);
  await (await next.take())?.[Symbol.asyncDispose]();
  await next.close();
  expect(auditHandoff(directory, options, run)).toEqual([]);
  return run;
}
