import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { SlowestFiles } from "./test/slowest-files.ts";

export default defineConfig({
  // The examples import the package as its users do; here that means the sources, so that they can be tested without a build.
  resolve: { alias: { "holdfast/events": fileURLToPath(new URL("src/events/index.ts", import.meta.url)) } },
  test: {
    // Two cores are the smallest machine that the suite must pass on; the process tests keep both busy by themselves.
    maxWorkers: 2,
    setupFiles: ["test/patience.ts"],
    // For what hangs, not for what is slow: a machine that is four times slower passes, too.
    testTimeout: 240_000,
    hookTimeout: 60_000,
    reporters: ["default", new SlowestFiles()],
    projects: [
      // Pure units share a worker: loading the same modules for each file takes longer than their tests.
      { extends: true, test: { name: "units", include: ["src/**/*.test.ts"], isolate: false } },
      { extends: true, test: { name: "suites", include: ["test/**/*.test.ts"] } },
    ],
  },
});
