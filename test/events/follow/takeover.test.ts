// Consumers and projections in real processes that are killed: no event is skipped, few come twice,
// and the next process goes on at once.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { NewEvent } from "../../../src/common.ts";
import { openEvents } from "../../../src/events/index.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import { startChild } from "../../durable/child.ts";

const module = new URL("../../../dist/events/index.js", import.meta.url).href;
const batch = 3;

type Counted = NewEvent<"Counted", { key: string }>;

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-events-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function counted(number: number): Counted {
  return { type: "Counted", data: { key: `key ${number % 7}` } };
}

/**
 * A process that consumes, and prints each position after its handler and before the checkpoint.
 */
function startConsumer(directory: string) {
  return startChild(
    `
    const { writeSync } = await import("node:fs");
    const { openEvents } = await import(${JSON.stringify(module)});
    const store = await openEvents(args[0], { leaseMs: 5_000 });
    store.consume("mailer", "all", async (events) => {
      writeSync(1, events.map(({ position }) => position + "\\n").join(""));
    }, { batch: ${batch} });`,
    directory,
  );
}

test("when a consumer is killed, the next one goes on and gets at most the batch in hand again", async () => {
  const directory = await makeDirectory();
  const last = 300;
  const kills = 4;
  await using store = await openEvents<Counted>(directory, { leaseMs: 5_000 });
  for (let number = 1; number <= last; number++) await store.append(counted(number));
  const seen: number[] = [];
  for (let kill = 1; kill <= kills; kill++) {
    const child = startConsumer(directory);
    // At any step.
    const until = seen.length + 30 + 7 * kill;
    while (seen.length < until) seen.push(Number(await child.hear()));
    await child.end("SIGKILL");
    try {
      for (;;) seen.push(Number(await child.hear()));
    } catch {
      // All its output was read.
    }
  }
  const startMs = performance.now();
  await using consumer = store.consume("mailer", "all", async (events) => {
    seen.push(...events.map(({ position }) => position));
  });
  await consumer.waitUntilProcessed(last);
  expect(performance.now() - startMs).toBeLessThan(60_000);
  expect([...new Set(seen)].sort((one, other) => one - other)).toEqual(
    Array.from({ length: last }, (_each, index) => index + 1),
  );
  expect(seen.length - last).toBeLessThanOrEqual(kills * batch);
});

test("a projection whose process is killed over and over holds each event once", async () => {
  const directory = await makeDirectory();
  await using store = await openEvents<Counted>(directory, { leaseMs: 5_000 });
  const start = () =>
    startChild(
      `
      const { openEvents, openProjection } = await import(${JSON.stringify(module)});
      const store = await openEvents(args[0], { leaseMs: 5_000 });
      const projection = await openProjection(store, {
        name: "counts", query: "all", key: ({ data }) => data.key, apply: (count = 0) => count + 1,
      });
      projection.run();
      say("running");`,
      directory,
    );
  let appended = 0;
  for (let round = 0; round < 4; round++) {
    const child = start();
    await child.hear();
    for (let time = 0; time < 20 + 5 * round; time++) await store.append(counted(++appended));
    await child.end("SIGKILL");
  }
  await using projection = await openProjection(store, {
    name: "counts",
    query: "all",
    key: ({ data }: { data: { key: string } }) => data.key,
    apply: (count: number | undefined) => (count ?? 0) + 1,
  });
  projection.run();
  await projection.waitUntilProcessed(appended);
  let sum = 0;
  for await (const [, count] of projection.all()) sum += count;
  expect(sum).toBe(appended);
});
