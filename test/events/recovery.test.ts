// Opening a log again: no acknowledged event may be missing silently.
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openEvents, verifyEvents, type EventStore } from "../../src/events/index.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";
import { openOn } from "../sites/event-logs.ts";

async function withEvents<T>(directory: string, work: (events: EventStore) => Promise<T>): Promise<T> {
  const events = await openEvents(directory);
  try {
    return await work(events);
  } finally {
    await events.close();
  }
}

async function newLog(mode: "local" | "share"): Promise<string> {
  const directory = join(makeScratch(), "log");
  const events = await openEvents(directory, { mode });
  for (const data of [1, 2, 3, 4, 5]) await events.append({ type: "Counted", data });
  await events.close();
  return directory;
}

/** As if the machine had been restarted since. */
function changeBoot(directory: string): void {
  const path = join(directory, "head");
  const head = JSON.parse(readFileSync(path, "utf8")) as { body: { boot: string }; crc?: string };
  head.body.boot = "00000000-0000-4000-8000-000000000000";
  delete head.crc;
  const text = JSON.stringify(head).slice(0, -1);
  writeFileSync(path, `${text},"crc":"${checksumOf(text)}"}\n`.padEnd(511).concat("\n"));
}

function segmentsOf(directory: string): string[] {
  const names = readdirSync(join(directory, "segments")).sort();
  return names.map((name) => join(directory, "segments", name));
}

function segmentOf(directory: string): string {
  return segmentsOf(directory)[0] ?? "";
}

/** Writes into the room of the first segment, at this distance behind its last line. */
function writeIntoRoom(directory: string, text: string, behind: number): void {
  const bytes = readFileSync(segmentOf(directory));
  bytes.write(text, bytes.lastIndexOf("\n") + 1 + behind);
  writeFileSync(segmentOf(directory), bytes);
}

/** Appends one more event, and returns all events. */
async function appendAndRead(directory: string): Promise<unknown[]> {
  return await withEvents(directory, async (events) => {
    await events.append({ type: "Counted", data: "more" });
    const data: unknown[] = [];
    for await (const event of events.read()) data.push(event.data);
    expect(await events.verify()).toMatchObject({ ok: true, checked: data.length });
    return data;
  });
}

describe("a file system that came back in the same boot", () => {
  it("may have lost what was not synced: the lines that are there are whole, also before the log is opened", async () => {
    const directory = join(makeScratch(), "log");
    const events = await openEvents(directory, { durability: "none" });
    for (const data of [1, 2, 3]) await events.append({ type: "Counted", data });
    await events.close();
    const bytes = readFileSync(segmentOf(directory));
    const last = bytes.lastIndexOf("\n", bytes.lastIndexOf("\n") - 1) + 1;
    writeFileSync(segmentOf(directory), bytes.subarray(0, last));
    expect(await verifyEvents(directory)).toMatchObject({ ok: true, checked: 2 });
    expect(await appendAndRead(directory)).toEqual([1, 2, "more"]);
  });

  it("brings back an older head: lines behind it stay what a consumer has seen", async () => {
    const directory = await newLog("local");
    const head = join(directory, "head");
    const old = readFileSync(head);
    const consume = async (events: EventStore): Promise<unknown[]> => {
      const seen: unknown[] = [];
      const consumer = events.consume("mail", "all", async ([event]) => void seen.push(event?.data));
      await consumer.waitUntilProcessed(await events.head());
      await consumer.stop();
      return seen;
    };
    await withEvents(directory, async (events) => {
      await events.append({ type: "Counted", data: 6 });
      expect(await consume(events)).toEqual([1, 2, 3, 4, 5, 6]);
    });
    writeFileSync(head, old);
    expect(await appendAndRead(directory)).toEqual([1, 2, 3, 4, 5, 6, "more"]);
    expect(await withEvents(directory, consume)).toEqual(["more"]);
  });
});

describe("a log on one machine, after a restart", () => {
  it("has all acknowledged events, and goes on after them", async () => {
    const directory = await newLog("local");
    changeBoot(directory);
    await withEvents(directory, async (events) => {
      expect(await events.head()).toBe(5);
      expect((await events.append({ type: "Counted", data: 6 })).first).toBe(6);
    });
  });

  it("is CORRUPT when durable lines are missing, and gives no position twice", async () => {
    const directory = await newLog("local");
    changeBoot(directory);
    const bytes = readFileSync(segmentOf(directory));
    // In the last line, which has room behind it.
    const damaged = bytes.lastIndexOf("\n") - 150;
    bytes[damaged] = (bytes[damaged] ?? 0) ^ 1;
    writeFileSync(segmentOf(directory), bytes);
    const damage = { code: "CORRUPT", path: segmentOf(directory) };
    await withEvents(directory, async (events) => {
      const data: unknown[] = [];
      const reading = (async () => {
        for await (const event of events.read()) data.push(event.data);
      })();
      await expect(reading).rejects.toMatchObject(damage);
      expect(data).toEqual([1, 2, 3, 4]);
      await expect(events.append({ type: "Counted", data: 6 })).rejects.toMatchObject(damage);
    });
  });

  it("counts whole lines that were never published", async () => {
    const directory = await newLog("local");
    const before = readFileSync(join(directory, "head"));
    await withEvents(directory, (events) => events.append({ type: "Counted", data: 6 }));
    // Its writer was killed between the sync and the head.
    writeFileSync(join(directory, "head"), before);
    await withEvents(directory, async (events) => {
      expect(await events.head()).toBe(6);
      expect((await events.append({ type: "Counted", data: 7 })).first).toBe(7);
      const data: unknown[] = [];
      for await (const event of events.read()) data.push(event.data);
      expect(data).toEqual([1, 2, 3, 4, 5, 6, 7]);
    });
  });
});

describe("the room behind the lines of a segment", () => {
  it("takes the next lines of any process: the file does not grow, and no reader sees the room", async () => {
    const directory = await newLog("local");
    const { size } = statSync(segmentOf(directory));
    expect(readFileSync(segmentOf(directory), "utf8")).toMatch(/^({.*}\n){6} +$/);
    expect(await appendAndRead(directory)).toEqual([1, 2, 3, 4, 5, "more"]);
    expect(statSync(segmentOf(directory)).size).toBe(size);
    expect(segmentsOf(directory)).toHaveLength(1);
    await withEvents(directory, async (events) => expect((await events.verify()).problems).toEqual([]));
  });

  it("is still room after a restart", async () => {
    const directory = await newLog("local");
    changeBoot(directory);
    expect(await appendAndRead(directory)).toEqual([1, 2, 3, 4, 5, "more"]);
    expect(segmentsOf(directory)).toHaveLength(1);
  });

  it("with a torn line of a dead writer stays as it is: the log goes on in another segment", async () => {
    const directory = await newLog("local");
    writeIntoRoom(directory, '{"first":6,"ti', 0);
    const before = readFileSync(segmentOf(directory));
    expect(await appendAndRead(directory)).toEqual([1, 2, 3, 4, 5, "more"]);
    expect(readFileSync(segmentOf(directory))).toEqual(before);
    expect(segmentsOf(directory)).toHaveLength(2);
  });

  it("with a later part of a write, kept by a power cut, stays as it is, too", async () => {
    const directory = await newLog("local");
    changeBoot(directory);
    writeIntoRoom(directory, '"payload":[{"da', 2000);
    const before = readFileSync(segmentOf(directory));
    expect(await appendAndRead(directory)).toEqual([1, 2, 3, 4, 5, "more"]);
    expect(readFileSync(segmentOf(directory))).toEqual(before);
    expect(segmentsOf(directory)).toHaveLength(2);
  });

  it("ends at the size limit: a full segment has none", async () => {
    const directory = join(makeScratch(), "log");
    const store = await openOn(await openNodePorts(directory), directory, { mode: "local", segmentBytesMax: 2000 });
    for (let n = 0; n < 40; n++) await store.append({ type: "Counted", data: n });
    await store.close();
    const full = segmentsOf(directory).slice(0, -1);
    expect(full.length).toBeGreaterThan(2);
    for (const path of full) expect(readFileSync(path, "utf8")).toMatch(/^({.*}\n)+$/);
  });
});

it("a log of mode share without its chain of tenures is not taken for an empty one", async () => {
  const directory = await newLog("share");
  renameSync(join(directory, "tenures"), join(directory, "moved"));
  await expect(openEvents(directory)).rejects.toMatchObject({ code: "CORRUPT" });
  renameSync(join(directory, "moved"), join(directory, "tenures"));
  expect(await withEvents(directory, (events) => events.head())).toBe(5);
});

it("an event that is appended again with its generated id is recognised", async () => {
  const directory = await newLog("local");
  await withEvents(directory, async (events) => {
    const last = await events.last();
    const again = { type: "Counted", data: 5, id: last?.id };
    expect(await events.append(again)).toEqual({ first: 5, last: 5, repeated: true });
    expect(await events.head()).toBe(5);
  });
});

describe("a directory that was replaced while it was open", () => {
  it("is refused for good in a process that has written to it", async () => {
    const directory = await newLog("local");
    const events = await openEvents(directory);
    await events.append({ type: "Counted", data: 6 });
    renameSync(directory, `${directory}.old`);
    await withEvents(directory, (other) => other.append({ type: "Other", data: 1 }));
    for (let time = 1; time <= 2; time++)
      await expect(events.append({ type: "Counted", data: 7 })).rejects.toMatchObject({ code: "CLOSED" });
    await events.close();
    await withEvents(directory, async (other) => expect(await other.head()).toBe(1));
  });
});
