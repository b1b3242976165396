import { test } from "vitest";
import { benchMutant } from "../../../src/testing/bug-bench.ts";
import { explore } from "../../../src/testing/explorer/explore.ts";
import { eventConsumerMutants } from "../../../src/testing/mutants/event-consumers.ts";
import { eventConsumerScenarios } from "../../../src/testing/scenarios/event-consumers.ts";
for (const mutant of eventConsumerMutants) test(mutant.name, { timeout: 120000 }, async () => {
  const r = await benchMutant(mutant);
  console.log("RES", mutant.name, r.caught, r.states, r.ms, r.violation?.message ?? "");
});
for (const scenario of eventConsumerScenarios()) test(scenario.name, { timeout: 120000 }, async () => {
  const c = process.cpuUsage();
  const r = await explore(scenario, { statesMax: 150000 });
  console.log("RES", scenario.name, r.exhausted, r.states, r.ms, "cpu", process.cpuUsage(c).user / 1000, r.violation?.message ?? "", r.violation?.table ?? "");
});
