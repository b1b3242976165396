import { defineConfig } from "vitest/config";
import everyday from "./vitest.config.ts";

// What takes too long for every run. One file at a time: each keeps two cores busy by itself.
export default defineConfig({
  ...everyday,
  test: { ...everyday.test, include: ["test/**/*.deep.ts"], maxWorkers: 1 },
});
