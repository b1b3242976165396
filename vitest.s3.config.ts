import { defineConfig } from "vitest/config";
import everyday from "./vitest.config.ts";

// Clients that are programs of their own, large objects, and gateways that die: minutes, and a disk with room.
const { projects: _, ...options } = everyday.test ?? {};
export default defineConfig({
  ...everyday,
  test: { ...options, include: ["test/s3/clients/*-suite.ts"], maxWorkers: 1 },
});
