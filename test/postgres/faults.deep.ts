// Failures of the server and of the way to it: nothing acknowledged is lost, nothing is doubled, and
// every failure has a typed answer.
import { randomUUID } from "node:crypto";
import { Client, Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { NewEvent } from "../../src/common.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { openPostgres } from "../../src/postgres/index.ts";
import { until } from "../waiting.ts";
import { listOf, numbers, positionsOf } from "../sites/event-logs.ts";
import { Proxy } from "./proxy.ts";
import type { PostgresServer } from "./server.ts";
import { openPgStore, serverUrl, startOwnServer } from "./stores.ts";

const noted = (id: string): NewEvent => ({ type: "Noted", data: id, id });

async function openProxy(): Promise<Proxy> {
  const proxy = await Proxy.open(serverUrl());
  onTestFinished(() => proxy.close());
  return proxy;
}

describe("a cut connection", () => {
  it("whose lost answer said that an append was committed makes no second append of it", async () => {
    const proxy = await openProxy();
    const store = await openPgStore(randomUUID(), { url: proxy.url });
    const events = await store.events();
    await events.append(noted("first"));
    let cuts = 0;
    proxy.cutsAt = (sent) => (sent.includes("hf_append_1") && cuts++ < 3 ? "unanswered" : undefined);
    const answers = await Promise.all(numbers(1, 20).map((number) => events.append({ type: "Noted", data: number })));
    expect(cuts).toBeGreaterThan(0);
    expect(answers.every(({ repeated }) => !repeated)).toBe(true);
    expect(answers.map(({ first }) => first).sort((one, other) => one - other)).toEqual(numbers(2, 21));
    expect(positionsOf(await listOf(events.read()))).toEqual(numbers(1, 21));
  });

  it("in the middle of a lock's append leaves one request, which its holder releases", async () => {
    const proxy = await openProxy();
    const name = randomUUID();
    const locks = await (await openPgStore(name, { url: proxy.url })).locks();
    const others = await (await openPgStore(name)).locks();
    let cuts = 0;
    proxy.cutsAt = (sent) => (sent.includes("update hf_chain") && cuts++ < 2 ? "unanswered" : undefined);
    const hold = await locks.acquire("a");
    expect(cuts).toBeGreaterThan(0);
    expect(await others.tryAcquire("a")).toBe(undefined);
    expect(await others.list()).toMatchObject([{ path: "a", holdId: hold.id }]);
    await hold.release();
    await (await others.acquire("a")).release();
  });

  it("that stays cut ends an append with OUTCOME_UNKNOWN and its ids, and a read with IO_ERROR", async () => {
    const proxy = await openProxy();
    const events = await (await openPgStore(randomUUID(), { url: proxy.url })).events("main", { lockTimeoutMs: 100 });
    await events.append(noted("a"));
    proxy.cutsAt = () => "unanswered";
    await expect(events.append(noted("b"))).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", ids: ["b"] });
    proxy.cutsAt = () => undefined;
    expect(await events.append(noted("b"))).toMatchObject({ first: 2 });
  });
});

describe("a server that is killed", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startOwnServer({ settings: ["fsync=on"] });
  });
  afterAll(() => server.stop());

  it("and restarted loses no acknowledged append and doubles none, and waiters go on", async () => {
    const name = randomUUID();
    const store = await openPgStore(name, { url: server.url, leaseMs: 60_000 });
    const other = await openPgStore(name, { url: server.url, leaseMs: 60_000 });
    const [events, locks, waiting] = [
      await store.events("main", { lockTimeoutMs: 60_000 }),
      await store.locks(),
      await other.locks(),
    ];
    const hold = await locks.acquire("held");
    const waiter = waiting.acquire("held", { timeoutMs: 60_000 });
    const acknowledged: number[] = [];
    let isOver = false;
    const append = async (): Promise<void> => {
      while (!isOver) acknowledged.push((await events.append({ type: "Noted", data: 0 })).first);
    };
    const callers = [append(), append(), append(), append()];
    for (let kills = 1; kills <= 3; kills++) {
      await until(() => acknowledged.length > 50 * kills);
      await server.kill();
      await server.restart();
    }
    await until(() => acknowledged.length > 300);
    isOver = true;
    await Promise.all(callers);
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    const stored = positionsOf(await listOf(events.read()));
    expect(stored).toEqual(numbers(1, acknowledged.length));
    expect(await events.verify()).toMatchObject({ ok: true, checked: acknowledged.length });
    await hold.release();
    await (await waiter).release();
  });
});

describe("a release that a crash of the server undid", () => {
  async function serverThatSyncsLate(): Promise<PostgresServer> {
    const server = await startOwnServer({ settings: ["wal_writer_delay=10s"] });
    onTestFinished(() => server.stop());
    return server;
  }

  it("is repeated by a process that does nothing else, so that others get the lock", async () => {
    const server = await serverThatSyncsLate();
    const options = { url: server.url, leaseMs: 60_000 };
    const locks = await (await openPgStore("main", options)).locks();
    const others = await (await openPgStore("main", options)).locks();
    await (await others.acquire("other")).release();
    const hold = await locks.acquire("a");
    await hold.release();
    await server.kill("SIGKILL");
    await server.restart();
    await (await others.acquire("a", { timeoutMs: 15_000 })).release();
  });

  it("is repeated although the server stays away for longer than calls wait for it", { timeout: 90_000 }, async () => {
    const server = await serverThatSyncsLate();
    const options = { url: server.url, leaseMs: 120_000 };
    const locks = await (await openPgStore("main", options)).locks();
    const hold = await locks.acquire("a");
    await hold.release();
    await server.kill("SIGKILL");
    // Time passes: the calls of 20 s end without the server.
    await new Promise((resolve) => setTimeout(resolve, 22_000));
    await server.restart();
    const others = await (await openPgStore("main", options)).locks();
    await (await others.acquire("a", { timeoutMs: 15_000 })).release();
  });
});

describe("a server that refuses", () => {
  async function roleWith(settings: string): Promise<string> {
    const name = `role_${randomUUID().slice(0, 8)}`;
    const admin = new Client(serverUrl());
    await admin.connect();
    await admin.query(
      `create role ${name} login ${settings}; grant select, insert, update, delete on all tables in schema public to ${name}`,
    );
    onTestFinished(async () => {
      await admin.query(`drop owned by ${name}; drop role ${name}`);
      await admin.end();
    });
    const url = new URL(serverUrl());
    url.username = name;
    return url.href;
  }

  it("writes lets reads work, and answers a write with NO_PERMISSION", async () => {
    const name = randomUUID();
    await (await (await openPgStore(name)).events()).append(noted("a"));
    const url = new URL(await roleWith(""));
    url.searchParams.set("options", "-c default_transaction_read_only=on");
    const events = await (await openPgStore(name, { url: url.href })).events();
    expect(positionsOf(await listOf(events.read()))).toEqual([1]);
    await expect(events.append(noted("b"))).rejects.toMatchObject({ code: "NO_PERMISSION" });
    await expect((await openPgStore(randomUUID())).events("main", { create: false })).rejects.toMatchObject({
      code: "NOT_A_STORE",
    });
  });

  it("more connections is waited for, and then answered with RESOURCE_BUSY", async () => {
    await openPgStore("warm");
    const url = await roleWith("connection limit 1");
    const pool = new Pool({ connectionString: url, max: 1, connectionTimeoutMillis: 200 });
    onTestFinished(() => pool.end());
    const store = await openPostgres(pool, { store: "warm" });
    const client = await pool.connect();
    const events = store.events("main", { lockTimeoutMs: 300 });
    // Time passes: nothing is free meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 500));
    client.release();
    const opened = await events;
    const busy = await pool.connect();
    await expect(opened.append(noted(randomUUID()))).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    busy.release();
    await store.close();
  });

  it("to run at READ COMMITTED by default still judges conditions one after the other", async () => {
    const url = new URL(serverUrl());
    url.searchParams.set("options", "-c default_transaction_isolation=serializable");
    const name = randomUUID();
    const stores = [await openPgStore(name, { url: url.href }), await openPgStore(name, { url: url.href })];
    expect(stores[0]?.capabilities.warnings.join()).toMatch(/isolation is serializable/);
    const logs = [await stores[0]!.events(), await stores[1]!.events()];
    const condition = { failIfEventsMatch: { tags: ["seat:1"] } };
    const seat: NewEvent = { type: "Taken", data: {}, tags: ["seat:1"] };
    const answers = await Promise.allSettled([...logs, ...logs, ...logs].map((log) => log.append(seat, { condition })));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const answer of answers)
      if (answer.status === "rejected") expect(isHoldfastError(answer.reason, "APPEND_CONDITION_FAILED")).toBe(true);
  });
});

describe("a process", () => {
  it("that sleeps past its lease loses its locks, and another one goes on", async () => {
    const proxy = await openProxy();
    const name = randomUUID();
    const store = await openPgStore(name, { url: proxy.url, leaseMs: 2000 });
    const locks = await store.locks();
    const hold = await locks.acquire("a");
    const others = await (await openPgStore(name, { leaseMs: 60_000 })).locks();
    const waiter = others.acquire("a", { timeoutMs: 30_000 });
    // No beat arrives from now on.
    proxy.cutsAt = (sent) => (sent.includes("set seen") ? "unanswered" : undefined);
    const next = await waiter;
    expect(hold.signal.aborted).toBe(true);
    expect(next.fence).toBeGreaterThan(hold.fence);
    await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await next.release();
  });

  it("keeps its locks while its event loop is blocked for most of its lease", async () => {
    const name = randomUUID();
    const locks = await (await openPgStore(name, { leaseMs: 4000 })).locks();
    const hold = await locks.acquire("a");
    const others = await (await openPgStore(name, { leaseMs: 60_000 })).locks();
    // Time passes: the thread, which begins after an eighth of the lease, beats meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const endMs = performance.now() + 3500;
    while (performance.now() < endMs);
    await hold.assertHeld();
    expect(await others.tryAcquire("a")).toBe(undefined);
    await hold.release();
  });
});
