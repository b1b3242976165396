import { afterEach, expect, test } from "vitest";
import { ExplorerPool, type ExploreTask } from "../../harness/explore/pool.ts";

const pools: ExplorerPool[] = [];
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())));

function newPool(workersMax: number): ExplorerPool {
  const pool = new ExplorerPool(workersMax);
  pools.push(pool);
  return pool;
}

const small: ExploreTask = { kind: "scenario", name: "publish: replace, power cuts (weak)", options: {} };

test.each([1, 2])("%d threads explore more scenarios than there are threads, each once", async (workersMax) => {
  const pool = newPool(workersMax);
  const all = await Promise.all([1, 2, 3, 4, 5].map(() => pool.explore(small)));
  expect(
    new Set(all.map(({ scenario, exhausted, states }) => JSON.stringify([scenario, exhausted, states]))).size,
  ).toBe(1);
  expect(all[0]).toMatchObject({ scenario: small.name, exhausted: true });
});

test("a scenario that does not exist is refused, and the thread goes on to the next", async () => {
  const pool = newPool(1);
  const missing = pool.explore({ ...small, name: "no such scenario" });
  const next = pool.explore(small);
  await expect(missing).rejects.toThrow(`There is no scenario "no such scenario".`);
  expect((await next).exhausted).toBe(true);
});

test("a known-wrong variant is caught in a thread as well", async () => {
  const task: ExploreTask = { kind: "mutant", name: "gate per process", options: {} };
  await expect(newPool(1).explore(task)).resolves.toHaveProperty("violation.message");
});
