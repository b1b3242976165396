// Actions of a console: they do what they say, record who asked, and nothing else writes to the store.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startConsole, type ConsoleAction, type RunningConsole } from "../../src/console/index.ts";
import type { Handoff } from "../../src/handoff/index.ts";
import { openStore, type Store } from "../../src/index.ts";
import { listOf } from "../sites/event-logs.ts";
import { until } from "../waiting.ts";
import { act, ask, makeSuiteScratch, signIn } from "./pages.ts";

const directory = makeSuiteScratch();
const told: ConsoleAction[] = [];
let store: Store;
let box: Handoff;
let running: RunningConsole;
let cookie: string;
let port: number;

beforeAll(async () => {
  store = await openStore(directory, { name: "till 1" });
  box = await store.handoff("labels");
  for (const key of ["a", "b", "c"]) {
    await box.publish({ "label.txt": key }, { key });
    await using delivery = await box.take();
    await delivery?.fail("no paper");
  }
  const bucket = await (await store.objects()).createBucket("photos");
  await bucket.setVersioning("enabled");
  await bucket.put("tom", "one");
  await bucket.put("tom", "two");
  running = await startConsole(store, { port: 0, allowActions: true, onAction: (action) => told.push(action) });
  ({ port, cookie } = await signIn(running.url));
});

afterAll(async () => {
  await running.close();
  await store.close();
});

async function get<T>(path: string): Promise<T> {
  const reply = await ask(port, `/api/${path}`, { headers: { cookie } });
  expect([path, reply.status]).toEqual([path, 200]);
  return reply.json as T;
}

test("reading every page of data writes nothing and joins nothing", async () => {
  const traces = (): string[] =>
    readdirSync(directory, { recursive: true, encoding: "utf8" })
      .filter((path) => !path.includes("beat"))
      .map((path) => `${path} ${statSync(join(directory, path)).ctimeMs}`)
      .sort();
  const before = traces();
  const { tickets } = await get<{ tickets: { id: string }[] }>("tickets?box=labels&state=error");
  expect(tickets).toHaveLength(3);
  expect((await get<{ tickets: unknown[] }>("tickets?box=labels&state=error&key=B")).tickets).toHaveLength(1);
  await get(`ticket?box=labels&id=${tickets[0]?.id ?? ""}`);
  const file = await ask(port, `/api/ticket-file?box=labels&name=label.txt&id=${tickets[0]?.id ?? ""}`, {
    headers: { cookie },
  });
  expect(file.headers["content-disposition"]).toMatch(/^attachment; filename="label\.txt"/);
  expect(file.headers["content-security-policy"]).toBe("default-src 'none'; sandbox");
  for (const path of [
    "overview",
    "locks",
    "logs",
    "boxes",
    "buckets",
    "bucket?bucket=photos",
    "keys?bucket=photos",
    "versions?bucket=photos&key=tom",
    "files",
    "changes",
    "files-work",
  ])
    // prettier-ignore
    await get(path);
  expect((await store.holders()).map(({ name }) => name)).toEqual(["till 1"]);
  expect(traces()).toEqual(before);
});

test("a replay, a discard, a pause, a release and a restore happen, and the log of the store says who asked", async () => {
  const ids = (await listOf(box.list("error"))).map(({ id }) => id);
  const [first = "", second = ""] = ids;
  expect((await act(port, cookie, "replay", { box: "labels", from: "error", ids: [first] })).json).toEqual({
    result: "1 ticket returned to the queue.",
  });
  expect((await box.find(first))?.state).toBe("incoming");
  await act(port, cookie, "discard", { box: "labels", from: "error", ids: [second] });
  expect(await box.find(second)).toBeUndefined();
  await act(port, cookie, "replay", { box: "labels", from: "error", all: true });
  expect((await box.stats()).error).toBe(0);
  await act(port, cookie, "pause", { box: "labels", reason: "moving" });
  expect(await box.stats()).toMatchObject({ paused: true, pauseReason: "moving" });
  await act(port, cookie, "resume", { box: "labels" });
  expect((await box.stats()).paused).toBe(false);
  const hold = await (await store.locks()).acquire("shelf");
  await act(port, cookie, "release", { path: "shelf" });
  await until(() => hold.signal.aborted);
  const bucket = await (await store.objects()).bucket("photos");
  const [, old] = (await bucket.listVersions()).versions;
  await act(port, cookie, "restore", { bucket: "photos", key: "tom", versionId: old?.versionId });
  expect(await (await bucket.get("tom")).text()).toBe("one");
  const log = await store.events("console");
  const recorded = await listOf(log.read());
  const actions = ["replay", "discard", "replay", "pause", "resume", "release", "restore"];
  expect(recorded.map(({ type }) => type)).toEqual(actions.flatMap(() => ["ActionRequested", "ActionDone"]));
  expect(recorded[0]).toMatchObject({
    data: { action: "replay", box: "labels", from: "error", ids: [first] },
    metadata: { by: expect.stringMatching(/ on /) as unknown, from: "127.0.0.1" },
  });
  expect(recorded[1]?.metadata["causationId"]).toBe(recorded[0]?.id);
  expect(told.map(({ action }) => action)).toEqual(actions);
  await until(async () => (await store.holders()).length === 1);
});

test("an action that fails is answered and recorded with the reason, and an unknown one is not done", async () => {
  expect((await act(port, cookie, "restore", { bucket: "none", key: "tom", versionId: "x" })).status).toBe(404);
  const log = await store.events("console");
  expect(await log.last()).toMatchObject({ type: "ActionFailed", data: { action: "restore" } });
  const head = await log.head();
  expect((await act(port, cookie, "explode", {})).status).toBe(404);
  expect((await act(port, cookie, "toString", {})).status).toBe(404);
  expect((await act(port, cookie, "replay", { box: "none", from: "error", all: true })).status).toBe(404);
  expect((await act(port, cookie, "replay", { box: "labels", from: "incoming", ids: ["x"] })).status).toBe(400);
  expect((await act(port, cookie, "replay", { box: "labels", from: "error", ids: [] })).status).toBe(400);
  expect(await log.head()).toBeGreaterThanOrEqual(head);
});
