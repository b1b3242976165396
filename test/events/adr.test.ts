// The tests of the decision record that this store goes back to (several instances on one
// directory, a lock held by another process), and what it left out: real processes.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { isHoldfastError } from "../../src/errors.ts";
import type { EventStore, EventStoreOptions, LogMode } from "../../src/events/model/event-store.ts";
import { openEvents } from "../../src/events/index.ts";
import { openStoreLock } from "../../src/locks/index.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import { Crew } from "../../harness/processes/crew.ts";
import { makeScratch } from "../sites/scratch.ts";
import { failureOf, listOf, numbers, positionsOf } from "../sites/event-logs.ts";

const modes: readonly LogMode[] = ["local", "share"];

async function open(directory: string, options: EventStoreOptions = {}): Promise<EventStore> {
  const store = await openEvents(directory, options);
  onTestFinished(() => store.close());
  return store;
}

/** Holds the lock of the log from outside, as another process would. */
async function holdLock(directory: string): Promise<() => Promise<void>> {
  const { osLock } = await openNodePorts(directory);
  const file = await osLock.open(`${directory}/.store.lock`);
  expect(await file.tryLock()).toBe(true);
  onTestFinished(() => file.close());
  return () => file.unlock();
}

describe.each(modes)("in mode %s", (mode) => {
  it("two instances with 50 appends each at once give 100 positions without a gap, and overwrite nothing", async () => {
    const directory = makeScratch();
    const stores = [await open(directory, { mode }), await open(directory, { mode })];
    const appended = await Promise.all(
      numbers(0, 99).map(async (each) => ({
        each,
        position: (await stores[each % 2]!.append({ type: "Appended", data: { each }, tags: [`each:${each}`] })).first,
      })),
    );
    expect(positionsOf(appended).sort((a, b) => a - b)).toEqual(numbers(1, 100));
    for (const store of [...stores, await open(directory)]) {
      const events = await listOf(store.read());
      expect(positionsOf(events)).toEqual(numbers(1, 100));
      for (const { each, position } of appended) expect(events[position - 1]?.data).toEqual({ each });
      expect(await store.last({ tags: ["each:7"] })).toMatchObject({ data: { each: 7 } });
    }
  });

  it("of two instances that decide by the same query exactly one succeeds, and the other gets the conflicting event", async () => {
    const directory = makeScratch();
    const stores = [await open(directory, { mode }), await open(directory, { mode })];
    for (let round = 1; round <= 10; round++) {
      const tags = [`round:${round}`];
      const results = await Promise.allSettled(
        stores.map(async (store, index) => {
          const after = await store.head();
          expect(await store.last({ tags })).toBe(undefined);
          const condition = { failIfEventsMatch: { tags }, after };
          return await store.append({ type: "Decided", data: { index }, tags }, { condition });
        }),
      );
      const statuses = results.map(({ status }) => status);
      // One may have read after the other was done.
      const refused = results.find((result) => result.status === "rejected");
      expect([...statuses].sort()).toEqual(["fulfilled", "rejected"]);
      const isRefusal = isHoldfastError(refused?.reason, "APPEND_CONDITION_FAILED");
      if (isRefusal) expect(refused?.reason).toMatchObject({ conflicts: [{ position: round }] });
      expect(await stores[0]?.head()).toBe(round);
    }
  });

  it("an append behind a lock held outside rejects with LOCK_TIMEOUT in time, names path and option, and writes nothing", async () => {
    const directory = makeScratch();
    const store = await open(directory, { mode, lockTimeoutMs: 200 });
    await store.append({ type: "Before", data: 1 });
    const release = await holdLock(directory);
    const startMs = performance.now();
    const error = await failureOf(store.append({ type: "Never", data: 2 }));
    const tookMs = performance.now() - startMs;
    expect(error).toMatchObject({
      code: "LOCK_TIMEOUT",
      action: "retry",
      waitedMs: 200,
      path: `${directory}/.store.lock`,
    });
    expect((error as Error).message).toMatch(/lockTimeoutMs/);
    expect(tookMs).toBeGreaterThan(190);
    expect(tookMs).toBeLessThan(2000);
    // The timeout of the call overrides that of the store.
    expect(await failureOf(store.append({ type: "Never", data: 2 }, { timeoutMs: 1 }))).toMatchObject({ waitedMs: 1 });
    expect(await failureOf(store.append({ type: "Never", data: 2 }, { timeoutMs: 0 }))).toMatchObject({ waitedMs: 0 });
    // Readers take no lock.
    expect(await store.head()).toBe(1);
    expect(await listOf((await open(directory)).read())).toHaveLength(1);
    await release();
    expect(await store.append({ type: "After", data: 3 })).toMatchObject({ first: 2 });
  });

  it("an append that waits too long for the lock names the process that has it", async () => {
    const directory = makeScratch();
    const store = await open(directory, { mode, lockTimeoutMs: 20 });
    await using lock = await openStoreLock(directory);
    const hold = await lock.acquire();
    const error = await failureOf(store.append({ type: "Never", data: 1 }));
    expect(error).toMatchObject({ code: "LOCK_TIMEOUT", blockedBy: [{ holder: { pid: process.pid } }] });
    expect((error as Error).message).toContain(`is held by process ${process.pid} on`);
    await hold.release();
  });

  it("an append that waits for a held lock ends with its signal; another one is made when the lock is free", async () => {
    const directory = makeScratch();
    const store = await open(directory, { mode });
    await store.append({ type: "Before", data: 1 });
    const release = await holdLock(directory);
    const controller = new AbortController();
    const cancelled = failureOf(
      store.append({ type: "Never", data: 2 }, { signal: controller.signal, timeoutMs: 60_000 }),
    );
    const waiting = store.append({ type: "After", data: 3 }, { timeoutMs: 60_000 });
    const reason = new Error("never mind");
    // Time passes: so that both wait by then. If they do not, the answers are the same.
    setTimeout(() => controller.abort(reason), 50);
    expect(await cancelled).toBe(reason);
    await release();
    expect(await waiting).toMatchObject({ first: 2 });
    expect((await listOf(store.read())).map(({ type }) => type)).toEqual(["Before", "After"]);
  });

  it("a call with a short timeout rejects in time, though calls with more time wait before it", async () => {
    const directory = makeScratch();
    const store = await open(directory, { mode });
    await store.append({ type: "Before", data: 1 });
    const release = await holdLock(directory);
    const patient = store.append({ type: "Patient", data: 2 }, { timeoutMs: 60_000 });
    // Time passes: so that its wait has begun. A call that is queued before that is the easy case.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const error = await failureOf(store.append({ type: "Never", data: 3 }, { timeoutMs: 50 }));
    expect(error).toMatchObject({ code: "LOCK_TIMEOUT" });
    await release();
    await patient;
  });

  it("a hundred appends, one after the other, take a reasonable time", async () => {
    const store = await open(makeScratch(), { mode });
    const startMs = performance.now();
    for (let each = 1; each <= 100; each++)
      expect((await store.append({ type: "Appended", data: each })).first).toBe(each);
    expect(performance.now() - startMs).toBeLessThan(30_000);
  });

  it("an append that failed has released the lock", async () => {
    const directory = makeScratch();
    const [one, other] = [await open(directory, { mode }), await open(directory, { mode, lockTimeoutMs: 1000 })];
    await one.append({ type: "There", data: 1 });
    for (let round = 0; round < 3; round++)
      expect(
        await failureOf(one.append({ type: "Never", data: 2 }, { condition: { failIfEventsMatch: "all" } })),
      ).toMatchObject({ code: "APPEND_CONDITION_FAILED" });
    expect(await other.append({ type: "After", data: 3 })).toMatchObject({ first: 2 });
  });

  it("when eight processes want 300 names, each name has exactly one winner, and all agree on it", async () => {
    const directory = makeScratch();
    const names = 300;
    const module = join(directory, "child.mjs");
    const modulePath = (path: string): string =>
      JSON.stringify(pathToFileURL(compiledModule(new URL(`../../${path}`, import.meta.url))).href);
    // Each process takes the names in its own order, some at a time, so that they meet all the
    // time.
    writeFileSync(
      module,
      `import { openEvents } from ${modulePath("src/events/index.ts")};
       import { report } from ${modulePath("harness/processes/child-side.ts")};
       const [name, number] = process.argv.slice(2);
       const store = await openEvents(${JSON.stringify(`${directory}/log`)}, { mode: ${JSON.stringify(mode)}, lockTimeoutMs: 60_000 });
       const claim = async (wanted) => {
         const tags = ["name:" + wanted];
         try {
           await store.append({ type: "Claimed", data: { by: name }, tags }, { condition: { failIfEventsMatch: { tags } } });
           return wanted;
         } catch (error) {
           if (error.code !== "APPEND_CONDITION_FAILED" || error.conflicts.length !== 1) throw error;
           return undefined;
         }
       };
       const won = [];
       for (let from = 0; from < ${names}; from += 10) {
         const wanted = Array.from({ length: 10 }, (_, index) => (from + (index * 7 + Number(number)) % 10));
         won.push(...(await Promise.all(wanted.map(claim))).filter((each) => each !== undefined));
       }
       await store.close();
       report({ won });
       process.exit(0);`,
    );
    const childNames = numbers(1, 8).map((each) => `p${each}`);
    const crew = new Crew<{ won: number[] }>({ names: childNames, module, argsOf: (name) => [name, name.slice(1)] });
    await crew.run(async () => {
      while (crew.endings.length < childNames.length) await new Promise((resolve) => setTimeout(resolve, 20));
    });
    expect(crew.endings.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      childNames.map(() => ({ code: 0, stderr: "" })),
    );
    const winners = new Map<number, string>();
    for (const { from, report } of crew.history)
      for (const name of report.won) {
        expect(winners.get(name)).toBe(undefined);
        winners.set(name, from);
      }
    expect([...winners.keys()].sort((a, b) => a - b)).toEqual(numbers(0, names - 1));
    const events = await listOf((await open(`${directory}/log`)).read());
    expect(positionsOf(events)).toEqual(numbers(1, names));
    for (const { data, tags } of events) expect(data).toEqual({ by: winners.get(Number(tags[0]?.slice(5))) });
    rmSync(module);
  });
});
