// Damaged logs: all before the damage can be read and exported, and a repair keeps all that is
// whole, before and behind it, at its position.
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SequencedEvent } from "../../src/common.ts";
import type { LogMode } from "../../src/events/model/event-store.ts";
import {
  exportEvents,
  importEvents,
  openEvents,
  salvageEvents,
  verifyEvents,
  type EventStore,
} from "../../src/events/index.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";
import { failureOf, listOf, numbers, openOn, positionsOf } from "../sites/event-logs.ts";

const modes: readonly LogMode[] = ["local", "share"];
const lost = "holdfast:lost";
const count = 30;

/**
 * 30 events, the last one of an append of two, with tags that were added later; in one segment, or
 * in several.
 */
async function makeLog(mode: LogMode, segmentBytesMax: number): Promise<string> {
  const directory = join(makeScratch(), "log");
  const store = await openOn(await openNodePorts(directory), directory, { mode, segmentBytesMax });
  const event = (n: number): { type: string; data: number; tags: string[]; id: string } => ({
    type: "Counted",
    data: n,
    tags: [`n:${n}`],
    id: `id-${n}`,
  });
  for (const n of numbers(1, count - 2)) {
    await store.append(event(n), { condition: { failIfEventsMatch: { tags: [`n:${n}`] } } });
    if (n === 10)
      await store.addTags(
        [2, 25].filter((each) => each <= n),
        ["late"],
      );
  }
  await store.append([event(count - 1), event(count)]);
  await store.close();
  return directory;
}

function segments(directory: string): string[] {
  const names = readdirSync(join(directory, "segments")).sort();
  return names.map((name) => join(directory, "segments", name));
}

/** The file and the byte at which the line with this position begins, and where it ends. */
function placeOf(directory: string, position: number): { path: string; from: number; to: number } {
  for (const path of segments(directory)) {
    const text = readFileSync(path, "latin1");
    const from = text.indexOf(`\n{"first":${position},`) + 1;
    if (from > 0) return { path, from, to: text.indexOf("\n", from) + 1 };
  }
  throw new Error(`no line begins with ${position}`);
}

function poke(path: string, at: number, text: string): void {
  const bytes = readFileSync(path);
  bytes.write(text, at, "latin1");
  writeFileSync(path, bytes);
}

/** As after a restart of the machine. */
function changeBoot(directory: string): void {
  const path = join(directory, "head");
  const head = JSON.parse(readFileSync(path, "utf8")) as { body: { boot: string }; crc?: string };
  head.body.boot = "00000000-0000-4000-8000-000000000000";
  delete head.crc;
  const text = JSON.stringify(head).slice(0, -1);
  writeFileSync(path, `${text},"crc":"${checksumOf(text)}"}\n`.padEnd(511).concat("\n"));
}

async function eventsOf(directory: string): Promise<SequencedEvent[]> {
  const store = await openEvents(directory);
  try {
    return await listOf(store.read());
  } finally {
    await store.close();
  }
}

/** The positions of lost events; all others hold the appended events. */
function lostIn(events: readonly SequencedEvent[]): number[] {
  expect(positionsOf(events)).toEqual(numbers(1, events.length));
  for (const { type, data, position, tags, id } of events)
    if (type !== lost)
      expect({ type, data, tag: tags[0], id }).toEqual({
        type: "Counted",
        data: position,
        tag: `n:${position}`,
        id: `id-${position}`,
      });
  return positionsOf(events.filter(({ type }) => type === lost));
}

/** What is damaged, how, and which positions that loses. */
type Damage = readonly [title: string, damage: (directory: string) => void, lost: readonly number[]];

const damages: readonly Damage[] = [
  [
    "a byte of a line",
    (directory) => {
      const { path, from } = placeOf(directory, 20);
      poke(path, from + 60, "#");
    },
    [20],
  ],
  [
    "the end of a line",
    (directory) => {
      const { path, to } = placeOf(directory, 20);
      poke(path, to - 12, "zzzz\n##");
    },
    [20],
  ],
  [
    "a sector, over several lines",
    (directory) => {
      const { path, from } = placeOf(directory, 17);
      const { path: last, to } = placeOf(directory, 18);
      poke(path, from + 100, "\0".repeat((path === last ? to : readFileSync(path).length) - from - 150));
    },
    [17, 18],
  ],
  [
    "two lines that are not neighbours",
    (directory) => {
      for (const position of [5, 20]) {
        const { path, from } = placeOf(directory, position);
        poke(path, from + 60, "#");
      }
    },
    [5, 20],
  ],
  [
    "the last line, an append of two",
    (directory) => {
      const { path, from } = placeOf(directory, count - 1);
      poke(path, from + 60, "#");
    },
    [count - 1, count],
  ],
  [
    "the end of the last segment, cut off",
    (directory) => {
      const { path, from } = placeOf(directory, count - 2);
      truncateSync(path, from + 30);
    },
    [count - 2, count - 1, count],
  ],
];

describe.each(modes)("mode %s:", (mode) => {
  describe.each([
    ["in the one segment", 1_000_000],
    ["in one of several segments", 1500],
  ] as const)("%s,", (_, segmentBytesMax) => {
    it.each(damages)(
      "%s: what is before it can be read and exported, and a repair loses no more",
      async (_title, damage, missing) => {
        const directory = await makeLog(mode, segmentBytesMax);
        damage(directory);
        const report = await verifyEvents(directory);
        expect(report.ok).toBe(false);
        const good = (missing[0] ?? 0) - 1;
        const note = report.problems.at(-1);
        expect(note).toMatchObject({ severity: "note", remedy: expect.stringContaining(`--up-to ${good}`) as string });

        // The remedies that `verify` names.
        const read = await listOf(salvageEvents(directory, "all", { upTo: good }));
        expect(positionsOf(read)).toEqual(numbers(1, good));
        expect(lostIn(read)).toEqual([]);
        expect(await failureOf(listOf(salvageEvents(directory, "all", { upTo: good + 1 })))).toMatchObject({
          code: "CORRUPT",
          message: expect.stringContaining(`--up-to ${good}`) as string,
        });
        const copy = join(makeScratch(), "copy");
        await importEvents(copy, exportEvents(directory, { upTo: good }));
        expect(await eventsOf(copy)).toEqual(read);
        if (good >= 10) expect(read[1]?.tags).toEqual(["n:2", "late"]);
        expect(positionsOf(await listOf(salvageEvents(directory, { tags: ["late"] }, { upTo: good })))).toEqual(
          good >= 10 ? [2] : [],
        );

        const repaired = await verifyEvents(directory, { repair: true });
        expect(repaired.ok).toBe(true);
        expect(repaired.problems[0]).toMatchObject({
          severity: "damage",
          repaired: true,
          remedy: expect.stringContaining(`${missing.length} event(s) are lost`) as string,
        });
        const events = await eventsOf(directory);
        expect(lostIn(events)).toEqual(missing);
        expect(events).toHaveLength(count);
        expect(await verifyEvents(directory)).toMatchObject({ ok: true, checked: count });
        const store = await openEvents(directory);
        expect(await store.append({ type: "Next", data: 1 })).toMatchObject({ first: count + 1 });
        const taken = { failIfEventsMatch: { tags: [`n:${good}`] } };
        expect(await failureOf(store.append({ type: "Next", data: 2 }, { condition: taken }))).toMatchObject({
          code: "APPEND_CONDITION_FAILED",
        });
        await store.close();
      },
    );
  });

  it("a segment that is missing: its events are lost, and those behind it are not", async () => {
    const directory = await makeLog(mode, 1500);
    const [, path = ""] = segments(directory);
    const before = /"position":(\d+)/.exec(readFileSync(path, "latin1"));
    const [, , next = ""] = segments(directory);
    const after = /"position":(\d+)/.exec(readFileSync(next, "latin1"));
    rmSync(path);
    const missing = numbers(Number(before?.[1]) + 1, Number(after?.[1]));
    expect(missing.length).toBeGreaterThan(1);
    await verifyEvents(directory, { repair: true });
    expect(lostIn(await eventsOf(directory))).toEqual(missing);
  });

  it("the last segment missing: its positions are not given again", async () => {
    const directory = await makeLog(mode, 1500);
    const path = segments(directory).at(-1) ?? "";
    const before = Number(/"position":(\d+)/.exec(readFileSync(path, "latin1"))?.[1]);
    rmSync(path);
    expect(await failureOf(openEvents(directory))).toMatchObject({ code: "CORRUPT" });
    expect(await verifyEvents(directory, { repair: true })).toMatchObject({ ok: true });
    expect(lostIn(await eventsOf(directory))).toEqual(numbers(before + 1, count));
  });

  it("a damaged header of the last segment: the events before it are read, and no line is lost", async () => {
    const directory = await makeLog(mode, 1500);
    const path = segments(directory).at(-1) ?? "";
    const good = Number(/"position":(\d+)/.exec(readFileSync(path, "latin1"))?.[1]);
    expect(good).toBeGreaterThan(0);
    poke(path, 40, "#");
    const damage = { code: "CORRUPT", path, message: expect.stringContaining("verify") as string };
    const store = await openEvents(directory);
    const read: SequencedEvent[] = [];
    const reading = (async () => {
      for await (const event of store.read("all")) read.push(event);
    })();
    expect(await failureOf(reading)).toMatchObject(damage);
    expect(lostIn(read)).toEqual([]);
    expect(read).toHaveLength(good);
    expect(positionsOf(await listOf(store.read("all", { upTo: good })))).toEqual(numbers(1, good));
    expect(positionsOf(await listOf(store.read({ tags: ["n:2"] }, { limit: 1 })))).toEqual([2]);
    expect(await failureOf(listOf(store.read("all", { backwards: true, limit: 1 })))).toMatchObject({
      code: "CORRUPT",
    });
    expect(positionsOf(await listOf(store.read("all", { backwards: true, upTo: 3 })))).toEqual([3, 2, 1]);
    expect(await failureOf(store.append({ type: "Next", data: 1 }))).toMatchObject(damage);
    expect(await store.verify()).toMatchObject({ ok: false, problems: [{ severity: "damage", path }, {}] });
    expect(await store.verify({ repair: true })).toMatchObject({ ok: true });
    // The same store continues.
    expect(positionsOf(await listOf(store.read()))).toEqual(numbers(1, count));
    expect(await store.append({ type: "Next", data: 1 })).toMatchObject({ first: count + 1 });
    await store.close();
  });

  it("a damaged header of the last segment: a repair keeps its lines", async () => {
    const directory = await makeLog(mode, 1500);
    const path = segments(directory).at(-1) ?? "";
    poke(path, 40, "#");
    expect(await verifyEvents(directory, { repair: true })).toMatchObject({ ok: true });
    expect(lostIn(await eventsOf(directory))).toEqual([]);
  });

  it("an older backup that was copied over the log: the newer segments are kept", async () => {
    const directory = await makeLog(mode, 1500);
    const [path = ""] = segments(directory);
    const backup = await makeLog(mode, 1500);
    cpSync(directory, backup, { recursive: true, force: true });
    const { from } = placeOf(directory, 4);
    truncateSync(path, from);
    const next = /"position":(\d+)/.exec(readFileSync(segments(directory)[1] ?? "", "latin1"));
    expect(await verifyEvents(directory)).toMatchObject({ ok: false });
    await verifyEvents(directory, { repair: true });
    expect(lostIn(await eventsOf(directory))).toEqual(numbers(4, Number(next?.[1])));
  });

  it("a repair deletes no byte, and a second repair does nothing", async () => {
    const directory = await makeLog(mode, 1500);
    const { path, from } = placeOf(directory, 5);
    poke(path, from + 60, "#");
    const before = segments(directory).map((each) => readFileSync(each, "latin1"));
    await verifyEvents(directory, { repair: true });
    const aside = readdirSync(join(directory, "aside")).map((name) => join(directory, "aside", name));
    const after = [...segments(directory), ...aside].map((each) => readFileSync(each, "latin1"));
    expect(before.filter((text) => !after.includes(text))).toEqual([]);
    const files = readdirSync(join(directory, "segments"));
    expect(await verifyEvents(directory, { repair: true })).toMatchObject({ ok: true });
    expect(readdirSync(join(directory, "segments"))).toEqual(files);
  });

  it("a repair ends stores that have the log open with CLOSED, and consumers that had come further with LOG_REWOUND", async () => {
    const directory = await makeLog(mode, 1_000_000);
    const store: EventStore = await openEvents(directory);
    await store.append({ type: "Next", data: 1 });
    const consumer = store.consume("all", "all", async () => undefined);
    await consumer.waitUntilProcessed(count + 1);
    await consumer.stop();
    const { path, from } = placeOf(directory, 20);
    poke(path, from + 60, "#");
    await verifyEvents(directory, { repair: true });
    expect(await failureOf(store.append({ type: "Next", data: 2 }))).toMatchObject({ code: "CLOSED" });
    await store.close();
    const again = await openEvents(directory);
    const resumed = again.consume("all", "all", async () => undefined);
    await expect(resumed.done).rejects.toMatchObject({ code: "LOG_REWOUND" });
    await again.close();
  });
});

it("damage that is found after a restart is reported with its line, and repaired in the same way", async () => {
  const directory = await makeLog("local", 1_000_000);
  changeBoot(directory);
  const { path, from } = placeOf(directory, 20);
  poke(path, from + 60, "#");
  const store = await openEvents(directory);
  const read: SequencedEvent[] = [];
  const reading = (async () => {
    for await (const event of store.read()) read.push(event);
  })();
  expect(await failureOf(reading)).toMatchObject({ code: "CORRUPT", path });
  expect(read).toHaveLength(19);
  expect(await failureOf(store.append({ type: "Next", data: 1 }))).toMatchObject({ code: "CORRUPT", path });
  await store.close();
  const report = await verifyEvents(directory);
  expect(report.problems[0]).toMatchObject({ severity: "damage", path, byte: from });
  expect(await listOf(salvageEvents(directory, "all", { upTo: 19 }))).toHaveLength(19);
  await verifyEvents(directory, { repair: true });
  expect(lostIn(await eventsOf(directory))).toEqual([20]);
});

it("damage in the last segment, without the head, is repaired without giving a position twice", async () => {
  const directory = await makeLog("local", 1_000_000);
  rmSync(join(directory, "head"));
  const { path, from } = placeOf(directory, 20);
  poke(path, from + 60, "#");
  await verifyEvents(directory, { repair: true });
  const events = await eventsOf(directory);
  expect(lostIn(events)).toEqual([20]);
  expect(events).toHaveLength(count);
});
