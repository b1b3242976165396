import { defineConfig } from "vitest/config";
import everyday from "./vitest.config.ts";

// The console in a real browser, on a store of real processes.
const { projects: _, ...options } = everyday.test ?? {};
export default defineConfig({
  ...everyday,
  test: { ...options, include: ["test/console/browser/*-suite.ts"], maxWorkers: 1 },
});
