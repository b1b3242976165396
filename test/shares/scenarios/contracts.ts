// The suites that `npm test` runs on a local disk, run in a guest with everything that they write
// on the share.
import { join } from "node:path";
import type { ServerKind } from "../arguments.ts";
import type { Bed } from "../bed.ts";
import type { Scenario } from "../scenario.ts";
import { notOnSmb, suites, type Suite } from "../suites.ts";

/** As a pattern for the full names of tests. */
function patternOf({ only = "", except = [] }: Suite, server: ServerKind): string {
  const without = server === "smb" ? [...except, ...notOnSmb] : except;
  return `^${without.map((words) => `(?!.*${words})`).join("")}.*${only}`;
}

/** What the runner writes down. */
interface Outcome {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

const suiteMsMax = 1_200_000;

export const contracts: readonly Scenario[] = suites.map((suite) => ({
  name: `contract-${suite.name}`,
  about: "the contract suite that `npm test` runs, on the share",
  async run(bed, report) {
    const { numPassedTests, testResults } = await runSuite(bed, suite);
    report.note(`${numPassedTests} tests passed`);
    report.must(numPassedTests > 0, "no test was run");
    for (const { message, assertionResults } of testResults) {
      const failed = assertionResults.filter(({ status }) => status === "failed");
      if (failed.length === 0 && message !== "") report.violate(message);
      for (const { fullName, failureMessages } of failed)
        report.violate(`${fullName}: ${failureMessages.join("; ").split("\n")[0]}`);
    }
  },
}));

async function runSuite(bed: Bed, suite: Suite): Promise<Outcome> {
  const share = await bed.directory(`contract-${suite.name}`);
  // The guest's root cannot be written to: the runner keeps nothing there, and its configuration is
  // loaded without a copy of it.
  const runner = [
    join(bed.root, "node_modules/vitest/vitest.mjs"),
    ...["run", "--configLoader=runner", "--no-cache", "--maxWorkers=1", "--testTimeout=240000", "--hookTimeout=240000"],
    ...["--reporter=json", "--outputFile=/run/outcome.json"],
    ...["-t", patternOf(suite, bed.kind)],
    ...suite.files,
  ];
  const words = [process.execPath, ...runner].map((word) => `'${word}'`).join(" ");
  const guest = bed.guest(1);
  const said = await guest.shell(`cd '${bed.root}' && { TMPDIR=${share} ${words} 2>&1 | tail -n 100; }`, suiteMsMax);
  try {
    return JSON.parse(await guest.shell("cat /run/outcome.json && rm /run/outcome.json")) as Outcome;
  } catch {
    throw new Error(said);
  }
}
