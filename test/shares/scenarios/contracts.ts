// The suites that `npm test` runs on a local disk, run in a guest with everything that they write on the share.
import { join } from "node:path";
import type { ServerKind } from "../arguments.ts";
import type { Bed } from "../bed.ts";
import type { Scenario } from "../scenario.ts";

interface Suite {
  readonly name: string;
  readonly files: readonly string[];
  /** Only tests whose full name contains it: what is meant for a local disk, or a simulated one, says nothing here. */
  readonly only?: string;
  /** Nor those that promise what holds on a local disk only: the guarantees say so. */
  readonly except?: readonly string[];
}

const suites: readonly Suite[] = [
  { name: "disk", files: ["test/ports/disk.test.ts"], only: "as it is opened" },
  {
    name: "mechanisms",
    files: testsOf("durable", ["publish", "chain", "rolling-chain", "directory", "ground", "life"]),
    only: "on the real disk",
    // A share is synced always.
    except: ["without syncs"],
  },
  {
    name: "path-locks",
    files: testsOf("locks", ["path-locks", "lock-table", "redo", "passing-on", "patience"]),
    // There are no hints: whoever waits has to look. Waits of a few hundred milliseconds are over before a share has answered. And what is open cannot be removed there. Calls of the same
    // moment stand in line as soon as their paths are resolved, which takes an answer of the server each.
    except: [
      "costs the waiter next to nothing",
      "told how long it waited in all",
      "of the whole ground",
      "in the order of the calls, within a process",
    ],
  },
  { name: "store-lock", files: testsOf("locks", ["store-lock"]), only: "gate is table" },
  {
    name: "semaphore",
    files: testsOf("locks", ["semaphore", "semaphore-waiting"]),
    // Nobody takes over, so there is no guard for it either; and no hints.
    except: ["taken over", "takes over", "is cleaned", "free or stale", "goes as a whole", "noticed at once"],
  },
  { name: "events", files: testsOf("events", ["contract"]), only: "the real disk, mode share" },
];

function testsOf(room: string, names: readonly string[]): string[] {
  return names.map((name) => `test/${room}/${name}.test.ts`);
}

/** On an SMB mount there are no symbolic links, unless it is told to make them up, and no modes. */
const notOnSmb = ["link", "all spellings of a path", "leads out of the root", "its own user only"];

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
  // The guest's root cannot be written to: the runner keeps nothing there, and its configuration is loaded without a copy of it.
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
