// `holdfast copy` of hand-off boxes: through the public interface, a copy shows the same tickets in
// every state as its source, with their files, keys, attempts, groups, results and outputs.
import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openHandoff, type Handoff, type TicketState } from "../../src/handoff/index.ts";
import { copyStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { serverUrl } from "./stores.ts";

const states: readonly TicketState[] = ["incoming", "delayed", "processing", "archive", "error"];
const large = Buffer.alloc(1_500_000, "large ").toString();
const longKey = "k/".repeat(450);
const hard = 'ü"\\\u0001\ud83d\ude00';

function folder(): string {
  return join(makeScratch(), "box");
}

function rows(): string {
  const url = new URL(serverUrl());
  url.searchParams.set("store", randomUUID());
  url.hash = "handoff/orders";
  return url.href;
}

/** Everything that a box can have while no process works in it. */
async function fill(location: string): Promise<void> {
  await using box = await openHandoff(location);
  const publish = async (name: string, options = {}): Promise<string> =>
    (await box.publish({ [name]: name }, options)).id;
  // Done: with a result and outputs, with a key and without, twice under one key, and after a replay.
  await publish("done", { key: "done/1", meta: { customer: hard, n: [1, null] } });
  await (await take(box)).ack({ booked: [1, hard] });
  await box.publish({ "big.bin": large, "small.txt": "s" }, { key: longKey });
  const outputs = await take(box);
  await outputs.output("receipt.txt", "paid");
  await outputs.output("report.bin", large);
  await outputs.ack();
  const again = await publish("replayed");
  await (await take(box)).ack(1);
  await box.replay({ from: "archive", id: again });
  await (await take(box)).ack(2);
  // Failed, one of them after two attempts.
  await publish("bad", { key: "bad" });
  await (await take(box)).fail(`no ${hard}`);
  await publish("worse");
  await (await take(box)).retry({ delayMs: 0, reason: "busy" });
  await (await take(box)).fail("still");
  // Waiting: delayed, retried, parked, by priority, in groups, with an expiry.
  await publish("tomorrow", { delayMs: 86_400_000 });
  await publish("retried");
  await (await take(box)).retry({ delayMs: 86_400_000, reason: "later" });
  await publish("group/first".replace("/", "-"), { group: "g1" });
  await (await take(box)).retry({ delayMs: 86_400_000, reason: "the group waits" });
  for (let i = 0; i < 5; i++) await publish(`g1-${i}`, { group: "g1" });
  await publish("parked");
  expect(await box.takeParked(86_400_000)).toBeDefined();
  await publish("parked-of-group", { group: "g2" });
  expect(await box.takeParked(86_400_000)).toBeDefined();
  for (let i = 0; i < 3; i++) await publish(`g2-${i}`, { group: "g2" });
  await publish("returned");
  await (await take(box)).postpone({ delayMs: 0 });
  await box.publish({ a: "1", "b.json": "{}", "big.bin": large }, { priority: 1, key: "now", meta: hard });
  await publish("expires", { expiresMs: 86_400_000 });
}

async function take(box: Handoff): Promise<NonNullable<Awaited<ReturnType<Handoff["take"]>>>> {
  const delivery = await box.take({ waitMs: 10_000 });
  if (delivery === undefined) throw new Error("no ticket");
  return delivery;
}

async function dump(location: string): Promise<unknown> {
  await using box = await openHandoff(location, { create: false });
  const all: { readonly id: string; readonly contents: readonly string[] }[] = [];
  for (const state of states)
    for await (const ticket of box.list(state)) {
      const contents: string[] = [];
      for (const { name } of ticket.files) contents.push(await textOf(box.content(ticket.id, name)));
      for (const { name } of ticket.outputs)
        contents.push(await textOf(box.content(ticket.id, name, { output: true })));
      all.push({ ...ticket, contents });
    }
  const { oldestIncomingMs: _, ...stats } = await box.stats();
  const keys: unknown[] = [];
  for (const key of ["done/1", longKey, "bad", "now", "none"]) keys.push((await box.findByKey(key))?.id);
  const { problems } = await box.verify();
  all.sort((a, b) => (a.id < b.id ? -1 : 1));
  return { tickets: all, stats, keys, problems };
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Takes all that can be claimed, and returns the names in the order in which they came. */
async function drain(location: string): Promise<string[]> {
  await using box = await openHandoff(location, { create: false });
  const names: string[] = [];
  for (let each = await box.take({ waitMs: 0 }); each !== undefined; each = await box.take({ waitMs: 0 })) {
    names.push(each.files[0]?.name ?? "");
    await each.ack();
  }
  return names;
}

describe.each([
  ["a folder to a database", folder, rows],
  ["a database to a folder", rows, folder],
  ["a folder to a folder", folder, folder],
] as const)("a box copied from %s", (_, makeFrom, makeTo) => {
  test("has the same tickets in every state, and continues like its source", async () => {
    const [from, to] = [makeFrom(), makeTo()];
    await fill(from);
    const before = await dump(from);
    expect(before).toMatchObject({ stats: { archive: 3, error: 2, processing: 2, paused: false }, problems: [] });
    const [copied] = await copyStore(from, to, { verify: true });
    expect(copied).toMatchObject({ part: "box", added: 21, total: 21, equal: true });
    expect(await dump(to)).toEqual(before);
    expect(await copyStore(from, to, { verify: true })).toMatchObject([{ added: 0, total: 21, equal: true }]);
    {
      await using box = await openHandoff(to, { create: false });
      expect(await box.publish({ x: "x" }, { key: "done/1" })).toMatchObject({ duplicate: true });
      const parked = [];
      for await (const ticket of box.list("processing")) parked.push(ticket);
      for (const { id, attempt } of parked) await (await box.resumeParked(`${id}-${attempt}`)).ack();
      await box.publish({ last: "x" }, { group: "g2" });
    }
    const drained = await drain(to);
    expect(drained.filter((name) => name.startsWith("g2") || name === "last")).toEqual([
      "g2-0",
      "g2-1",
      "g2-2",
      "last",
    ]);
    // Their workers have swept what dead sessions had staged: the large file of this ticket was not among it.
    expect(drained).toContain("a");
    await expect(copyStore(from, to)).rejects.toMatchObject({ code: "COPY_CONFLICT", path: expect.any(String) });
    // Nothing was added, so the box goes on as before.
    await using box = await openHandoff(to, { create: false });
    expect(await box.stats()).toMatchObject({ paused: false });
  });
});

test("no worker claims from a box until all of it has arrived, and the copy then continues", async () => {
  const [from, to] = [folder(), rows()];
  {
    await using box = await openHandoff(from);
    await Promise.all(
      Array.from({ length: 200 }, (_, i) => box.publish({ a: String(i) }, { group: `g${i % 3}`, meta: i })),
    );
    await box.pause("for the move");
  }
  const stop = new AbortController();
  const signal = stop.signal;
  await expect(copyStore(from, to, { signal, onProgress: () => stop.abort() })).rejects.toThrow();
  {
    await using box = await openHandoff(to, { create: false });
    expect(await box.stats()).toMatchObject({ paused: true, pauseReason: expect.stringContaining("holdfast copy") });
    expect(await box.take({ waitMs: 0 })).toBeUndefined();
  }
  const [rest] = await copyStore(from, to, { verify: true });
  expect(rest).toMatchObject({ total: 200, equal: true });
  expect(rest?.added).toBeGreaterThan(0);
  expect(rest?.added).toBeLessThan(200);
  await using box = await openHandoff(to, { create: false });
  expect(await box.stats()).toMatchObject({ incoming: 200, paused: true, pauseReason: "for the move" });
});

test("a ticket with a damaged file is named, and the copy refused", async () => {
  const [from, to] = [folder(), rows()];
  let id = "";
  {
    await using box = await openHandoff(from);
    ({ id } = await box.publish({ "big.bin": large }));
  }
  const path = join(from, "data", id.slice(-2), id, "big.bin");
  await writeFile(path, large.replace("large", "LARGE"));
  await expect(copyStore(from, to)).rejects.toMatchObject({ code: "PAYLOAD_MISMATCH", id, file: "big.bin" });
  await rm(path);
  await expect(copyStore(from, to)).rejects.toMatchObject({ message: expect.stringContaining("big.bin") });
  await writeFile(path, large);
  expect(await copyStore(from, to, { verify: true })).toMatchObject([{ added: 1, equal: true }]);
});
