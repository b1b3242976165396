// A downgrade or upgrade whose answer is lost: a hold never says that it is wider than the table
// says.
import { once } from "node:events";
import { afterEach, beforeEach, expect, it } from "vitest";
import { holdfastError } from "../../src/errors.ts";
import type { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { LocksWorld, withDisk } from "../sites/path-locks.ts";

let world: LocksWorld;
let a: TablePathLocks;
let b: TablePathLocks;
/** How many of the looks of `a` fail that would tell that its slot counts. */
let failures: number;
/** Whether `a` cannot make any file. */
let isFull: boolean;

beforeEach(async () => {
  world = await LocksWorld.make();
  [failures, isFull] = [0, false];
  const tamper = withDisk((disk) => ({
    canOpen: async (path) => {
      if (failures > 0 && path.endsWith("/open")) {
        failures--;
        throw diskError("EIO", "open", path);
      }
      return await disk.canOpen(path);
    },
    createFile: async (path, bytes, options) => {
      if (isFull) throw diskError("ENOSPC", "create", path);
      await disk.createFile(path, bytes, options);
    },
  }));
  [a, b] = [await world.open({ tamper }), await world.open()];
});
afterEach(() => world.end());

const listedModes = async (): Promise<string[]> =>
  (await b.table.read()).state.requests.flatMap(({ claims }) => claims.map(({ mode }) => mode));

/** Fails as if the answer to an append were lost, before or after the append was made. */
function loseAnswers(locks: TablePathLocks, { isMade, times }: { readonly isMade: boolean; readonly times: number }) {
  const { table } = locks;
  const append = table.append.bind(table);
  let left = times;
  table.append = async (...args) => {
    if (left-- <= 0) return await append(...args);
    if (isMade) await append(...args);
    throw holdfastError("OUTCOME_UNKNOWN", "The answer was lost.", { path: "table" });
  };
}

it("a downgrade whose answer is lost asks the table again, and succeeds", async () => {
  const hold = await a.acquire("a", { mode: "tree" });
  failures = 1;
  await hold.downgrade("exact");
  expect(hold.requests).toMatchObject([{ path: "a", mode: "exact" }]);
  const other = await b.acquire("a/b");
  await hold.assertHeld();
  expect(await a.tryAcquire("a/b", { within: hold })).toBe(undefined);
  await other.release();
  await hold.release();
});

for (const isMade of [true, false])
  it(`a downgrade of unknown outcome leaves the hold narrow (it was ${isMade ? "" : "not "}made)`, async () => {
    const hold = await a.acquire("a", { mode: "tree" });
    const below = await a.acquire("a/b", { within: hold });
    loseAnswers(a, { isMade, times: 2 });
    await expect(hold.downgrade("exact")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(hold.requests).toMatchObject([{ path: "a", mode: "exact" }]);
    expect(below.signal.aborted).toBe(true);
    expect(await listedModes()).toEqual([isMade ? "exact" : "tree"]);
    // The monitor corrects the table.
    const other = await b.acquire("a/b", { timeoutMs: 20_000 });
    await hold.assertHeld();
    await other.release();
    await hold.release();
  });

for (const isMade of [true, false])
  it(`an upgrade of unknown outcome leaves the hold and the table narrow (it was ${isMade ? "" : "not "}made)`, async () => {
    const hold = await a.acquire("a");
    loseAnswers(a, { isMade, times: 1 });
    await expect(hold.upgrade("tree")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(hold.requests).toMatchObject([{ path: "a", mode: "exact" }]);
    expect(await listedModes()).toEqual(["exact"]);
    await (await b.acquire("a/b")).release();
    await hold.upgrade("tree");
    expect(await b.tryAcquire("a/b")).toBe(undefined);
    await hold.release();
  });

it("a downgrade that surely was not appended changes nothing", async () => {
  const hold = await a.acquire("a", { mode: "tree" });
  isFull = true;
  await expect(hold.downgrade("exact")).rejects.toMatchObject({ code: "DISK_FULL" });
  isFull = false;
  expect(hold.requests).toMatchObject([{ path: "a", mode: "tree" }]);
  expect(await b.tryAcquire("a/b")).toBe(undefined);
  await hold.release();
});

it("a hold that the table has with narrower claims is lost, and the first check says so", async () => {
  for (const ask of ["assertHeld", "refresh", "the watch"] as const) {
    const hold = await a.acquire("a", { mode: "tree" });
    await b.table.append(({ requests, redos }, { change }) => ({
      requests: requests.map((each) => ({ ...each, change, claims: [{ path: "a", mode: "exact", shared: false }] })),
      redos,
    }));
    if (ask === "the watch") await once(hold.signal, "abort");
    else await expect(hold[ask]()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(hold.signal.aborted).toBe(true);
    await hold.release();
  }
});

it("an upgrade and a downgrade that are called at once run one after the other", async () => {
  for (let round = 0; round < 10; round++) {
    const hold = await a.acquire("a", { mode: "tree" });
    await Promise.all([hold.downgrade("exact"), hold.upgrade("tree").catch(() => undefined)]);
    const [{ mode } = { mode: "" }] = hold.requests;
    expect(await listedModes()).toEqual([mode]);
    await hold.assertHeld();
    await hold.release();
  }
});
