// One thread of an explorer pool: explores what it is told, one scenario or known-wrong variant
// after the other.
import { parentPort } from "node:worker_threads";
import { explore } from "../../src/testing/explorer/explore.ts";
import type { Scenario } from "../../src/testing/explorer/scenario.ts";
import type { ExploreTask, WorkerAnswer } from "./pool.ts";
import { allScenarios, mutants } from "../rooms/index.ts";

parentPort?.on("message", (task: ExploreTask) => void carryOut(task));

async function carryOut({ kind, name, options }: ExploreTask): Promise<void> {
  try {
    const onProgress = (progress: { readonly states: number; readonly schedules: number }): void =>
      tell({ kind: "progress", ...progress });
    tell({ kind: "done", exploration: await explore(getScenario(kind, name), { ...options, onProgress }) });
  } catch (error) {
    tell({ kind: "failed", error });
  }
}

function getScenario(kind: ExploreTask["kind"], name: string): Scenario {
  const found =
    kind === "mutant"
      ? mutants.find((mutant) => mutant.name === name)?.scenario
      : allScenarios().find(({ scenario }) => scenario.name === name)?.scenario;
  if (found === undefined) throw new Error(`There is no ${kind} "${name}".`);
  return found;
}

function tell(answer: WorkerAnswer): void {
  parentPort?.postMessage(answer);
}
