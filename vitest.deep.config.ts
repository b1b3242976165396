import { defineConfig } from "vitest/config";
import everyday from "./vitest.config.ts";

/** Suites that simulate everything in one thread, and those that start one process after the other. */
const inOneThread = [
  "test/{cli,docs,events/decide,files,files/index,files/tables,locks}/*.deep.ts",
  "test/events/{failing-calls,index-answers,random-damage}.deep.ts",
  "test/objects/failing-actions.deep.ts",
  "test/testing/explorer-pool.deep.ts",
  "test/processes/main.deep.ts",
  "test/handoff/{consume/crash-points,publish/failing-calls,foreign/adopt-crash}.deep.ts",
];

/** They share a server of their own. */
const onPostgres = "test/postgres/**/*.deep.ts";

// What takes too long for every run. First two suites at a time that need one core each; then one at a time, because each
// of the others keeps two cores busy by itself.
const { projects: _, ...options } = everyday.test ?? {};
export default defineConfig({
  ...everyday,
  test: {
    ...options,
    projects: [
      { extends: true, test: { name: "threads", include: inOneThread, maxWorkers: 2, sequence: { groupOrder: 1 } } },
      {
        extends: true,
        test: {
          name: "crowds",
          include: ["test/**/*.deep.ts"],
          exclude: [...inOneThread, onPostgres],
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: "postgres",
          include: [onPostgres],
          globalSetup: "test/postgres/global-setup.ts",
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
