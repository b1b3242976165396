// The channels of operations and signals: complete, in order, and with the caller's context.
import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { memoryEvents, memorySubjectKeys, personal } from "../../src/events/index.ts";
import { openFiles } from "../../src/files/index.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { openStore, operationNames, signalNames, type OperationMessage } from "../../src/index.ts";
import { openPathLocks, openStoreLock, Semaphore } from "../../src/locks/index.ts";
import { operationChannel } from "../../src/telemetry/operation.ts";
import { makeScratch } from "../sites/scratch.ts";
import { useEvents, useFiles, useHandoff, useLocks, useObjects } from "./every-operation.ts";
import { Listener } from "./listeners.ts";

test("every operation publishes its start and its end, and names its place", async () => {
  const directory = makeScratch();
  using listener = new Listener();
  {
    await using store = await openStore(`${directory}/store`);
    await useEvents(store);
    await useHandoff(store);
    await useLocks(store);
    await useObjects(store);
    await useFiles(store);
  }
  await using lock = await openStoreLock(`${directory}/lock`);
  await (await lock.tryAcquire())?.release();
  await (await lock.acquire()).release();
  await lock.withLock(async () => undefined);
  await lock.close();
  const semaphore = new Semaphore(`${directory}/nightly.lock`);
  await (await semaphore.tryAcquire())?.release();
  await (await semaphore.acquire()).release();
  await semaphore.withLock(async () => undefined);
  await semaphore.status();
  await semaphore.findHolder();
  await semaphore.release({ force: true });
  await semaphore.clean();

  expect(listener.names).toEqual(new Set(operationNames.filter((name) => name !== "s3.request")));
  for (const message of new Set(listener.published.map((each) => each.message))) {
    const steps = listener.published.filter((each) => each.message === message).map(({ at }) => at);
    const isFailed = steps.includes("error");
    const expected = ["start", "end", ...(isFailed ? ["error"] : []), "asyncStart", "asyncEnd"];
    expect([message.operation, steps]).toEqual([message.operation, expected]);
    expect(message.location.startsWith(directory)).toBe(true);
  }
});

test("an operation that fails publishes its error, and the caller gets the same one", async () => {
  using listener = new Listener();
  await using events = memoryEvents();
  await events.append({ type: "A", data: 1 });
  const condition = { failIfEventsMatch: "all" } as const;
  const error: unknown = await events
    .append({ type: "A", data: 2 }, { condition })
    .catch((failure: unknown) => failure);
  expect(error).toMatchObject({ code: "APPEND_CONDITION_FAILED" });
  const [ok, failed] = listener.of("events.append");
  expect(ok).toMatchObject({ count: 1, result: { first: 1, last: 1 } });
  expect(ok).not.toHaveProperty("error");
  expect(failed?.error).toBe(error);
  // A caller's mistake is reported as without listeners.
  expect(() => events.read("all", { limit: -1 })).toThrow(RangeError);
  await expect(events.append(undefined as never)).rejects.toThrow(TypeError);
});

test("a method that a subclass overrides and calls is one operation", async () => {
  using listener = new Listener(["files.close"]);
  await (await openFiles("memory:")).close();
  expect(listener.stepsOf("files.close")).toEqual(["start", "end", "asyncStart", "asyncEnd"]);
});

test("an iteration is one operation: it ends with the loop, and counts its items", async () => {
  using listener = new Listener(["events.read"]);
  await using events = memoryEvents();
  await events.append(["A", "B", "C"].map((type) => ({ type, data: 1 })));
  const all = events.read();
  expect(listener.published).toEqual([]);
  for await (const _event of all);
  for await (const _event of events.read()) break;
  expect(listener.of("events.read").map(({ count }) => count)).toEqual([3, 1]);
  const whole = ["start", "end", "asyncStart", "asyncEnd"];
  expect(listener.stepsOf("events.read")).toEqual([...whole, ...whole]);
});

test("the context that a listener binds holds in the operation, its continuations and its iteration, and not after", async () => {
  const context = new AsyncLocalStorage<string>();
  const around = new AsyncLocalStorage<string>();
  const { start } = tracingChannel<unknown, OperationMessage>("holdfast:handoff.handle");
  start.bindStore(context, ({ id = "" }: OperationMessage) => id);
  const channel = operationChannel("events.decide");
  const all = {
    start: (message: OperationMessage) => void (message.around = (work) => around.run("decides", work)),
    end: () => undefined,
    asyncStart: () => undefined,
    asyncEnd: () => undefined,
    error: () => undefined,
  };
  channel.subscribe(all);
  try {
    await using box = await openHandoff("memory:");
    const { id } = await box.publish({ a: "1" });
    const seen: unknown[] = [];
    await box.consume(
      async (delivery) => {
        seen.push(context.getStore());
        await delivery.text("a");
        seen.push(context.getStore());
      },
      { idleMs: 0 },
    ).done;
    expect(seen).toEqual([id, id]);
    expect(context.getStore()).toBeUndefined();
    const { decide } = await import("../../src/events/index.ts");
    await using events = memoryEvents();
    const decided = await decide(events, {}, async () => {
      await Promise.resolve();
      return { events: [], result: around.getStore() };
    });
    expect(decided.result).toBe("decides");
    expect(around.getStore()).toBeUndefined();
  } finally {
    start.unbindStore(context);
    channel.unsubscribe(all);
  }
});

test("every step of an iteration has the context of its first", async () => {
  const context = new AsyncLocalStorage<string>();
  const { start } = operationChannel("events.read");
  const seen: unknown[] = [];
  const keys = memorySubjectKeys();
  const find = keys.find.bind(keys);
  // Called within each step, to decrypt the event.
  keys.find = async (subject) => {
    seen.push(context.getStore());
    return await find(subject);
  };
  await using events = memoryEvents({ keys });
  for (const name of ["Ada", "Bob"])
    await events.append({ type: "Named", data: { name: personal("customer:1", name) } });
  start.bindStore(context, () => "reading");
  try {
    seen.length = 0;
    for await (const _event of events.read()) seen.push(context.getStore());
    expect(new Set(seen)).toEqual(new Set(["reading", undefined]));
    // Each event is decrypted in the operation, and handled by the loop outside of it.
    expect(seen.filter((each) => each === undefined)).toHaveLength(2);
  } finally {
    start.unbindStore(context);
  }
});

test("a repeated append is the same, whatever trace each call carries", async () => {
  let number = 0;
  const channel = operationChannel("events.append");
  const all = {
    start: ({ carrier }: OperationMessage) => void (carrier !== undefined && (carrier["traceparent"] = `${++number}`)),
    end: () => undefined,
    asyncStart: () => undefined,
    asyncEnd: () => undefined,
    error: () => undefined,
  };
  channel.subscribe(all);
  try {
    await using events = memoryEvents();
    const event = { type: "A", data: 1, id: "one", metadata: { user: "ada" } };
    await events.append(event);
    expect(await events.append(event)).toMatchObject({ first: 1, repeated: true });
    await expect(events.append({ ...event, metadata: { user: "bob" } })).rejects.toMatchObject({
      code: "EVENT_ID_REUSED",
    });
    expect((await events.last())?.metadata).toEqual({ user: "ada", trace: { traceparent: "1" } });
    // The caller's own metadata stays as it is.
    await events.append({ type: "A", data: 1, metadata: { trace: "mine" } });
    expect((await events.last())?.metadata).toEqual({ trace: "mine" });
    expect(event).not.toHaveProperty("metadata.trace");
    await expect(events.append([undefined as never])).rejects.toThrow(TypeError);
  } finally {
    channel.unsubscribe(all);
  }
});

test("who waits for a lock, who loses it and which ticket dies is published", async () => {
  const directory = makeScratch();
  using listener = new Listener([]);
  await using locks = await openPathLocks(directory);
  const hold = await locks.acquire("a");
  const waiting = locks.acquire("a", { timeoutMs: 60_000 });
  await expect.poll(() => listener.signalsNamed("holdfast:lock.waiting")).toEqual([{ location: directory, path: "a" }]);
  expect(listener.signalsNamed("holdfast:lock.waited")).toEqual([]);
  await locks.break("a");
  await (await waiting).release();
  expect(listener.signalsNamed("holdfast:lock.waited")).toMatchObject([{ path: "a", acquired: true }]);
  expect(listener.signalsNamed("holdfast:lock.lost")).toMatchObject([
    { path: "a", id: hold.id, error: { code: "LOCK_LOST" } },
  ]);
  await using box = await openHandoff("memory:");
  const { id } = await box.publish({ a: "1" });
  await (await box.take())?.fail("torn");
  expect(listener.signalsNamed("holdfast:ticket.dead")).toMatchObject([{ id, attempt: 1, reason: "torn" }]);
});

test("docs/telemetry.md lists every operation and every signal, and no other", async () => {
  const page = await readFile(new URL("../../docs/telemetry.md", import.meta.url), "utf8");
  const listed = [...page.slice(page.indexOf("## Operations")).matchAll(/^\| `(holdfast:[\w.]+|\w+\.\w+)` +\|/gm)].map(
    ([, name]) => name,
  );
  expect(new Set(listed)).toEqual(new Set([...operationNames, ...signalNames]));
  expect(listed).toHaveLength(operationNames.length + signalNames.length);
});
