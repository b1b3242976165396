// Runs test files as a Windows process. They are part of this program: a runner that compiles them would have to run under
// Wine too. Arguments: the file for the results, and the orders as JSON.
import { appendFileSync } from "node:fs";
import { startTests, type Task, type Test, type VitestRunner } from "@vitest/runner";
import type { TestOrders, TestReport } from "./orders.ts";

const [, , resultsPath = "", ordersText = ""] = process.argv;
const orders = JSON.parse(ordersText) as TestOrders;

/** The settings of vitest.config.ts, or the defaults of vitest. */
const config = {
  root: "/",
  setupFiles: [],
  name: undefined,
  passWithNoTests: false,
  testNamePattern: undefined,
  allowOnly: false,
  sequence: { seed: 1, hooks: "stack" as const, setupFiles: "list" as const },
  chaiConfig: undefined,
  maxConcurrency: 5,
  // One test of a chain waits for refusals, which takes a minute on a busy machine.
  testTimeout: 120_000,
  hookTimeout: 60_000,
  retry: 0,
  includeTaskLocation: false,
  tags: [],
  tagsFilter: undefined,
  strictTags: false,
  expect: {},
  snapshotOptions: { updateSnapshot: "none", expand: false },
};

/** Where vitest reads what its worker does now. */
const worker: { config: typeof config; current: unknown } = { config, current: undefined };
Object.defineProperty(globalThis, "__vitest_worker__", { value: worker });

// Loaded only now, because vitest reads that state at once.
const { expect, vi } = await import("vitest");
await import("../../patience.ts");
// @ts-expect-error The bundler makes this module.
const { testFiles } = (await import("virtual:test-files")) as {
  testFiles: Readonly<Record<string, () => Promise<unknown>>>;
};

// A test may wait for something that keeps no process running.
setInterval(() => undefined, 1000);
const excepted = new Set<string>();
let running: Test | undefined;

const runner: VitestRunner = {
  config,
  pool: "forks",
  importFile: async (path) => await testFiles[path]?.(),
  onCollected: (files) => {
    for (const test of files.flatMap(testsIn)) {
      const words = orders.only[test.file.filepath];
      if (words !== undefined && !test.fullTestName.includes(words)) test.mode = "skip";
      if (!orders.except.some((words) => nameOf(test).includes(words))) continue;
      excepted.add(test.id);
      test.mode = "skip";
      report(test, "excepted");
    }
  },
  onBeforeRunTask: (test) => {
    worker.current = running = test;
  },
  onBeforeTryTask: (test) => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    expect.setState({ currentTestName: test.fullName, assertionCalls: 0 });
  },
  onAfterRunTask: (test) => {
    worker.current = test.suite ?? test.file;
    const { state } = test.result ?? {};
    if (!excepted.has(test.id)) report(test, state === "pass" || state === "fail" ? state : "skip");
  },
};

// Otherwise the process ends, and the tests after this one do not run.
process.on("uncaughtException", (error) => {
  tell({ file: running?.file.filepath ?? "", name: `${running?.fullTestName}, uncaught`, state: "fail", ms: 0, errors: [error.stack ?? ""] }); // prettier-ignore
});

for (const { filepath, result, tasks } of await startTests([...orders.files], runner))
  if (result?.errors !== undefined || tasks.length === 0)
    tell({ file: filepath, name: "", state: "fail", ms: 0, errors: errorsOf(result) });
// A test may have left a timer or a child behind.
process.exit();

function testsIn(task: Task): Test[] {
  return task.type === "test" ? [task] : task.tasks.flatMap(testsIn);
}

function nameOf(test: Test): string {
  return `${test.file.filepath} > ${test.fullTestName}`;
}

function report(test: Test, state: TestReport["state"]): void {
  const ms = Math.round(test.result?.duration ?? 0);
  tell({ file: test.file.filepath, name: test.fullTestName, state, ms, errors: errorsOf(test.result) });
}

function errorsOf(result: Task["result"]): string[] {
  return (result?.errors ?? []).map(({ message, stack = "" }) =>
    stack.includes(message) ? stack : `${message}\n${stack}`,
  );
}

function tell(line: TestReport): void {
  appendFileSync(resultsPath, `${JSON.stringify(line)}\n`);
}
