// PostgreSQL publishes the same operations as a folder, without the password of its location.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { openStore, operationNames, storeMetrics } from "../../src/index.ts";
import { openStoreLock } from "../../src/locks/index.ts";
import { valuesOf } from "../telemetry/busy-store.ts";
import { useEvents, useHandoff, useLocks, useObjects } from "../telemetry/every-operation.ts";
import { Listener } from "../telemetry/listeners.ts";
import { serverUrl } from "./stores.ts";

test("a store in a database has the same numbers for Prometheus", async () => {
  const location = `${serverUrl()}?store=${randomUUID()}`;
  await using store = await openStore(location);
  await (await store.events("main")).append({ type: "A", data: 1 });
  await (await store.handoff("orders")).publish({ a: "1" });
  await (await (await store.objects()).createBucket("photos")).put("k", "123");
  await using _hold = await (await store.locks()).acquire("a");
  expect(valuesOf(await storeMetrics(store, { location }))).toMatchObject({
    'holdfast_events_total{log="main"}': 1,
    'holdfast_handoff_tickets{box="orders",state="incoming"}': 1,
    'holdfast_objects_bytes{bucket="photos"}': 3,
    holdfast_locks_held: 1,
    'holdfast_metrics_unreadable{what="all"}': 0,
  });
});

test("every operation that a database has publishes its start and its end", async () => {
  const location = `${serverUrl()}?store=${randomUUID()}`;
  using listener = new Listener();
  {
    await using store = await openStore(location);
    await useEvents(store);
    await useHandoff(store);
    await useLocks(store);
    await useObjects(store);
  }
  {
    await using lock = await openStoreLock(location);
    await (await lock.acquire()).release();
  }
  const parts = new Set(["events", "handoff", "locks", "objects", "upload"]);
  const expected = operationNames.filter((name) => parts.has(name.split(".")[0] ?? ""));
  expect(expected.filter((name) => !listener.names.has(name))).toEqual([]);
  expect(listener.stepsOf("storeLock.acquire")).toEqual(["start", "end", "asyncStart", "asyncEnd"]);
  for (const { message } of listener.published) expect(message.location).not.toMatch(/:[^/@]+@/);
});
