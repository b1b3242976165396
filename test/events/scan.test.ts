// Reading a whole log: in lists that the caller does not see.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openEvents } from "../../src/events/index.ts";
import { makeScratch } from "../sites/scratch.ts";

async function countedLog(
  count: number,
): Promise<{ directory: string; store: Awaited<ReturnType<typeof openEvents>> }> {
  const directory = makeScratch();
  const store = await openEvents(directory, { durability: "none" });
  await Promise.all(Array.from({ length: count }, (_, n) => store.append({ type: "Counted", data: n + 1 })));
  return { directory, store };
}

it("a read gives all events before a damaged line, then rejects", async () => {
  const { directory, store } = await countedLog(1000);
  const path = join(directory, "segments", "0000000001.ndjson");
  // The newline stays: only the content of the line changes.
  writeFileSync(path, readFileSync(path, "latin1").replace('"data":900}', '"data":901}'), "latin1");
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { position } of store.read()) seen.push(position);
  })();
  await expect(reading).rejects.toMatchObject({ code: "CORRUPT" });
  expect(seen).toEqual(Array.from({ length: 899 }, (_, n) => n + 1));
  await store.close();
});

it("a read ends at its limit, wherever that is in a list", async () => {
  const { store } = await countedLog(600);
  for (const [after, upTo] of [0, 1, 2, 254, 255, 256, 257, 511, 599, 600].flatMap((from) =>
    [1, 3, 255, 256, 257, 600].map((to) => [from, to] as const),
  )) {
    const seen: unknown[] = [];
    for await (const { data } of store.read("all", { after, upTo })) seen.push(data);
    expect(seen).toEqual(Array.from({ length: Math.max(0, upTo - after) }, (_, n) => after + n + 1));
  }
  await store.close();
});
