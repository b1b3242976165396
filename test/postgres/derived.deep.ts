// What is derived from a log on PostgreSQL: consumers, read models, decisions with snapshots, erasure.
import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { NewEvent } from "../../src/common.ts";
import { decide, memorySubjectKeys, model, openProjection, personal, isErased } from "../../src/events/index.ts";
import { listOf, numbers } from "../sites/event-logs.ts";
import { openPgStore } from "./stores.ts";

type Sold = NewEvent<"Sold", { sku: string; count: number }>;
const sold = (sku: string, count = 1): Sold => ({ type: "Sold", data: { sku, count }, tags: [`sku:${sku}`] });

const totals = (version = 1) => ({
  name: "totals",
  version,
  query: { types: ["Sold"] as const },
  key: (event: { data: { sku: string } }) => event.data.sku,
  apply: (total: number | undefined, event: { data: { count: number } }) => {
    const next = (total ?? 0) + event.data.count;
    return next < 0 ? undefined : next;
  },
});

it("a consumer that is stopped is continued by the next process, and each event comes once and in order", async () => {
  const name = randomUUID();
  const [first, second] = [await openPgStore(name), await openPgStore(name)];
  const [one, other] = [await first.events<Sold>(), await second.events<Sold>()];
  await one.append(numbers(1, 50).map((count) => sold("a", count)));
  const seen: number[] = [];
  const consumer = one.consume("mailer", "all", async ([event]) => void seen.push(event!.position));
  const waiting = other.consume("mailer", "all", async ([event]) => void seen.push(event!.position));
  await consumer.waitUntilProcessed(50);
  expect(await one.consumers()).toMatchObject([{ name: "mailer", position: 50, lag: 0 }]);
  await one.close();
  await other.append(sold("b"));
  await waiting.waitUntilProcessed(51);
  expect(seen).toEqual(numbers(1, 51));
});

it("a read model is kept by one process and read by all, is rebuilt beside, and deletes documents", async () => {
  const name = randomUUID();
  const [first, second] = [await openPgStore(name), await openPgStore(name)];
  const [one, other] = [await first.events<Sold>(), await second.events<Sold>()];
  await using kept = await openProjection<number, Sold>(one, totals());
  kept.run();
  for (const count of numbers(1, 20)) await one.append(sold(`s${count % 3}`, count));
  await kept.waitUntilProcessed(20);
  const read = await openProjection<number, Sold>(other, totals());
  expect(new Map(await listOf(read.all()))).toEqual(
    new Map([
      ["s0", 63],
      ["s1", 70],
      ["s2", 77],
    ]),
  );
  await one.append(sold("s0", -100));
  await read.waitUntilProcessed(21);
  expect(await read.get("s0")).toBe(undefined);
  await using next = await openProjection<number, Sold>(other, totals(2));
  await next.rebuild();
  expect(await next.get("s1")).toBe(70);
  expect(await kept.get("s1")).toBe(70);
  await next.dropOlder();
  await expect(kept.get("s1")).rejects.toMatchObject({ code: "NEWER_FORMAT" });
});

it("of twenty rivals for seven items seven win, with a snapshot too", async () => {
  const name = randomUUID();
  const logs = await Promise.all([1, 2].map(async () => await (await openPgStore(name)).events<Sold>()));
  await logs[0]!.append(numbers(1, 30).map(() => sold("x", 0)));
  const stock = model({
    query: { tags: ["sku:a"] },
    initial: 7,
    apply: (left: number, { data }) => left - (data as { count: number }).count,
    snapshot: { name: "stock", every: 1 },
  });
  const answers = await Promise.allSettled(
    numbers(1, 20).map((number) =>
      decide(
        logs[number % 2]!,
        { stock },
        ({ stock: left }) => {
          if (left === 0) throw new Error("sold out");
          return sold("a");
        },
        { retries: 100, timeoutMs: 60_000 },
      ),
    ),
  );
  expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(7);
  expect(await listOf(logs[0]!.read({ tags: ["sku:a"] }))).toHaveLength(7);
});

it("what is forgotten cannot be read any more, in any process", async () => {
  const keys = memorySubjectKeys();
  const name = randomUUID();
  const logs = await Promise.all([1, 2].map(async () => await (await openPgStore(name)).events("main", { keys })));
  await logs[0]!.append({ type: "Registered", data: { mail: personal("ada", "ada@example.org") } });
  const read = async (): Promise<unknown> => ((await logs[1]!.last())!.data as { mail: unknown }).mail;
  expect(await read()).toBe("ada@example.org");
  await keys.forget("ada");
  expect(isErased(await read())).toBe(true);
});
