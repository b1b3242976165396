// The suites that `npm test` runs on a local disk, run in a guest with everything that they write on the share.
import { join } from "node:path";
import type { Bed } from "../bed.ts";
import type { Scenario } from "../scenario.ts";

interface Suite {
  readonly name: string;
  readonly files: readonly string[];
  /** Only tests whose full name contains it: what is meant for a local disk, or a simulated one, says nothing here. */
  readonly only?: string;
}

const suites: readonly Suite[] = [
  { name: "disk", files: ["test/ports/disk.test.ts"], only: "as it is opened" },
  {
    name: "mechanisms",
    files: ["publish", "chain", "rolling-chain", "directory", "ground", "life"].map(
      (name) => `test/durable/${name}.test.ts`,
    ),
    only: "on the real disk",
  },
  {
    name: "path-locks",
    files: ["path-locks", "lock-table", "redo", "passing-on", "patience"].map((name) => `test/locks/${name}.test.ts`),
  },
  { name: "store-lock", files: ["test/locks/store-lock.test.ts"], only: "gate is table" },
  { name: "semaphore", files: ["semaphore", "semaphore-waiting"].map((name) => `test/locks/${name}.test.ts`) },
  { name: "events", files: ["test/events/contract.test.ts"], only: "the real disk, mode share" },
];

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

async function runSuite(bed: Bed, { name, files, only }: Suite): Promise<Outcome> {
  const share = await bed.directory(`contract-${name}`);
  // The guest's root cannot be written to: the runner keeps nothing there, and its configuration is loaded without a copy of it.
  const runner = [
    join(bed.root, "node_modules/vitest/vitest.mjs"),
    ...["run", "--configLoader=runner", "--no-cache", "--maxWorkers=1", "--testTimeout=240000", "--hookTimeout=240000"],
    ...["--reporter=json", "--outputFile=/run/outcome.json"],
    ...(only === undefined ? [] : ["-t", only]),
    ...files,
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
