// The part of the bed that runs in namespaces of its own: builds a bed for each server, runs the
// scenarios, says what came of them, and leaves nothing running.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ServerKind } from "./arguments.ts";
import { Bed } from "./bed.ts";
import { buildNetwork } from "./network.ts";
import type { InsideOrders } from "./outside.ts";
import { Report, type Scenario } from "./scenario.ts";
import { contracts } from "./scenarios/contracts.ts";
import { cost } from "./scenarios/cost.ts";
import { diskTruths } from "./scenarios/disk-truths.ts";
import { foreignHandles } from "./scenarios/foreign-handles.ts";
import { hotKeyScenarios } from "./scenarios/hot-key.ts";
import { mountAndDoctor } from "./scenarios/mount-and-doctor.ts";
import { s3Gateways } from "./scenarios/s3-gateways.ts";
import { workScenarios } from "./scenarios/work.ts";

/** In this order: what is learned of the mount comes before what stands on it. */
const scenarios: readonly Scenario[] = [
  ...[mountAndDoctor, ...diskTruths, cost, ...contracts],
  ...[...hotKeyScenarios, s3Gateways, ...workScenarios, ...foreignHandles],
];

interface Result {
  readonly server: ServerKind;
  readonly scenario: string;
  readonly seconds: number;
  readonly notes: readonly string[];
  readonly violations: readonly string[];
  readonly failures: readonly string[];
}

const orders = JSON.parse(process.argv[2] ?? "") as InsideOrders;
const { kind, work, only, sabotage } = orders;
// The kernel ends everything that is in here when this process ends, so this is all that it takes
// to clear up.
process.on("message", () => {
  console.log("Interrupted: everything is taken down.");
  process.exit(130);
});
process.on("disconnect", () => process.exit(130));

const results = await runAll();
writeFileSync(join(work, "results.json"), JSON.stringify(results, undefined, 2));
const broken = results.filter(({ violations }) => violations.length > 0);
const failed = results.filter(({ failures }) => failures.length > 0);
console.log(`${kind}: of ${results.length} scenarios ${broken.length} broke a promise, ${failed.length} failed.`);
const isGood = sabotage ? broken.length === results.length : broken.length + failed.length === 0;
process.exit(isGood ? 0 : 1);

async function runAll(): Promise<Result[]> {
  const startedAtMs = performance.now();
  buildNetwork();
  const bed = await Bed.open(orders);
  console.log(`\n${kind}: ${bed.server.about}; ${bed.guests.length} guests up in ${secondsSince(startedAtMs)} s`);
  const wanted = scenarios.filter(
    ({ name, servers, isLoad }) =>
      name.includes(only) && (servers?.includes(kind) ?? true) && (isLoad === true || !sabotage),
  );
  const results: Result[] = [];
  for (const scenario of wanted) results.push(await runScenario(bed, scenario));
  await bed.close();
  return results;
}

async function runScenario(bed: Bed, { name, about, run }: Scenario): Promise<Result> {
  const report = new Report();
  const startedAtMs = performance.now();
  console.log(`  ${name}: ${about}`);
  try {
    await bed.recover();
    await run(bed, report);
  } catch (error) {
    report.fail(`it could not be carried out: ${error instanceof Error ? error.message : String(error)}`);
  }
  const seconds = secondsSince(startedAtMs);
  const { notes, violations, failures } = report;
  console.log(`    ${violations.length > 0 ? "BROKEN" : failures.length > 0 ? "FAILED" : "kept"}, ${seconds} s`);
  return { server: bed.kind, scenario: name, seconds, notes, violations, failures };
}

function secondsSince(startMs: number): number {
  return Math.round((performance.now() - startMs) / 100) / 10;
}
