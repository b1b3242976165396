// One PostgreSQL server for all suites of a vitest project, started when the run begins and ended with it.
import type { TestProject } from "vitest/node";
import { startBouncer } from "./bouncer.ts";
import { findBinaries, startServer } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The location of the server; empty if this machine has none. */
    readonly postgres: string;
    /** The folder of its binaries, for servers of a suite's own. */
    readonly postgresBin: string;
  }
}

/** The name of a project says what it runs on: the words "oldest" and "bouncer" of `test:postgres`. */
export async function setup({ name, provide }: TestProject): Promise<() => Promise<void>> {
  const bin = findBinaries(name.includes("oldest") ? "oldest" : "newest");
  const url = process.env["HOLDFAST_TEST_PG_URL"];
  provide("postgresBin", bin ?? "");
  if (url !== undefined || bin === undefined) {
    provide("postgres", url ?? "");
    return async () => undefined;
  }
  const server = await startServer({ bin });
  const bouncer = name.includes("bouncer") ? await startBouncer(new URL(server.url)) : undefined;
  provide("postgres", bouncer?.url ?? server.url);
  return async () => {
    await bouncer?.stop();
    await server.stop();
  };
}
