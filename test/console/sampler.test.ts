// The sampler: a page opens before everything is counted, and what an action changed is waited for.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { Sampler } from "../../src/console/watch/sampler.ts";
import { WatchedStore } from "../../src/console/watch/watched-store.ts";
import { openStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";

/** A store with one ticket, whose box answers only while the gate is open. */
async function openGated(): Promise<{ sampler: Sampler; setOpen: (isOpen: boolean) => void } & AsyncDisposable> {
  const directory = makeScratch();
  const store = await openStore(directory);
  await (await store.handoff("labels")).publish({ "a.txt": "x" });
  let open = (): void => undefined;
  let gate = Promise.resolve();
  class GatedStore extends WatchedStore {
    override async box(name: string): ReturnType<WatchedStore["box"]> {
      await gate;
      return await super.box(name);
    }
  }
  const watched = new GatedStore(store);
  return {
    sampler: new Sampler(watched),
    setOpen: (isOpen) => {
      open();
      if (!isOpen) gate = new Promise((resolve) => (open = resolve));
    },
    [Symbol.asyncDispose]: async () => {
      open();
      await watched.close();
      await store.close();
    },
  };
}

test("a part that takes long does not hold up a sample, and counts nothing until it was loaded", async () => {
  await using gated = await openGated();
  const { sampler, setOpen } = gated;
  setOpen(false);
  const first = await sampler.sample();
  expect(first.holders).toHaveLength(1);
  expect(first.boxes).toEqual([{ name: "labels" }]);
  expect(sampler.history).toEqual([]);
  setOpen(true);
  await vi.waitFor(async () => expect((await sampler.sample()).boxes[0]?.stats).toMatchObject({ incoming: 1 }));
  expect(sampler.history.length).toBeGreaterThan(0);
});

test("after an action, the next sample waits for what it changed", async () => {
  await using gated = await openGated();
  const { sampler, setOpen } = gated;
  await vi.waitFor(async () => expect((await sampler.sample()).boxes[0]?.stats).toBeDefined());
  setOpen(false);
  sampler.expire();
  let isDone = false;
  const sample = sampler.sample().finally(() => (isDone = true));
  // Time passes: longer than a sample waits for its parts otherwise.
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(isDone).toBe(false);
  setOpen(true);
  expect((await sample).boxes[0]?.stats).toMatchObject({ incoming: 1 });
});

test("a log that a program is about to create is no problem, and is shown once it exists", async () => {
  const directory = makeScratch();
  await using store = await openStore(directory);
  const watched = new WatchedStore(store);
  const sampler = new Sampler(watched);
  try {
    mkdirSync(join(directory, "events", "sales"), { recursive: true });
    await vi.waitFor(async () => expect(await sampler.sample()).toMatchObject({ logs: [], problems: [] }));
    await (await store.events("sales")).append({ type: "Sold", data: {} });
    sampler.expire();
    expect(await sampler.sample()).toMatchObject({ logs: [{ name: "sales", head: 1 }], problems: [] });
  } finally {
    await watched.close();
  }
});

test("a lock that was waited for is shown as acquired at its grant, not at its request", async () => {
  const directory = makeScratch();
  await using store = await openStore(directory);
  await using rival = await openStore(directory);
  const watched = new WatchedStore(store);
  const sampler = new Sampler(watched);
  try {
    const hold = await (await store.locks()).acquire("shelves", { mode: "tree" });
    const granted = (await rival.locks()).acquire("shelves/north.md", { timeoutMs: 60_000 });
    await vi.waitFor(async () => expect((await sampler.sample()).locks[0]?.waiting).toHaveLength(1), 10_000);
    const releasedMs = Date.now();
    await hold.release();
    await using _hold = await granted;
    sampler.expire();
    await sampler.sample();
    const acquired = sampler.activity.filter(({ what }) => what === "acquired");
    expect(acquired).toMatchObject([{ subject: "shelves/north.md" }]);
    expect(acquired[0]?.at.getTime()).toBeGreaterThanOrEqual(releasedMs);
  } finally {
    await watched.close();
  }
});
