// Holds within holds: a commit under an inner hold counts as one under the outer hold, and no hold
// outlives its outer one.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { HoldfastError } from "../../src/errors.ts";
import type { PathHold } from "../../src/locks/path/path-hold.ts";
import type { RedoDraft } from "../../src/locks/redo/draft.ts";
import type { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { changedDisk } from "../sites/disks.ts";
import { nextTurn, until } from "../waiting.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
let a: TablePathLocks;
let b: TablePathLocks;
/** Whether the file that `a` renames to d/f is in use. */
let isBusy: boolean;

beforeEach(async () => {
  world = await LocksWorld.make();
  isBusy = false;
  a = await world.open({
    tamper: (ports) => ({
      ...ports,
      disk: changedDisk(ports.disk, (real) => ({
        rename: async (from, to) => {
          if (isBusy && to.endsWith("/d/f")) throw diskError("EBUSY", "rename", to);
          await real.rename(from, to);
        },
      })),
    }),
  });
  b = await world.open();
  await mkdir(join(world.root, "d"));
  await writeFile(join(world.root, "d/f"), "old");
});
afterEach(() => world.end());

const textOfFile = async (): Promise<string> => await readFile(join(world.root, "d/f"), "utf8");

async function newDraft(hold: PathHold, text: string): Promise<RedoDraft> {
  const draft = await a.draft(hold);
  await draft.in("d/f", (path) => a.table.ground.ports.disk.createFile(path, Buffer.from(text), { sync: true }));
  return draft;
}

describe("what is committed and cannot be completed yet", () => {
  it("under an inner hold keeps that hold and the outer one locked, and is not forgotten", async () => {
    const outer = await a.acquire("d", { mode: "tree" });
    const inner = await a.acquire("d/f", { within: outer });
    const draft = await newDraft(inner, "new");
    isBusy = true;
    await expect(draft.commit()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(inner.release()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(a.acquire("d/f", { within: outer })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await expect(outer.transfer()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(outer.release()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    expect(await b.tryAcquire("d/f")).toBe(undefined);
    isBusy = false;
    await outer.release();
    const next = await b.acquire("d/f");
    expect(await textOfFile()).toBe("new");
    await next.release();
  });

  it("under an inner hold that was lost keeps the others within the outer one out", async () => {
    const outer = await a.acquire("d", { mode: "tree" });
    const inner = await a.acquireAll(["d/f", "z"], { within: outer, idleMs: 300 });
    const draft = await newDraft(inner, "new");
    isBusy = true;
    await expect(draft.commit()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    while (!inner.signal.aborted) await sleep(20);
    await expect(a.acquire("d/f", { within: outer })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    isBusy = false;
    const next = await a.acquire("d/f", { within: outer, timeoutMs: 20_000 });
    expect(await textOfFile()).toBe("new");
    await next.release();
    await outer.release();
  });

  it("keeps its hold from being downgraded, because it would happen under the lock of the next holder", async () => {
    const hold = await a.acquire("d", { mode: "tree" });
    const draft = await newDraft(hold, "new");
    isBusy = true;
    await expect(draft.commit()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(hold.downgrade("exact")).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    expect(await b.tryAcquire("d/f")).toBe(undefined);
    isBusy = false;
    await hold.downgrade("exact");
    expect(await textOfFile()).toBe("new");
    await (await b.acquire("d/f")).release();
    await hold.release();
  });
});

it("a draft prepared before a downgrade is refused where the hold does not reach any more", async () => {
  const hold = await a.acquire("d", { mode: "tree" });
  const draft = await newDraft(hold, "new");
  await hold.downgrade("exact");
  const other = await b.acquire("d/f");
  await expect(draft.commit()).rejects.toMatchObject({ code: "NOT_HELD", path: "d/f" });
  await other.assertHeld();
  expect(await textOfFile()).toBe("old");
  await hold.assertHeld();
  await hold.release();
});

it("a commit during a downgrade is done before it, or refused", async () => {
  for (let round = 0; round < 10; round++) {
    const hold = await a.acquire("d", { mode: "tree" });
    const draft = await newDraft(hold, `new ${round}`);
    const commit = draft.commit().then(
      () => "committed",
      (error: unknown) => (error as HoldfastError).code,
    );
    for (let turn = 0; turn < round; turn++) await nextTurn();
    await hold.downgrade("exact");
    const next = await b.acquire("d/f", { timeoutMs: 10_000 });
    const found = await textOfFile();
    expect(["committed", "NOT_HELD"]).toContain(await commit);
    expect(await textOfFile()).toBe(found);
    expect(found === `new ${round}`).toBe((await commit) === "committed");
    await next.release();
    await hold.release();
  }
});

/** What a hold shows that was told of its end. */
function expectLost(hold: PathHold): void {
  expect(hold.signal.aborted).toBe(true);
  expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST" });
}

describe("a hold within another ends with that one", () => {
  it("and its signal aborts when the outer hold is released or transferred", async () => {
    for (const end of ["release", "transfer"] as const) {
      const outer = await a.acquire("d", { mode: "tree" });
      const [part, other] = [await a.acquire("d/f", { within: outer }), await a.acquire("x", { within: outer })];
      const deeper = await a.acquire("d/f", { within: part });
      const { signal } = part;
      const token = await outer[end]();
      for (const hold of [part, other, deeper]) expectLost(hold);
      expect(signal.aborted).toBe(true);
      await (await b.acquire("x")).release();
      if (token !== undefined) await (await b.receive(token)).release();
      await (await b.acquire("d/f")).release();
    }
  });

  it("an inner hold with a request of its own ends when the outer hold is lost", async () => {
    const idle = await a.acquire("idle", { idleMs: 100 });
    const inner = await a.acquire("y", { within: idle });
    await (await b.acquireAll(["idle", "y"], { timeoutMs: 10_000 })).release();
    expectLost(inner);
    const broken = await a.acquire("broken");
    const left = await a.acquire("z", { within: broken });
    await b.break("broken");
    await (await b.acquire("z", { timeoutMs: 10_000 })).release();
    expectLost(left);
  });

  it("an inner hold that is still being acquired ends with the outer hold", async () => {
    for (let turns = 0; turns < 30; turns++) {
      const outer = await a.acquire("d", { mode: "tree" });
      const entering = ["d/f", "x"].map((path) =>
        a.acquire(path, { within: outer, timeoutMs: 10_000 }).catch((error: unknown) => error),
      );
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      await outer.release();
      for (const answer of await Promise.all(entering))
        if (answer instanceof Error) expect(answer).toMatchObject({ code: "LOCK_LOST" });
        else expectLost(answer as PathHold);
      await (await b.acquireAll(["d/f", "x"])).release();
    }
  });

  it("no hold is admitted within a hold that is being transferred", async () => {
    let [goOn, arrive] = [(): void => undefined, (): void => undefined];
    const stop = new Promise<void>((resolve) => (goOn = resolve));
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const here = await world.open({
      tamper: (ports) => ({
        ...ports,
        disk: changedDisk(ports.disk, (real) => ({
          createFile: async (path, bytes, options) => {
            if (path.endsWith(".transfer")) {
              arrive();
              await stop;
            }
            await real.createFile(path, bytes, options);
          },
        })),
      }),
    });
    const outer = await here.acquire("d", { mode: "tree" });
    const transfer = outer.transfer();
    await arrived;
    await expect(here.acquire("d/f", { within: outer })).rejects.toMatchObject({ code: "LOCK_LOST" });
    goOn();
    await (await b.receive(await transfer)).release();
  });

  it("a caller that waits within a hold gets LOCK_LOST when that hold ends, and blocks no other", async () => {
    const reader = await b.acquire("y", { shared: true });
    const outer = await a.acquire("x");
    const waiting = a.acquire("y", { within: outer, timeoutMs: Infinity }).catch((error: unknown) => error);
    while ((await b.list()).flatMap((lock) => lock.waiting).length === 0) await sleep(5);
    await outer.release();
    expect(await waiting).toMatchObject({ code: "LOCK_LOST" });
    await (await (await world.open()).acquire("y", { shared: true })).release();
    await reader.release();
  });

  it("an inner hold cannot be transferred", async () => {
    const outer = await a.acquire("d", { mode: "tree", shared: true });
    const inner = await a.acquire("d/f", { within: outer });
    await expect(inner.transfer()).rejects.toThrow(TypeError);
    await inner.assertHeld();
    await outer.release();
  });
});

it("a caller that waited within a hold for a path that it covers no more gets a request of its own", async () => {
  const outer = await a.acquire("d", { mode: "tree" });
  const first = await a.acquire("d/f", { within: outer });
  const waiting = a.acquire("d/f", { within: outer, timeoutMs: 10_000 });
  await until(() => world.waiting > 0);
  await outer.downgrade("exact");
  expectLost(first);
  const second = await waiting;
  expect(await b.tryAcquire("d/f")).toBe(undefined);
  await second.assertHeld();
  await outer.release();
});
