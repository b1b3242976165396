// Says at the end of a run how long it took and which test files took longest: what grows slow is seen before anyone has to wait for it.
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

const shownMax = 10;

export class SlowestFiles implements Reporter {
  #startedAtMs = 0;

  onTestRunStart(): void {
    this.#startedAtMs = performance.now();
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.length <= shownMax) return;
    const files = modules.map((module) => ({ path: relative("", module.moduleId), ms: module.diagnostic().duration }));
    const wholeMs = files.reduce((sum, { ms }) => sum + ms, 0);
    const slowest = files.sort((a, b) => b.ms - a.ms).slice(0, shownMax);
    const lines = slowest.map(({ path, ms }) => `${seconds(ms)}  ${path}`);
    console.log(
      `\n${seconds(performance.now() - this.#startedAtMs)}  the whole run\n${seconds(wholeMs)}  all ${files.length} test files one after the other, of which the ${shownMax} slowest:\n${lines.join("\n")}\n`,
    );
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1).padStart(8)} s`;
}
