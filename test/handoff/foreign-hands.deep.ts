// Foreign hands in a box: files that cannot be read, directories that are removed under a running program, and calls
// with wrong arguments. One bad file keeps no other ticket from being worked.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { decodeRecord, encodeRecord, type RecordKind } from "../../src/format/record.ts";
import { openStore } from "../../src/index.ts";
import { openHandoff, type Delivery, type Handoff } from "../../src/handoff/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";

interface RawTicket {
  readonly files: readonly object[];
  readonly inline: { readonly harmless?: string };
}

/** A ticket's record as it is written, with whatever is in it. */
const rawTicket: RecordKind<RawTicket> = { kind: "ticket", decode: (body) => body as RawTicket };

async function open(directory: string = join(makeScratch(), "box")): Promise<Handoff> {
  const box = await openHandoff(directory, { leaseMs: 2_000 });
  onTestFinished(() => box.close());
  return box;
}

/** The only file below `parent` whose name begins with the id of the ticket. */
function fileOf(parent: string, id: string): string {
  const found = readdirSync(parent, { recursive: true, encoding: "utf8" }).find((path) => path.includes(id));
  if (found === undefined) throw new Error(`${id} is not in ${parent}`);
  return join(parent, found);
}

/** In the place of the ticket stands a directory: no process can read it. */
function spoil(path: string): void {
  rmSync(path);
  mkdirSync(path);
}

/** Until so many are done, and so many are dead letters. */
async function workOff(box: Handoff, count: number, errors = 0): Promise<string[]> {
  const done: string[] = [];
  const consumer = box.consume(async ({ id }) => void done.push(id), { backoffMs: { min: 10, max: 20 } });
  await until(async () => done.length >= count && (await box.stats()).error >= errors);
  await consumer.stop();
  return done;
}

describe("a ticket that cannot be read", () => {
  it("goes to the dead letters, and the others are processed", async () => {
    const box = await open();
    const bad = await box.publish({ a: "1" });
    const good = await Promise.all([1, 2, 3].map((index) => box.publish({ a: `${index}` })));
    spoil(fileOf(join(box.directory, "incoming"), bad.id));
    expect((await workOff(box, 3, 1)).sort()).toEqual(good.map(({ id }) => id).sort());
    expect(fileOf(join(box.directory, "error"), bad.id)).toContain(bad.id);
  });

  it("blocks neither delayed tickets nor the tickets of its group", async () => {
    const box = await open();
    const late = await box.publish({ a: "1" }, { delayMs: 400 });
    spoil(fileOf(join(box.directory, "delayed"), late.id));
    const first = await box.publish({ a: "1" }, { group: "g" });
    const second = await box.publish({ a: "2" }, { group: "g" });
    spoil(fileOf(join(box.directory, "lanes"), first.id));
    expect(await workOff(box, 1, 2)).toEqual([second.id]);
  });

  it("of a dead worker returns to the queue, and also ends in the dead letters", async () => {
    const directory = join(makeScratch(), "box");
    const box = await open(directory);
    const { id } = await box.publish({ a: "1" });
    const dead = join(directory, "processing", `${"0".repeat(35)}1`);
    mkdirSync(dead, { recursive: true });
    renameSync(fileOf(join(directory, "incoming"), id), join(dead, `${id}-1.json`));
    spoil(join(dead, `${id}-1.json`));
    const other = await box.publish({ a: "2" });
    expect(await workOff(box, 1)).toEqual([other.id]);
  });
});

describe("a ticket whose file names lead out of its directory", () => {
  it.each(["../x", "..", ".", "a/b", "a\\b", "/etc/x"])(
    "%s is damaged, and nothing is written for it",
    async (name) => {
      const box = await open();
      const { id } = await box.publish({ harmless: "1" });
      const path = fileOf(join(box.directory, "incoming"), id);
      const record = decodeRecord(rawTicket, readFileSync(path), path);
      const files = [{ ...record.files[0], name }];
      writeFileSync(path, encodeRecord(rawTicket, { ...record, files, inline: { [name]: record.inline.harmless } }));
      expect(await box.take()).toBe(undefined);
      await until(async () => (await box.stats()).error === 1);
    },
  );
});

describe("an entry of the ledger that cannot be read", () => {
  it("makes its ticket a dead letter with the reason, and the others are processed", async () => {
    const box = await open();
    await box.publish({ a: "1" }, { key: "k" });
    await workOff(box, 1);
    const [shard = ""] = readdirSync(join(box.directory, "ledger"));
    const [entry = ""] = readdirSync(join(box.directory, "ledger", shard));
    writeFileSync(join(box.directory, "ledger", shard, entry), "torn");
    // As after the key was forgotten: a second ticket that has it.
    rmSync(join(box.directory, "keys"), { recursive: true });
    const again = await box.publish({ a: "1" }, { key: "k" });
    const other = await box.publish({ a: "2" });
    expect(await workOff(box, 1, 1)).toEqual([other.id]);
    const found = await box.waitFor(again.id);
    expect(found).toMatchObject({ state: "error" });
    expect(found.history.at(-1)?.reason).toMatch(/ledger entry of its key cannot be read.*verify/s);
  });
});

describe("a directory that another program removes", () => {
  it.each([
    "archive",
    "processing",
    "staging",
    "notes",
    "error",
    "parked",
    "trash",
    "delayed",
    "incoming",
    "data",
    "keys",
  ])("%s is made again by the running program", async (name) => {
    const box = await open();
    const big = "x".repeat(100_000);
    let failures = 0;
    const seen = new Set<string>();
    const consumer = box.consume(
      async (delivery) => {
        seen.add(delivery.key);
        if (delivery.attempt === 1) throw new Error("once");
      },
      { backoffMs: { min: 1, max: 2 } },
    );
    // A publish that was under way in the removed directory may be refused; it is told so.
    const publish = async (key: string): Promise<void> => {
      for (;;)
        try {
          return void (await box.publish({ a: big }, { key }));
        } catch (error) {
          if (failures++ > 20) throw error;
        }
    };
    await publish("before");
    await until(async () => (await box.findByKey("before"))?.state === "archive");
    rmSync(join(box.directory, name), { recursive: true, force: true });
    for (const key of ["one", "two", "three"]) await publish(key);
    await until(async () => seen.has("one") && seen.has("two") && seen.has("three"));
    await until(async () => (await box.stats()).processing === 0 && (await box.stats()).delayed === 0);
    await consumer.stop();
    await consumer.done;
  });
});

describe("wrong arguments of a delivery", () => {
  it("are refused, and the ticket can still be settled", async () => {
    const box = await open();
    const { id } = await box.publish({ a: "1" });
    const delivery = (await box.take()) as Delivery;
    for (const delayMs of ["100", Infinity, NaN, -1, 8.64e15])
      for (const call of ["retry", "postpone"] as const)
        await expect(delivery[call]({ delayMs: delayMs as number })).rejects.toBeInstanceOf(RangeError);
    await expect(delivery.fail(5 as unknown as string)).rejects.toBeInstanceOf(TypeError);
    await delivery.ack();
    expect(await box.find(id)).toMatchObject({ state: "archive" });
  });
});

it("a commit whose outcome is unknown is retried after a while, and the attempts end", async () => {
  const box = await open();
  const { id } = await box.publish({ a: "1" }, { key: "k" });
  // Where the entry of the key would be stands a directory without a record.
  const hash = createHash("sha256").update("k").digest("hex");
  mkdirSync(join(box.directory, "ledger", hash.slice(0, 3), hash), { recursive: true });
  let calls = 0;
  const consumer = box.consume(async () => void calls++, { attempts: 3, backoffMs: { min: 5, max: 10 } });
  await until(async () => (await box.stats()).error === 1);
  await consumer.stop();
  expect(calls).toBeLessThanOrEqual(4);
  expect(await box.find(id)).toMatchObject({ state: "error" });
});

it("nothing is sent to a box that does not exist, or is not on the same disk", async () => {
  const [box, memory, other] = [await open(), await openHandoff("memory:"), await openHandoff("memory:")];
  onTestFinished(async () => void (await Promise.all([memory.close(), other.close()])));
  for (const [from, to] of [
    [box, memory],
    [memory, other],
    [memory, box],
    [box, { directory: join(makeScratch(), "none") } as Handoff],
  ] as const) {
    await from.publish({ a: "1" });
    const delivery = (await from.take()) as Delivery;
    await expect(delivery.send(to, { b: "2" })).rejects.toMatchObject({ code: "NOT_A_STORE" });
    await delivery.ack();
  }
  expect(await memory.stats()).toMatchObject({ incoming: 0 });
});

it("a box that disappears is not created again by its publishers or senders", async () => {
  const directory = makeScratch();
  await using store = await openStore(directory);
  const [from, to] = [await store.handoff("from"), await store.handoff("to")];
  await from.publish({ a: "1" }, { key: "k" });
  const delivery = (await from.take()) as Delivery;
  await delivery.send(to, { b: "2" });
  renameSync(to.directory, `${to.directory}-away`);
  await delivery.ack();
  await expect(to.publish({ c: "3" })).rejects.toMatchObject({ code: expect.stringMatching(/NOT_A_STORE|LOCK_LOST/) });
  await expect(to.publish({ c: "3" })).rejects.toMatchObject({ code: "NOT_A_STORE" });
  expect(readdirSync(join(directory, "handoff")).sort()).toEqual(["from", "to-away"]);
  // It is done; what it sends is published when the box is back.
  renameSync(`${to.directory}-away`, to.directory);
  const consumer = from.consume(async () => undefined);
  await until(async () => (await to.stats()).incoming === 1);
  await consumer.stop();
  expect(await from.findByKey("k")).toMatchObject({ state: "archive" });
});
