import { defineConfig } from "vitest/config";
import everyday from "./vitest.config.ts";

// Every contract on the oldest and the newest PostgreSQL and through PgBouncer in transaction mode; then faults.
const { projects: _, ...options } = everyday.test ?? {};
const suites = "test/postgres/*.{test,deep}.ts";
const contracts = "test/postgres/{events,handoff,objects,path-locks}.{test,deep}.ts";
const globalSetup = "test/postgres/global-setup.ts";
export default defineConfig({
  ...everyday,
  test: {
    ...options,
    maxWorkers: 1,
    testTimeout: 900_000,
    projects: [
      { extends: true, test: { name: "oldest", include: [suites], globalSetup } },
      { extends: true, test: { name: "newest", include: [suites], globalSetup } },
      { extends: true, test: { name: "bouncer", include: [contracts], globalSetup } },
      { extends: true, test: { name: "faults", include: ["test/postgres/faults/*-suite.ts"], globalSetup } },
    ],
  },
});
