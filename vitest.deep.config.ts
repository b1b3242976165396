import { defineConfig } from "vitest/config";
import everyday from "./vitest.config.ts";

// What takes too long for every run. One file at a time: each keeps two cores busy by itself.
const { projects: _, ...options } = everyday.test ?? {};
export default defineConfig({
  ...everyday,
  test: { ...options, include: ["test/**/*.deep.ts"], maxWorkers: 1 },
});
