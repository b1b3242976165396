import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // Two cores are the smallest machine that the suite must pass on; the process tests keep both busy by themselves.
    maxWorkers: 2,
    testTimeout: 60_000,
  },
});
