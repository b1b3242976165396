// What is found when a log is opened again: nothing that was acknowledged may quietly be missing.
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openEvents, type EventStore } from "../../src/events/index.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { makeScratch } from "../ports/scratch.ts";

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

/** As if the machine had been started anew since. */
function changeBoot(directory: string): void {
  const path = join(directory, "head");
  const head = JSON.parse(readFileSync(path, "utf8")) as { body: { boot: string }; crc?: string };
  head.body.boot = "00000000-0000-4000-8000-000000000000";
  delete head.crc;
  const text = JSON.stringify(head).slice(0, -1);
  writeFileSync(path, `${text},"crc":"${checksumOf(text)}"}\n`.padEnd(511).concat("\n"));
}

function segmentOf(directory: string): string {
  return join(directory, "segments", readdirSync(join(directory, "segments"))[0] ?? "");
}

describe("a log on one machine, after a restart", () => {
  it("has all that was acknowledged, and goes on after it", async () => {
    const directory = await newLog("local");
    changeBoot(directory);
    await withEvents(directory, async (events) => {
      expect(await events.head()).toBe(5);
      expect((await events.append({ type: "Counted", data: 6 })).first).toBe(6);
    });
  });

  it("says CORRUPT when less is left than was durable, and gives no position twice", async () => {
    const directory = await newLog("local");
    changeBoot(directory);
    const bytes = readFileSync(segmentOf(directory));
    bytes[bytes.length - 150] = (bytes[bytes.length - 150] ?? 0) ^ 1;
    writeFileSync(segmentOf(directory), bytes);
    await expect(openEvents(directory)).rejects.toMatchObject({
      code: "CORRUPT",
      path: expect.stringContaining("segments"),
    });
  });

  it("takes whole lines that were never published for what they may be: appended", async () => {
    const directory = await newLog("local");
    const before = readFileSync(join(directory, "head"));
    await withEvents(directory, (events) => events.append({ type: "Counted", data: 6 }));
    // Its writer was killed between the sync and the head.
    writeFileSync(join(directory, "head"), before);
    await withEvents(directory, async (events) => {
      expect(await events.head()).toBe(5);
      expect((await events.append({ type: "Counted", data: 7 })).first).toBe(7);
      const data: unknown[] = [];
      for await (const event of events.read()) data.push(event.data);
      expect(data).toEqual([1, 2, 3, 4, 5, 6, 7]);
    });
  });
});

it("a log between machines whose chain of tenures is gone is not taken for an empty one", async () => {
  const directory = await newLog("share");
  renameSync(join(directory, "tenures"), join(directory, "moved"));
  await expect(openEvents(directory)).rejects.toMatchObject({ code: "CORRUPT" });
  renameSync(join(directory, "moved"), join(directory, "tenures"));
  expect(await withEvents(directory, (events) => events.head())).toBe(5);
});

it("an event that comes again with the id that it was given by the store is recognised", async () => {
  const directory = await newLog("local");
  await withEvents(directory, async (events) => {
    const last = await events.last();
    const again = { type: "Counted", data: 5, id: last?.id };
    expect(await events.append(again)).toEqual({ first: 5, last: 5, repeated: true });
    expect(await events.head()).toBe(5);
  });
});

describe("a directory that was replaced while it was open", () => {
  it("is refused for good to a process that has written to it", async () => {
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
