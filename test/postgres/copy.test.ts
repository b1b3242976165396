// `holdfast copy` between folders and a database: what arrives is what was there, a further run adds
// what is missing, and nothing is copied that would arrive incomplete.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { exportEvents, openEvents, type EventStore, type NewEvent } from "../../src/events/index.ts";
import { copyStore, openStore } from "../../src/index.ts";
import { openPostgres } from "../../src/postgres/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { serverUrl } from "./stores.ts";

async function run(...args: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const written = { stdout: "", stderr: "" };
  const streams = {
    stdout: { write: (text: string) => (written.stdout += text) },
    stderr: { write: (text: string) => (written.stderr += text) },
  };
  const exitCode = await runCommandLine(args, streams, new AbortController().signal);
  return { exitCode, ...written };
}

function newLocation(): string {
  const url = new URL(serverUrl());
  url.searchParams.set("store", randomUUID());
  return url.href;
}

/** Everything that a line can have: batches, conditions, ids, added tags, texts that are hard to store. */
async function fill(log: EventStore, count = 60): Promise<void> {
  for (let i = 0; i < count; i++) {
    const event: NewEvent = {
      type: i % 3 ? "Sold" : "Stöck",
      data: { i, text: 'q"\\\u0000\ud83d\ude00', 2: 1, a: [1.5e-7, -0, null] },
      tags: [`t${i % 7}`, `x"\\${i}`],
      ...(i % 4 ? {} : { id: `own-${randomUUID()}` }),
      ...(i % 6 ? {} : { metadata: { by: "ada" } }),
    };
    const { id: _, ...other } = event;
    const condition = { failIfEventsMatch: { types: ["Never"], tags: ["n"] }, ...(i % 8 ? {} : { after: i }) };
    await log.append(i % 10 ? event : [event, other], i % 2 ? {} : { condition });
    if (i % 25 === 24) await log.addTags([i - 3, i - 2], ["late", `l${i}`]);
  }
}

async function consume(log: EventStore, name: string, upTo: number): Promise<void> {
  const consumer = log.consume(name, "all", async () => undefined, { batch: 10 });
  await consumer.waitUntilProcessed(upTo);
  await consumer.stop();
}

/** An export without the id of the log and the checksums that begin with it. */
async function dump(location: string): Promise<string[]> {
  let text = "";
  for await (const chunk of exportEvents(location)) text += chunk;
  const [, ...lines] = text.split("\n");
  return lines.map((line) => line.replace(/,"crc":"[0-9a-f]{8}"\}$/, "}").replace(/"last":"[0-9a-f]{8}"/, ""));
}

test("a store of events is the same in a database and back in a folder, with its consumers", async () => {
  const [folder, shop, back] = [join(makeScratch(), "shop"), newLocation(), join(makeScratch(), "back")];
  {
    await using store = await openStore(folder);
    const log = await store.events("main");
    await fill(log);
    await consume(log, "mail", await log.head());
    await (await store.events("orders")).append({ type: "Ordered", data: 1 });
    await (await store.locks()).acquire("stock/a");
  }
  const there = await run("copy", folder, shop, "--verify", "--json");
  expect(there).toMatchObject({ exitCode: 0, stderr: "" });
  expect(
    there.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown),
  ).toMatchObject([
    { part: "log", added: 66, total: 66, consumers: 1, equal: true },
    { part: "log", added: 1, total: 1, consumers: 0, equal: true },
  ]);
  expect(await dump(`${shop}#events/main`)).toEqual(await dump(join(folder, "events", "main")));
  {
    await using store = await openPostgres(shop);
    const log = await store.events("main");
    expect(await log.consumers()).toMatchObject([{ name: "mail", position: 66, lag: 0 }]);
    await log.append(
      { type: "After", data: null, tags: ["t1"] },
      { condition: { failIfEventsMatch: { types: ["After"] } } },
    );
    await log.addTags([1], ["moved"]);
    await consume(log, "mail", 67);
  }
  expect(await copyStore(shop, back, { verify: true })).toMatchObject([{ total: 67, equal: true }, { equal: true }]);
  expect(await dump(join(back, "events", "main"))).toEqual(await dump(`${shop}#events/main`));
  await using log = await openEvents(join(back, "events", "main"));
  expect(await log.consumers()).toMatchObject([{ name: "mail", position: 67 }]);
  expect((await log.verify()).ok).toBe(true);
});

test("a further run adds what is missing, and a log with other events is refused", async () => {
  const [folder, shop] = [join(makeScratch(), "log"), newLocation()];
  const target = `${shop}#events/main`;
  const add = async (location: string, count: number): Promise<void> => {
    await using log = await openEvents(location);
    await fill(log, count);
    await consume(log, "mail", await log.head());
  };
  await add(folder, 30);
  expect(await copyStore(folder, target)).toMatchObject([{ added: 33, total: 33, consumers: 1 }]);
  await add(folder, 20);
  expect(await copyStore(folder, target, { verify: true })).toMatchObject([{ added: 22, total: 55, equal: true }]);
  expect(await copyStore(folder, target, { verify: true })).toMatchObject([{ added: 0, total: 55, equal: true }]);
  {
    await using log = await openEvents(target);
    expect(await log.consumers()).toMatchObject([{ name: "mail", position: 55 }]);
    await log.append({ type: "Other", data: 1 });
  }
  expect(await run("copy", folder, target, "--verify")).toMatchObject({ exitCode: 5 });
  await add(folder, 1);
  await expect(copyStore(folder, target)).rejects.toMatchObject({ code: "LOG_REWOUND" });
});

test("a copy interrupted in the middle continues where it stopped", async () => {
  const [folder, shop] = [join(makeScratch(), "log"), newLocation()];
  {
    await using log = await openEvents(folder);
    await Promise.all(Array.from({ length: 600 }, (_, i) => log.append({ type: "A", data: i })));
  }
  const target = `${shop}#events/main`;
  const stop = new AbortController();
  const copy = copyStore(folder, target, { signal: stop.signal, onProgress: () => stop.abort() });
  await expect(copy).rejects.toThrow();
  const [rest] = await copyStore(folder, target, { verify: true });
  expect(rest).toMatchObject({ total: 600, equal: true });
  expect(rest?.added).toBeLessThan(600);
  expect(rest?.added).toBeGreaterThan(0);
});

test("a store that a process has open is not copied, in a folder and in a database", async () => {
  const [folder, shop] = [join(makeScratch(), "shop"), newLocation()];
  for (const [from, to] of [
    [folder, newLocation()],
    [shop, join(makeScratch(), "none")],
  ] as const) {
    // prettier-ignore
    const store = from === folder ? await openStore(from) : await openPostgres(from);
    const hold = await (await store.locks()).acquire("stock/a");
    expect(await run("copy", from, to)).toMatchObject({ exitCode: 75 });
    await hold.release();
    await store.close();
    expect(await run("copy", from, to)).toMatchObject({ exitCode: 0 });
  }
});

test("a store with a tree of files is refused as a whole, and each of its logs can be copied", async () => {
  const file = join(makeScratch(), "a.txt");
  await run("publish", file);
  const [folder, shop] = [join(makeScratch(), "shop"), newLocation()];
  await run("events", "append", folder, "--log", "main", "--type", "A");
  await run("files", "add", folder, "a", file);
  const refused = await run("copy", folder, shop);
  expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
  expect(refused.stderr).toContain("UNSUPPORTED");
  expect(await run("verify", shop)).toMatchObject({ exitCode: 66 });
  expect(await run("copy", join(folder, "events", "main"), `${shop}#events/main`)).toMatchObject({ exitCode: 0 });
});

test("a store with a log, a box and objects arrives whole", async () => {
  const file = join(makeScratch(), "a.txt");
  await run("publish", file);
  const [folder, shop] = [join(makeScratch(), "shop"), newLocation()];
  await run("events", "append", folder, "--log", "main", "--type", "A");
  await run("handoff", "put", folder, "--box", "orders", file);
  await run("objects", "mb", folder, "--bucket", "photos");
  const { exitCode, stdout, stderr } = await run("copy", folder, shop, "--verify", "--json");
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown),
  ).toMatchObject([
    { part: "log", total: 1, equal: true },
    { part: "box", added: 1, total: 1, equal: true },
    { part: "objects", equal: true },
  ]);
});
