// Read models as an operator sees them, without the program that defines them.
import { expect, test } from "vitest";
import {
  listReadModels,
  memoryEvents,
  openProjection,
  readDocuments,
  type ReadDocumentsOptions,
} from "../../../src/events/index.ts";
import { listOf } from "../../sites/event-logs.ts";

test("read models are listed with their lag, and their documents are read in pages and by key", async () => {
  const events = memoryEvents();
  for (const sku of ["A", "B", "C"]) await events.append({ type: "Sold", data: { sku }, tags: [sku] });
  expect(await listReadModels(events)).toEqual([]);
  expect(await listOf(readDocuments(events, "stock"))).toEqual([]);
  const stock = await openProjection(events, {
    name: "stock",
    version: 2,
    query: "all",
    key: (event) => event.tags[0],
    apply: (count: number | undefined) => (count ?? 0) + 1,
    tags: () => ["in stock"],
  });
  expect(await listReadModels(events)).toEqual([{ name: "stock" }]);
  await stock.rebuild();
  await events.append({ type: "Sold", data: {}, tags: ["A"] });
  expect(await listReadModels(events)).toEqual([{ name: "stock", version: 2, position: 3, lag: 1 }]);
  const keys = async (options: ReadDocumentsOptions): Promise<string[]> =>
    (await listOf(readDocuments(events, "stock", options))).map(({ key }) => key);
  const all = await keys({});
  expect([...all].sort()).toEqual(["A", "B", "C"]);
  expect([...(await keys({ limit: 2 })), ...(await keys({ skip: 2 }))]).toEqual(all);
  expect(await listOf(readDocuments(events, "stock", { key: "B" }))).toEqual([
    { key: "B", position: 2, tags: ["in stock"], state: 1 },
  ]);
  expect(await listOf(readDocuments(events, "stock", { key: "Z" }))).toEqual([]);
  {
    await using run = stock.run();
    await stock.waitUntilProcessed(4);
    expect(await listReadModels(events)).toMatchObject([{ position: 4, lag: 0, holder: { state: "alive" } }]);
    void run;
  }
  await events.close();
});
