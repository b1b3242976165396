// Statements in a store that grows without new statistics: a plan that was made for an empty table must not read all of
// it later. The bench `postgres:scale` does the same with a million rows and good statistics.
import { randomUUID } from "node:crypto";
import { Pool } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { openPostgres } from "../../src/postgres/index.ts";
import { startOwnServer } from "./stores.ts";

const calls = 32;
const growth = 2_500;
/** A batch is as large as a process makes them. */
const callers = 50;

interface Cost {
  readonly rows: number;
  readonly blocks: number;
}

it("a call touches as much of a store that has grown as of a small one", async () => {
  const server = await startOwnServer({ settings: ["autovacuum=off"] });
  onTestFinished(() => server.stop());
  // One connection, which keeps its plans, and counts what it touched when it is asked.
  const pool = new Pool({ connectionString: server.url, max: 1 });
  onTestFinished(() => pool.end());
  const store = await openPostgres(pool);
  onTestFinished(() => store.close());
  const [events, box, objects] = [await store.events(), await store.handoff("box"), await store.objects()];
  const bucket = await objects.createBucket("bucket", { versioning: "enabled" });
  const rows: Readonly<Record<string, () => Promise<unknown>>> = {
    append: async () => {
      const tags = [`seat:${randomUUID()}`];
      await events.append({ type: "Taken", data: {}, tags }, { condition: { failIfEventsMatch: { tags } } });
    },
    "append again": () => events.append({ type: "Noted", data: {}, id: "known" }),
    publish: () => box.publish({ n: "1" }, { key: randomUUID() }),
    "take, ack": async () => await (await box.take())?.ack(),
    "publish to a group, take, output, ack": async () => {
      await box.publish({ n: "1" }, { group: randomUUID() });
      const delivery = await box.take();
      await delivery?.output("copy", "1");
      await delivery?.ack();
    },
    put: () => bucket.put(randomUUID(), "body"),
    delete: () => bucket.delete(randomUUID()),
  };

  const touched = async (): Promise<Cost> => {
    await pool.query("select pg_stat_force_next_flush()");
    const { rows: found } = await pool.query<Cost>(`select
      (select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 from pg_stat_user_tables) as rows,
      (select sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))::float8
        from pg_statio_user_tables) as blocks`);
    return found[0] as Cost;
  };
  const cost = async (call: () => Promise<unknown>): Promise<Cost> => {
    const before = await touched();
    for (let n = 0; n < calls; n++) await call();
    await Promise.all(Array.from({ length: callers }, call));
    const after = await touched();
    const each = (what: keyof Cost): number => (after[what] - before[what]) / (calls + callers);
    return { rows: each("rows"), blocks: each("blocks") };
  };

  const grown: { call: string; small: Cost; large: Cost }[] = [];
  for (const [name, call] of Object.entries(rows)) {
    await cost(call);
    const small = await cost(call);
    for (let n = 0; n < growth; n += callers) await Promise.all(Array.from({ length: callers }, call));
    grown.push({ call: name, small, large: await cost(call) });
  }
  console.log(grown);
  // The indexes have another level, and removed rows were not vacuumed.
  const bounded = grown.filter(
    ({ small, large }) => large.rows <= 1.5 * small.rows + 8 && large.blocks <= 1.5 * small.blocks + 12,
  );
  expect(bounded).toEqual(grown);
});
