// Says at the end of a run which test files took longest: what grows slow is seen before anyone has to wait for it.
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

const shownMax = 10;

export class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const slowest = modules
      .map((module) => ({ path: relative("", module.moduleId), ms: module.diagnostic().duration }))
      .sort((a, b) => b.ms - a.ms)
      .slice(0, shownMax);
    if (modules.length <= shownMax) return;
    const lines = slowest.map(({ path, ms }) => `${(ms / 1000).toFixed(1).padStart(8)} s  ${path}`);
    console.log(`\nThe ${shownMax} slowest of ${modules.length} test files:\n${lines.join("\n")}\n`);
  }
}
