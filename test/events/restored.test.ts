// Files of a log are deleted, replaced or put back, while a program has it open or before one opens
// it: no answer is wrong, and no acknowledged event is lost silently.
import {
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { EventStore, LogMode } from "../../src/events/model/event-store.ts";
import { verifyEvents } from "../../src/events/index.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";
import { failureOf, listOf, numbers, openOn, positionsOf } from "../sites/event-logs.ts";

const modes: readonly LogMode[] = ["local", "share"];
const newDirectory = (): string => join(makeScratch(), "log");

async function open(directory: string, mode?: LogMode): Promise<EventStore> {
  return await openOn(await openNodePorts(directory), directory, { mode });
}

async function append(store: EventStore, ...data: unknown[]): Promise<number[]> {
  const positions: number[] = [];
  for (const each of data) positions.push((await store.append({ type: "Counted", data: each, tags: ["x"] })).first);
  return positions;
}

/** A closed log; its events have the data 1, 2 … `count`. */
async function makeLog(mode: LogMode, count: number): Promise<string> {
  const directory = newDirectory();
  const store = await open(directory, mode);
  await append(store, ...numbers(1, count));
  await store.close();
  return directory;
}

function filesOf(directory: string): string[] {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
  // The files of the processes that have it open come and go.
  return names.filter((name) => !name.startsWith(".holdfast") && !name.startsWith("index"));
}

function segments(directory: string): string[] {
  return readdirSync(join(directory, "segments"))
    .filter((name) => name.endsWith(".ndjson"))
    .sort()
    .map((name) => join(directory, "segments", name));
}

async function dataOf(store: EventStore): Promise<unknown[]> {
  return (await listOf(store.read())).map(({ data }) => data);
}

/** Every use is refused: no judgement, no acknowledgement, no event. */
async function expectRefused(store: EventStore, code: string): Promise<void> {
  const condition = { failIfEventsMatch: { tags: ["never"] } };
  expect(await failureOf(store.append({ type: "Counted", data: "refused" }))).toMatchObject({ code });
  expect(await failureOf(store.append({ type: "Counted", data: "refused" }, { condition }))).toMatchObject({ code });
  expect(await failureOf(listOf(store.read()))).toMatchObject({ code });
  expect(await failureOf(store.head())).toMatchObject({ code });
}

describe.each(modes)("a log whose record is gone, mode %s,", (mode) => {
  it("is not taken for a new one: nothing is created, and both modes are refused", async () => {
    const directory = await makeLog(mode, 5);
    rmSync(join(directory, "log.json"));
    const before = filesOf(directory);
    for (const asked of [undefined, ...modes])
      expect(await failureOf(open(directory, asked))).toMatchObject({
        code: "CORRUPT",
        path: join(directory, "log.json"),
      });
    expect(filesOf(directory)).toEqual(before);
    expect(await verifyEvents(directory)).toMatchObject({ ok: false });
  });

  it.each(["segments", "all but the segments"])("is reported also without %s", async (lost) => {
    const directory = await makeLog(mode, 5);
    for (const name of readdirSync(directory))
      if ((name === "segments") === (lost === "segments") || name === "log.json")
        rmSync(join(directory, name), { recursive: true });
    if (lost === "segments")
      cpSync(await makeLog(mode, 1), directory, {
        recursive: true,
        filter: (path) => !/log\.json|segments/.test(path),
      });
    expect(await failureOf(open(directory))).toMatchObject({ code: "CORRUPT" });
  });

  it("opens as before when the record is put back, and by `verify --repair` without a backup", async () => {
    const directory = await makeLog(mode, 5);
    const record = readFileSync(join(directory, "log.json"));
    rmSync(join(directory, "log.json"));
    writeFileSync(join(directory, "log.json"), record);
    expect(await dataOf(await open(directory))).toEqual([1, 2, 3, 4, 5]);
    rmSync(join(directory, "log.json"));
    const report = await verifyEvents(directory, { repair: true });
    expect(report.problems[0]).toMatchObject({ severity: "damage", repaired: true });
    expect(await verifyEvents(directory)).toMatchObject({ ok: true, checked: 5 });
    const store = await open(directory);
    expect(await append(store, 6)).toEqual([6]);
    expect(JSON.parse(readFileSync(join(directory, "log.json"), "utf8"))).toMatchObject({
      body: (JSON.parse(record.toString()) as { body: object }).body,
    });
  });
});

describe("the chain of tenures", () => {
  it.each(["its epochs", "its directory of epochs", "the whole of it"])(
    "that has lost %s does not make the log empty: positions never begin again",
    async (what) => {
      const directory = await makeLog("share", 10);
      const epochs = join(directory, "tenures/epochs");
      if (what === "its epochs") for (const name of readdirSync(epochs)) rmSync(join(epochs, name));
      else rmSync(what === "the whole of it" ? join(directory, "tenures") : epochs, { recursive: true });
      const before = filesOf(directory);
      for (let time = 1; time <= 2; time++)
        expect(await failureOf(open(directory))).toMatchObject({
          code: "CORRUPT",
          message: expect.stringContaining("verify") as string,
        });
      expect(filesOf(directory)).toEqual(before);
      expect(await verifyEvents(directory)).toMatchObject({ ok: false });
      expect(await verifyEvents(directory, { repair: true })).toMatchObject({ checked: 10 });
      const store = await open(directory);
      expect(await dataOf(store)).toEqual(numbers(1, 10));
      expect(await append(store, 11)).toEqual([11]);
      expect(await store.verify()).toMatchObject({ ok: true, checked: 11 });
    },
  );

  it("that was put back alone is refused: the segments have more than it says", async () => {
    for (const count of [1, 12]) {
      const directory = await makeLog("share", 5);
      cpSync(join(directory, "tenures"), `${directory}.tenures`, { recursive: true });
      const store = await open(directory);
      await append(store, ...numbers(6, 5 + count));
      await store.close();
      rmSync(join(directory, "tenures"), { recursive: true });
      cpSync(`${directory}.tenures`, join(directory, "tenures"), { recursive: true });
      const refused = await failureOf(open(directory).then((opened) => append(opened, "in the place of another")));
      expect(refused).toMatchObject({ code: "CORRUPT" });
      expect(await verifyEvents(directory)).toMatchObject({ ok: false });
      await verifyEvents(directory, { repair: true });
      const mended = await open(directory);
      expect(await dataOf(mended)).toEqual(numbers(1, 5 + count));
      expect(await append(mended, "next")).toEqual([6 + count]);
    }
  });
});

describe.each(modes)("an older copy in the place of an open log, mode %s,", (mode) => {
  // How many events other processes appended to the copy: fewer than were lost, as many, more.
  it.each([0, 2, 3, 4])(
    "is refused in processes that had the log open, and they change nothing in it: %i",
    async (others) => {
      const directory = newDirectory();
      const [writer, reader] = [await open(directory, mode), await open(directory, mode)];
      await append(writer, 1, 2, 3);
      cpSync(directory, `${directory}.old`, { recursive: true });
      await append(writer, "lost", "lost", "lost");
      expect(await reader.head()).toBe(6);
      expect(await dataOf(reader)).toHaveLength(6);
      renameSync(directory, `${directory}.moved`);
      cpSync(`${directory}.old`, directory, { recursive: true });
      const other = await open(directory);
      const data = numbers(4, 3 + others);
      expect(await append(other, ...data)).toEqual(data);
      for (const store of [writer, reader]) await expectRefused(store, "CLOSED");
      expect(await dataOf(other)).toEqual(numbers(1, 3 + others));
      expect(await append(other, "more")).toEqual([4 + others]);
      for (const store of [writer, reader]) await expectRefused(store, "CLOSED");
      expect(await other.verify()).toMatchObject({ ok: true, checked: 4 + others });
      const late = await open(directory);
      expect(await dataOf(late)).toEqual([...numbers(1, 3 + others), "more"]);
    },
  );

  it("ends subscriptions of it", async () => {
    const directory = newDirectory();
    const store = await open(directory, mode);
    await append(store, 1);
    cpSync(directory, `${directory}.old`, { recursive: true });
    await append(store, 2);
    const consumer = store.consume("all", "all", async () => undefined);
    await consumer.waitUntilProcessed(2);
    renameSync(directory, `${directory}.moved`);
    cpSync(`${directory}.old`, directory, { recursive: true });
    await expect(consumer.done).rejects.toMatchObject({ code: "CLOSED" });
  });
});

describe("the head of an open log", () => {
  it.each(["replaced by a copy", "removed"])(
    "that is %s hides no append from any process, also not from those that had the log open",
    async (how) => {
      const directory = newDirectory();
      const [writer, reader] = [await open(directory, "local"), await open(directory, "local")];
      await append(writer, 1, 2);
      expect(await reader.head()).toBe(2);
      const head = join(directory, "head");
      if (how === "removed") rmSync(head);
      else {
        copyFileSync(head, `${head}.new`);
        renameSync(`${head}.new`, head);
      }
      const other = await open(directory);
      expect(await append(writer, 3, 4)).toEqual([3, 4]);
      expect(await append(other, 5)).toEqual([5]);
      for (const store of [writer, reader, other, await open(directory)]) {
        expect(await store.head()).toBe(5);
        expect(await dataOf(store)).toEqual([1, 2, 3, 4, 5]);
        expect(await store.verify()).toMatchObject({ ok: true, checked: 5 });
      }
      expect(await append(reader, 6)).toEqual([6]);
      expect(await writer.head()).toBe(6);
    },
  );

  // One more is in the same segment, twelve more are in others.
  it.each([1, 12])("that is put back to an older one takes no event back: %i more", async (count) => {
    const directory = newDirectory();
    const [writer, reader] = [await open(directory, "local"), await open(directory, "local")];
    await append(writer, 1, 2);
    const old = readFileSync(join(directory, "head"));
    await append(writer, ...numbers(3, 2 + count));
    expect(await reader.head()).toBe(2 + count);
    writeFileSync(join(directory, "head"), old);
    for (const store of [writer, reader]) await expectRefused(store, "CLOSED");
    const other = await open(directory);
    expect(await other.head()).toBe(2 + count);
    expect(await dataOf(other)).toEqual(numbers(1, 2 + count));
    expect(await append(other, "more")).toEqual([3 + count]);
    expect(await other.verify()).toMatchObject({ ok: true, checked: 3 + count });
  });

  it("that is gone, with damage in the newest segment, does not make the log shorter", async () => {
    for (const line of [2, 4]) {
      const directory = newDirectory();
      const store = await openOn(await openNodePorts(directory), directory, {
        mode: "local",
        segmentBytesMax: 100_000,
      });
      await append(store, 1, 2, 3);
      await store.close();
      const [path = ""] = segments(directory);
      const bytes = readFileSync(path);
      const at = bytes.toString().split("\n").slice(0, line).join("\n").length - 40;
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(path, bytes);
      rmSync(join(directory, "head"));
      const damaged = await open(directory);
      expect(await failureOf(listOf(damaged.read()))).toMatchObject({ code: "CORRUPT", path });
      expect(await failureOf(append(damaged, "more"))).toMatchObject({ code: "CORRUPT", path });
      expect(await verifyEvents(directory)).toMatchObject({ ok: false });
      expect(existsSync(join(directory, "head"))).toBe(false);
    }
  });
});

describe.each(modes)("an older backup copied over a log that has grown since, mode %s,", (mode) => {
  it("is refused at once, and no append gets the position of a lost event", async () => {
    const directory = await makeLog(mode, 2);
    cpSync(directory, `${directory}.backup`, { recursive: true });
    const store = await open(directory);
    await append(store, ...numbers(3, 12));
    await store.close();
    expect(segments(directory).length).toBeGreaterThan(3);
    // Newer segments stay, and in mode share the newer records of tenures.
    cpSync(`${directory}.backup`, directory, { recursive: true, force: true });
    const before = segments(directory);
    for (let time = 1; time <= 2; time++) {
      const refused = await failureOf(open(directory).then((opened) => append(opened, "in the place of another")));
      expect(refused).toMatchObject({ code: "CORRUPT", message: expect.stringContaining("verify") as string });
    }
    expect(segments(directory)).toEqual(before);
    expect(await verifyEvents(directory)).toMatchObject({ ok: false });
  });

  it("opens as the log that it was, if restored into an empty directory", async () => {
    const directory = await makeLog(mode, 2);
    cpSync(directory, `${directory}.backup`, { recursive: true });
    const store = await open(directory);
    await append(store, ...numbers(3, 12));
    await store.close();
    renameSync(directory, `${directory}.aside`);
    cpSync(`${directory}.backup`, directory, { recursive: true });
    const restored = await open(directory);
    expect(await dataOf(restored)).toEqual([1, 2]);
    expect(await append(restored, "another")).toEqual([3]);
  });
});

describe.each(modes)("a newest segment that is shorter than its published length, mode %s,", (mode) => {
  it("is refused in a writer that has it open: nothing is written behind the hole", async () => {
    const directory = newDirectory();
    const store = await openOn(await openNodePorts(directory), directory, { mode, segmentBytesMax: 100_000 });
    await append(store, ...numbers(1, 10));
    const [path = ""] = segments(directory);
    truncateSync(path, 600);
    for (let time = 1; time <= 2; time++)
      expect(await failureOf(append(store, "behind the hole"))).toMatchObject({ code: "CORRUPT", path });
    expect(readFileSync(path)).toHaveLength(600);
    expect(await failureOf(listOf(store.read()))).toMatchObject({ code: "CORRUPT" });
    await store.close();
    const again = await open(directory);
    expect(await failureOf(listOf(again.read()))).toMatchObject({ code: "CORRUPT", path });
    expect(await failureOf(append(again, "behind the hole"))).toMatchObject({ code: "CORRUPT", path });
    expect(await verifyEvents(directory)).toMatchObject({ ok: false });
    expect(segments(directory)).toHaveLength(1);
  });

  it("is refused also when it ends behind a whole line", async () => {
    const directory = newDirectory();
    const store = await openOn(await openNodePorts(directory), directory, { mode, segmentBytesMax: 100_000 });
    await append(store, 1, 2, 3);
    const [path = ""] = segments(directory);
    const lines = readFileSync(path, "utf8").split("\n");
    truncateSync(path, `${lines.slice(0, 3).join("\n")}\n`.length);
    expect(await failureOf(append(store, "again"))).toMatchObject({ code: "CORRUPT", path });
  });

  it("is refused where another file has been put in its place", async () => {
    const directory = newDirectory();
    const store = await openOn(await openNodePorts(directory), directory, { mode, segmentBytesMax: 100_000 });
    await append(store, 1, 2, 3);
    const [path = ""] = segments(directory);
    const bytes = readFileSync(path);
    writeFileSync(`${path}.new`, Buffer.alloc(bytes.length, "x"));
    renameSync(`${path}.new`, path);
    const refused = await failureOf(append(store, "again"));
    expect(["CORRUPT", "CLOSED"]).toContain((refused as { code: string }).code);
  });
});

describe.each(modes)("a segment to which nothing leads, with the next number, mode %s,", (mode) => {
  const strays: Readonly<Record<string, (own: string) => Promise<Buffer>>> = {
    "an empty file": async () => Buffer.alloc(0),
    "a copy of another segment": async (own) => readFileSync(segments(own)[0] ?? ""),
    "one of another log": async () => {
      const other = await makeLog(mode, 12);
      return readFileSync(segments(other)[2] ?? "");
    },
  };
  it.each(Object.keys(strays))("%s, is reported, and moved aside by `verify --repair`", async (what) => {
    const directory = await makeLog(mode, 4);
    const before = segments(directory);
    const name = `${String(before.length + 1).padStart(10, "0")}.ndjson`;
    writeFileSync(join(directory, "segments", name), (await strays[what]?.(directory)) ?? "");
    const path = join(directory, "segments", name);
    for (let time = 1; time <= 2; time++) {
      const refused = await failureOf(open(directory).then((opened) => append(opened, ...numbers(5, 12))));
      expect(refused).toMatchObject({ code: "CORRUPT", path, message: expect.stringContaining("--repair") as string });
    }
    const report = await verifyEvents(directory);
    expect(report).toMatchObject({ ok: false });
    expect(report.problems).toContainEqual(expect.objectContaining({ severity: "damage", path }));
    const repaired = await verifyEvents(directory, { repair: true });
    expect(repaired.problems).toContainEqual(expect.objectContaining({ path, repaired: true }));
    expect(existsSync(path)).toBe(false);
    expect(readdirSync(join(directory, "aside"))).toHaveLength(1);
    expect(await verifyEvents(directory)).toMatchObject({ ok: true });
    const store = await open(directory);
    expect(await append(store, ...numbers(5, 12))).toEqual(numbers(5, 12));
    expect(positionsOf(await listOf(store.read()))).toEqual(numbers(1, 12));
  });

  it("does not disturb processes that have the log open before the log reaches its number", async () => {
    const directory = newDirectory();
    const store = await open(directory, mode);
    await append(store, 1);
    const path = join(directory, "segments/0000000002.ndjson");
    writeFileSync(path, "not a segment\n");
    const told: unknown[] = [];
    for (const data of numbers(2, 12)) {
      const failed = await append(store, data).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failed !== undefined) told.push(failed);
    }
    expect(told.length).toBeGreaterThan(5);
    for (const error of told) expect(error).toMatchObject({ code: "CORRUPT", path });
    await store.close();
    await verifyEvents(directory, { repair: true });
    const mended = await open(directory);
    expect(await mended.head()).toBe(12 - told.length);
    expect(await append(mended, "next")).toEqual([13 - told.length]);
  });
});
