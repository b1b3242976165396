// What locks, appends and messages cost on a share: for docs/benchmarks.md.
import type { Cost } from "../guest/cost.ts";
import type { Scenario } from "../scenario.ts";

export const cost: Scenario = {
  name: "cost",
  about: "how long a lock, an append and a message take without contention, and how many requests they send",
  async run(bed, report) {
    const directory = await bed.directory("cost");
    const script = bed.guest(1).run<Cost>(bed.module("test/shares/guest/cost.ts"), [directory]);
    const { code, stderr } = await script.ended;
    for (const { what, medianMs, p99Ms, requests, byKind } of script.messages) {
      const kinds = Object.entries(byKind).map(([kind, count]) => `${kind} ${count}`);
      report.note(`${what}: median ${medianMs} ms, p99 ${p99Ms} ms, ${requests} requests (${kinds.join(", ")})`);
    }
    if (code !== 0) report.fail(`it ended with ${code}: ${stderr}`);
  },
};
