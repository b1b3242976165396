import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { SlowestFiles } from "./test/slowest-files.ts";

const sharingFolders = [
  "test/{doctor,durable,events,handoff,locks,objects,opening,part,ports,s3}/**/*.test.ts",
  "test/telemetry/{operations,prometheus}.test.ts",
  "test/testing/{contracts,explorer,linearizability,mutant-controls,sim-*}.test.ts",
];

const onPostgres = "test/postgres/**/*.test.ts";

export default defineConfig({
  // The examples import the package as its users do; here that means the sources, so that they can be tested without a build.
  resolve: {
    alias: {
      "holdfast/events": fileURLToPath(new URL("src/events/index.ts", import.meta.url)),
      "holdfast/files": fileURLToPath(new URL("src/files/index.ts", import.meta.url)),
      holdfast: fileURLToPath(new URL("src/index.ts", import.meta.url)),
    },
  },
  test: {
    // Two cores are the smallest machine that the suite must pass on. One worker more than cores: many tests wait for a
    // sync of the disk or for a process.
    maxWorkers: 3,
    setupFiles: ["test/patience.ts"],
    // For what hangs, not for what is slow: a machine that is four times slower passes, too.
    testTimeout: 240_000,
    hookTimeout: 60_000,
    reporters: ["default", new SlowestFiles()],
    projects: [
      // They share a worker: loading the same modules for each file takes longer than most of their tests. A process of its
      // own has what mocks modules, changes its environment, or starts threads and processes most of the time.
      { extends: true, test: { name: "units", include: ["{src,harness}/**/*.test.ts"], isolate: false } },
      {
        extends: true,
        // What one file spies on or stubs is whole again for the next.
        test: { name: "shared", include: sharingFolders, isolate: false, restoreMocks: true, unstubEnvs: true },
      },
      {
        extends: true,
        // The server starts only for a run that has one of these files.
        test: { name: "postgres", include: [onPostgres], globalSetup: "test/postgres/global-setup.ts" },
      },
      {
        extends: true,
        test: {
          name: "suites",
          include: ["test/**/*.test.ts", "examples/recipes/*.test.ts"],
          exclude: [...sharingFolders, onPostgres],
        },
      },
    ],
  },
});
