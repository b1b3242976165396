// One PostgreSQL server for all suites of a vitest run, started when the run begins and ended with it.
import type { TestProject } from "vitest/node";
import { findBinaries, startServer } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The location of the server; empty if this machine has none. */
    readonly postgres: string;
  }
}

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const url = process.env["HOLDFAST_TEST_PG_URL"];
  if (url !== undefined || findBinaries() === undefined) {
    provide("postgres", url ?? "");
    return async () => undefined;
  }
  const server = await startServer();
  provide("postgres", server.url);
  return () => server.stop();
}
