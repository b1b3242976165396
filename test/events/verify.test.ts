// `verify`: every kind of damage is reported with its file, line and byte, and harmless leftovers
// are not damage. A repair moves files aside, and deletes none.
import { describe, expect, test } from "vitest";
import type { LogMode } from "../../src/events/model/event-store.ts";
import { encodeHeader, readHeader } from "../../src/events/log/format/segment.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { DamagedLog, directory } from "./verify-world.ts";

const modes: readonly LogMode[] = ["local", "share"];
const segment = (number: number): string => `segments/${String(number).padStart(10, "0")}.ndjson`;
const pathOf = (name: string): string => `${directory}/${name}`;

/** Where the lines of a file begin; the last entry is its end. */
function lineStarts(bytes: Buffer): number[] {
  const starts = [0];
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, end + 1)) starts.push(end + 1);
  return starts;
}

describe.each(modes)("a sound log, mode %s,", (mode) => {
  test("has no problem, and every event is counted", async () => {
    const log = await DamagedLog.makeSample(mode);
    expect((await log.list("segments")).length).toBeGreaterThan(2);
    expect((await log.list("index")).length).toBeGreaterThan(1);
    expect(await log.verify()).toEqual({ ok: true, checked: 8, problems: [] });
  });

  test("has no problem during appends, and neither has an empty one", async () => {
    const log = await DamagedLog.make(mode);
    const store = await log.open();
    expect(await log.verify()).toEqual({ ok: true, checked: 0, problems: [] });
    for (let round = 0; round < 20; round++) {
      const appending = (async () => {
        for (let data = 0; data < 8; data++) await store.append({ type: "A", data });
      })();
      const { ok, problems } = await log.verify();
      const serious = problems.filter(({ severity }) => severity !== "note");
      expect({ ok, serious }).toEqual({ ok: true, serious: [] });
      await appending;
    }
    expect(await store.verify()).toEqual({ ok: true, checked: await store.head(), problems: [] });
  });

  test("is verified with progress in bytes, and stops at the signal", async () => {
    const log = await DamagedLog.makeSample(mode);
    const seen: [number, number][] = [];
    await log.verify({ onProgress: (done, total) => seen.push([done, total]) });
    const [done, total] = seen.at(-1) ?? [];
    expect(total).toBeGreaterThan(1000);
    expect(done).toBe(total);
    expect(seen.map(([each]) => each)).toEqual(seen.map(([each]) => each).sort((a, b) => a - b));
    const reason = new Error("enough");
    await expect(log.verify({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    let calls = 0;
    const onProgress = (): void => {
      calls++;
      controller.abort(reason);
    };
    await expect(log.verify({ signal: controller.signal, onProgress })).rejects.toBe(reason);
    expect(calls).toBe(1);
  });
});

describe.each(modes)("every byte of a small log, mode %s, altered by itself,", (mode) => {
  test("is reported, or changes nothing that a reader gets", { timeout: 300_000 }, async () => {
    const log = await DamagedLog.makeTiny(mode);
    const events = await log.events();
    const files = ["log.json", "gate.json", ...(await log.files("segments"))];
    files.push(...(mode === "local" ? ["head"] : await log.files("tenures")));
    let harmless = 0;
    for (const file of files) {
      const bytes = await log.read(file);
      const starts = lineStarts(bytes);
      for (const [at, byte] of bytes.entries()) {
        // A bit, the highest bit, or a line that ends too early.
        const value = [byte ^ 1, byte ^ 0x80, 10][at % 3] ?? 0;
        if (value === byte) continue;
        await log.poke(file, at, value);
        const { ok, problems } = await log.verify();
        const title = `${file}, byte ${at} made ${value}: ${JSON.stringify(problems)}`;
        if (file.startsWith("segments/")) {
          const [first] = problems;
          const line = starts.findLastIndex((start) => start <= at) + 1;
          expect({ title, ...first }).toMatchObject({ severity: "damage", path: pathOf(file), line });
        } else if (ok) {
          harmless++;
          expect({ title, events: await log.events() }).toEqual({ title, events });
        }
        await log.poke(file, at, byte);
      }
    }
    // Padding of the head; records of tenures that are over.
    expect(harmless).toBeGreaterThan(mode === "local" ? 300 : 1000);
    expect(await log.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("of an index is a leftover, never damage, and changes no answer", async () => {
    const log = await DamagedLog.makeSample(mode);
    const events = await log.events();
    const [name = ""] = await log.files("index");
    const bytes = await log.read(name);
    let reported = 0;
    for (let at = 0; at < bytes.length; at += 97) {
      await log.poke(name, at, (bytes[at] ?? 0) ^ 1);
      const { ok, problems } = await log.verify();
      expect(ok).toBe(true);
      reported += problems.length;
      for (const problem of problems) expect(problem).toMatchObject({ severity: "leftover", path: pathOf(name) });
      await log.poke(name, at, bytes[at] ?? 0);
    }
    // Without the padding of the header.
    expect(reported).toBeGreaterThan(bytes.length / 97 / 2);
    expect(await log.events()).toBe(events);
  });
});

describe("damage names file, line and byte, and how far the log is good:", () => {
  test("a segment that was cut", async () => {
    const log = await DamagedLog.makeSample();
    const bytes = await log.read(segment(2));
    const starts = lineStarts(bytes);
    await log.write(segment(2), bytes.subarray(0, bytes.length - 5));
    const { ok, problems } = await log.verify();
    expect(ok).toBe(false);
    expect(problems[0]).toMatchObject({
      severity: "damage",
      path: pathOf(segment(2)),
      line: starts.length - 1,
      byte: starts.at(-2),
    });
    expect(problems[1]).toMatchObject({
      severity: "damage",
      what: expect.stringMatching(/has \d+ bytes, but \d+ of it were published/) as string,
    });
    expect(problems.filter(({ severity }) => severity === "damage")).toHaveLength(2);
    expect(problems.at(-1)).toMatchObject({
      severity: "note",
      byte: starts.at(-2),
      what: expect.stringContaining("the log is good") as string,
    });
  });

  test("a segment that was cut behind a line", async () => {
    const log = await DamagedLog.makeSample();
    const bytes = await log.read(segment(2));
    const end = lineStarts(bytes).at(-2);
    await log.write(segment(2), bytes.subarray(0, end));
    expect(await log.problems()).toMatchObject([{ severity: "damage", path: pathOf(segment(2)), byte: end }]);
  });

  test.each(modes)("a segment that is missing in the middle, mode %s", async (mode) => {
    const log = await DamagedLog.makeSample(mode);
    await log.remove(segment(2));
    const { ok, checked, problems } = await log.verify();
    expect({ ok, damages: problems.filter(({ severity }) => severity === "damage") }).toMatchObject({
      ok: false,
      damages: [{ path: pathOf(segment(2)), what: "The header of this segment is missing." }],
    });
    expect(checked).toBeLessThan(8);
    expect(checked).toBeGreaterThan(2);
    expect(problems.at(-1)).toMatchObject({ severity: "note", path: pathOf(segment(1)) });
  });

  test("the last segment missing, also after a restart", async () => {
    const log = await DamagedLog.makeSample();
    const [last = ""] = (await log.files("segments")).slice(-1);
    await log.remove(last);
    expect(await log.problems()).toMatchObject([{ severity: "damage", path: pathOf(last) }]);
    await restart(log);
    expect(await log.problems()).toMatchObject([
      { severity: "damage", what: expect.stringContaining("Before the last restart") as string },
    ]);
  });

  test("all segments and the head gone: the indexes show that there were segments", async () => {
    const log = await DamagedLog.makeSample();
    for (const name of await log.files("segments")) await log.remove(name);
    await log.remove("head");
    expect(await log.verify()).toMatchObject({
      ok: false,
      problems: [{ severity: "damage", path: pathOf("segments") }, {}],
    });
  });

  test("an acknowledged line altered before a restart", async () => {
    const log = await DamagedLog.makeSample();
    const [last = ""] = (await log.files("segments")).slice(-1);
    const bytes = await log.read(last);
    await log.poke(last, bytes.length - 30, 1);
    await restart(log);
    expect(await log.problems()).toMatchObject([
      { severity: "damage", path: pathOf(last), what: expect.stringContaining("checksum does not match") as string },
    ]);
  });

  test("two lines that changed places", async () => {
    const log = await DamagedLog.make();
    const store = await log.open({ segmentBytesMax: 100_000 });
    for (const data of [1, 2, 3, 4]) await store.append({ type: "A", data });
    const bytes = await log.read(segment(1));
    const [, , b = 0, c = 0, d = 0] = lineStarts(bytes);
    await log.write(
      segment(1),
      Buffer.concat([bytes.subarray(0, b), bytes.subarray(c, d), bytes.subarray(b, c), bytes.subarray(d)]),
    );
    const problems = await log.problems();
    expect(problems[0]).toMatchObject({ severity: "damage", line: 3, byte: b });
    expect(problems.map(({ line }) => line)).toEqual([3, 4, 5]);
  });

  test("two segments that changed places", async () => {
    const log = await DamagedLog.makeSample();
    const [one, two] = [await log.read(segment(1)), await log.read(segment(2))];
    await log.write(segment(1), two);
    await log.write(segment(2), one);
    const problems = await log.problems();
    expect(problems.map(({ path }) => path)).toEqual(expect.arrayContaining([pathOf(segment(1)), pathOf(segment(2))]));
    expect(problems[0]?.what).toContain("it was copied or renamed");
  });

  test("a segment of another log", async () => {
    const log = await DamagedLog.makeSample();
    const header = await readHeader(log.ports.disk, directory, 1);
    const bytes = await log.read(segment(1));
    const foreign = encodeHeader({ ...header, log: "another" });
    await log.write(segment(1), Buffer.concat([foreign.bytes, bytes.subarray(header.bytes)]));
    expect((await log.problems())[0]).toMatchObject({
      severity: "damage",
      path: pathOf(segment(1)),
      line: 1,
      byte: 0,
      what: "This segment belongs to another log, another.",
    });
  });

  test("a header that is torn, of a newer format, or leads in a circle", async () => {
    const log = await DamagedLog.makeSample();
    const bytes = await log.read(segment(2));
    await log.write(segment(2), Buffer.concat([Buffer.from("\n"), bytes]));
    expect((await log.problems())[0]).toMatchObject({ severity: "damage", path: pathOf(segment(2)), line: 1, byte: 0 });
    const header = await readHeader(log.ports.disk, directory, 3);
    const rest = (await log.read(segment(3))).subarray(header.bytes);
    const circle = encodeHeader({ ...header, after: { ...header.after, segment: 3 } }).bytes;
    await log.write(segment(2), bytes);
    await log.write(segment(3), Buffer.concat([circle, rest]));
    expect((await log.problems())[0]?.what).toContain("follows segment 3");
    await log.write(segment(3), Buffer.concat([newer(Buffer.from(circle).toString()), rest]));
    expect((await log.problems())[0]).toMatchObject({
      severity: "damage",
      what: expect.stringContaining("newer format") as string,
      remedy: "Upgrade Holdfast here.",
    });
  });

  test("a header that says something else about the segment before it", async () => {
    const log = await DamagedLog.makeSample();
    const header = await readHeader(log.ports.disk, directory, 2);
    const rest = (await log.read(segment(2))).subarray(header.bytes);
    const wrong = encodeHeader({ ...header, after: { ...header.after, position: header.after.position + 1 } });
    await log.write(segment(2), Buffer.concat([wrong.bytes, rest]));
    expect((await log.problems())[0]).toMatchObject({
      severity: "damage",
      path: pathOf(segment(2)),
      line: 1,
      what: expect.stringContaining(
        `ends with position ${header.after.position + 1}; but it is position ${header.after.position}`,
      ) as string,
    });
  });

  test("a record of the log that is missing, torn or newer: the segments are checked all the same", async () => {
    const log = await DamagedLog.makeSample();
    const bytes = await log.read("log.json");
    await log.remove("log.json");
    expect(await log.verify()).toMatchObject({
      ok: false,
      checked: 8,
      problems: [{ severity: "damage", path: pathOf("log.json") }, { severity: "note" }],
    });
    await log.write("log.json", bytes.subarray(1));
    expect(await log.verify()).toMatchObject({ ok: false, checked: 8 });
    await log.write("log.json", newer(bytes.toString()));
    expect((await log.problems())[0]?.what).toContain("newer format");
  });

  test("a chain of tenures that is gone: the log is not taken for empty", async () => {
    const log = await DamagedLog.makeSample("share");
    for (const file of await log.files("tenures")) await log.remove(file);
    const before = await log.files("tenures");
    const { ok, checked, problems } = await log.verify();
    expect({ ok, checked, problem: problems[0] }).toMatchObject({
      ok: false,
      checked: 8,
      problem: { severity: "damage", path: pathOf("tenures") },
    });
    expect(await log.files("tenures")).toEqual(before);
  });

  test("a tip with a segment number that is too high", async () => {
    const log = await DamagedLog.makeSample();
    await log.publishAgain({ segment: 2 ** 50 });
    expect((await log.problems())[0]?.what).toContain("too high");
  });

  test("more than 1,000 problems: the rest is counted", async () => {
    const log = await DamagedLog.make();
    const store = await log.open({ segmentBytesMax: 10_000_000 });
    await Promise.all(Array.from({ length: 1500 }, (_, data) => store.append({ type: "A", data })));
    const bytes = await log.read(segment(1));
    // No checksum fits the line before.
    await log.write(segment(1), bytes.toString().replaceAll('"data"', '"dato"'));
    const { problems } = await log.verify();
    expect(problems.length).toBeLessThan(1010);
    expect(problems.at(-1)?.what).toMatch(/more problem/);
  });
});

describe("a malformed line whose checksum fits is found:", () => {
  const planted: Readonly<
    Record<string, readonly [change: (line: Record<string, unknown>) => object | string, what: RegExp]>
  > = {
    "a condition that must have been refused": [
      (line) => ({ ...line, condition: { if: [{ types: ["Registered"], tags: ["user:ada"] }] } }),
      /condition of this append forbids the event at position 1:/,
    ],
    "a condition that forbids any event since": [
      (line) => ({ ...line, condition: { if: [{ types: [], tags: [] }], after: 2 } }),
      /forbids the event at position 3 after position 2/,
    ],
    "a condition that forbids a tag that was added later, and before it": [
      (line) => ({ ...line, condition: { if: [{ types: ["Sold"], tags: ["late"] }] } }),
      /forbids the event at position 4:/,
    ],
    "an id that was given before": [
      (line) => ({ ...line, events: [{ type: "Sold", tags: [], id: "id-bob", given: true }] }),
      /positions 2 and \d have the same id, "id-bob"/,
    ],
    "tags for an event that is not there": [
      (line) => ({ ...line, retag: { positions: [99], tags: ["x"] } }),
      /added to position 99/,
    ],
    "a position that does not follow": [(line) => ({ ...line, first: 77 }), /begins with position 77, not \d/],
    "a position that was there before": [(line) => ({ ...line, first: 1 }), /begins with position 1, not \d/],
    "fewer payloads than events": [(line) => ({ ...line, payload: [] }), /1 event\(s\) and 0 payload\(s\)/],
    "events that are no list": [(line) => ({ ...line, events: { length: 1 } }), /its "events" is not a list/],
    "events that are numbers": [(line) => ({ ...line, events: [1] }), /its "events" is not an object/],
    "a type that is no text": [
      (line) => ({ ...line, events: [{ type: 1, tags: [], id: "x" }] }),
      /"events" is not a text/,
    ],
    "tags that are no list": [
      (line) => ({ ...line, events: [{ type: "A", tags: "x", id: "x" }] }),
      /"events" is not a list/,
    ],
    "a payload without data": [(line) => ({ ...line, payload: [{}] }), /its "payload" is without data/],
    "a condition without items": [(line) => ({ ...line, condition: { if: [] } }), /its "condition" is empty/],
    "a condition that is a text": [(line) => ({ ...line, condition: "none" }), /its "condition" is not an object/],
    "an after below zero": [
      (line) => ({ ...line, condition: { if: [{ types: [], tags: [] }], after: -1 } }),
      /"condition" is not a whole number/,
    ],
    "a retag of null": [(line) => ({ ...line, retag: null }), /its "retag" is not an object/],
    "a time that is none": [(line) => ({ ...line, time: "soon" }), /its "time" is not a time/],
    "a position that is a text": [(line) => ({ ...line, first: "1" }), /its "first" is not a whole number/],
    "nothing at all": [(line) => ({ ...line, events: [], payload: [] }), /neither events nor tags/],
    "no JSON": [() => '{"first":8,"payload":[', /it has no payload|it is not JSON/],
    "something behind the payload, which only some readers see": [
      () => '{"first":8,"time":"2026-01-01","events":[],"payload":[],"events":[{}]',
      /more than a checksum after its payload/,
    ],
    "a payload inside of an event, where an index cuts": [
      () => '{"first":8,"time":"2026-01-01","events":[{"type":"A","payload":[1]}],"payload":[{}]',
      /it is not JSON/,
    ],
  };
  for (const [title, [change, what]] of Object.entries(planted))
    test(title, async () => {
      const log = await DamagedLog.makeSample();
      await log.forge((line, index) => (index === 0 ? change(line) : line));
      const [problem] = await log.problems();
      expect(problem).toMatchObject({ severity: "damage", line: 2, what: expect.stringMatching(what) as string });
    });

  test("and the same line, forged without a change, is sound", async () => {
    const log = await DamagedLog.makeSample();
    await log.forge((line) => line);
    expect(await log.verify()).toEqual({ ok: true, checked: 8, problems: [] });
  });

  test("but not a condition that held at its append, although tags that came later would break it now", async () => {
    const log = await DamagedLog.make();
    const store = await log.open();
    await store.append({ type: "A", data: 1 });
    await store.append({ type: "B", data: 1 }, { condition: { failIfEventsMatch: { tags: ["late"] } } });
    await store.addTags([1], ["late"]);
    const late = { condition: { failIfEventsMatch: { tags: ["late"] } } };
    await expect(store.append({ type: "C", data: 1 }, late)).rejects.toMatchObject({
      code: "APPEND_CONDITION_FAILED",
    });
    expect(await log.verify()).toEqual({ ok: true, checked: 2, problems: [] });
  });
});

describe("a leftover of a crash is no damage:", () => {
  test("a segment that no other leads to; a repair moves it aside, and nothing else", async () => {
    const log = await DamagedLog.makeSample("share");
    // A writer that was named and died: the next one begins behind it.
    const [last = ""] = (await log.files("segments")).slice(-1);
    const number = Number(last.slice(9, 19));
    await abandonTenure(log);
    const store = await log.open();
    await store.append({ type: "A", data: 1 });
    await store.close();
    const name = segment(number + 1);
    const bytes = await log.read(name);
    expect(await log.verify()).toMatchObject({
      ok: true,
      checked: 9,
      problems: [{ severity: "leftover", path: pathOf(name), repaired: false }],
    });
    const events = await log.events();
    expect(await log.verify({ repair: true })).toMatchObject({
      ok: true,
      checked: 9,
      problems: [{ severity: "leftover", path: pathOf(name), repaired: true }],
    });
    expect(await log.exists(name)).toBe(false);
    const [aside = ""] = await log.files("aside");
    expect(Buffer.compare(await log.read(aside), bytes)).toBe(0);
    expect(await log.verify()).toEqual({ ok: true, checked: 9, problems: [] });
    expect(await log.events()).toBe(events);
    const again = await log.open();
    expect(await again.append({ type: "A", data: 2 })).toMatchObject({ first: 10 });
  });

  test("a segment that is not published yet is never moved: its writer may be alive", async () => {
    const log = await DamagedLog.makeSample("share");
    await abandonTenure(log);
    const files = await log.files("segments");
    expect(await log.verify({ repair: true })).toMatchObject({ ok: true, problems: [{ severity: "note" }] });
    expect(await log.files("segments")).toEqual(files);
  });

  test("bytes beyond the published length are noted, with their place", async () => {
    const log = await DamagedLog.makeSample();
    const bytes = await log.read(segment(1));
    await log.write(segment(1), Buffer.concat([bytes, Buffer.from('{"first":')]));
    expect(await log.verify({ repair: true })).toMatchObject({
      ok: true,
      problems: [
        {
          severity: "note",
          path: pathOf(segment(1)),
          byte: bytes.length,
          what: expect.stringMatching(/^9 bytes/) as string,
        },
      ],
    });
    expect((await log.read(segment(1))).length).toBe(bytes.length + 9);
  });

  test("a torn head: all valid lines count, as after a power cut", async () => {
    const log = await DamagedLog.makeSample();
    const events = await log.events();
    await log.poke("head", 20, 0);
    expect(await log.verify({ repair: true })).toMatchObject({
      ok: true,
      checked: 8,
      problems: [{ severity: "leftover", path: pathOf("head"), repaired: false }],
    });
    expect(await log.events()).toBe(events);
    const store = await log.open();
    await store.append({ type: "A", data: 1 });
    expect(await log.verify()).toEqual({ ok: true, checked: 9, problems: [] });
  });

  test("a torn line after a power cut is the end of the log, and noted", async () => {
    const log = await DamagedLog.makeSample();
    const [last = ""] = (await log.files("segments")).slice(-1);
    const bytes = await log.read(last);
    await log.write(last, Buffer.concat([bytes, Buffer.from('{"first":9,"time"')]));
    await restart(log);
    expect(await log.verify()).toMatchObject({
      ok: true,
      checked: 8,
      problems: [{ severity: "note", byte: bytes.length }],
    });
  });

  test("an index of another log, or of other segments, is moved aside by a repair", async () => {
    const log = await DamagedLog.makeSample();
    const other = await DamagedLog.makeSample();
    const [name = ""] = await log.files("index");
    await log.write(name, await other.read(name));
    await log.write("index/0000000002-0000000001.idx", "nothing");
    expect(await log.verify({ repair: true })).toMatchObject({
      ok: true,
      problems: [
        { severity: "leftover", path: pathOf(name), repaired: true },
        { severity: "leftover", path: pathOf("index/0000000002-0000000001.idx"), repaired: true },
      ],
    });
    expect(await log.files("aside")).toHaveLength(2);
    expect(await log.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test.each(["log.json", segment(2)])(
    "%s of a newer version is not damaged: a repair leaves it alone",
    async (name) => {
      const log = await DamagedLog.makeSample();
      const [first = "", ...rest] = (await log.read(name)).toString().split(/(?<=\n)/);
      await log.write(name, Buffer.concat([newer(first), Buffer.from(rest.join(""))]));
      const before = [await log.files("segments"), await log.read(name), await log.read("head")];
      expect(await log.verify({ repair: true })).toMatchObject({ ok: false });
      expect([await log.files("segments"), await log.read(name), await log.read("head")]).toEqual(before);
      expect(await log.exists("aside")).toBe(false);
    },
  );
});

/** Names a writer, makes its segment, and dies. */
async function abandonTenure(log: DamagedLog): Promise<void> {
  const { OpenedLog } = await import("../../src/events/open/opened-log.ts");
  const { plainCodec } = await import("../../src/events/model/codec.ts");
  const opened = await OpenedLog.open(log.ports, directory, plainCodec, { segmentBytesMax: 1 });
  const hold = await opened.lock.acquire();
  await opened.publisher.begin(hold);
  await hold.release();
  await opened.close();
}

/** After this the head is of another boot. */
async function restart(log: DamagedLog): Promise<void> {
  const { HeadFile } = await import("../../src/events/log/publish/head-file.ts");
  const file = new HeadFile(log.ports.disk, `${directory}/head`);
  const head = await file.find();
  if (head !== undefined) await file.write({ ...head, boot: "the one before" });
  await file.close();
}

/** A record of the next format. */
function newer(record: string): Buffer {
  const changed = record.replace('"format":1', '"format":2').replace(/,"crc":"[0-9a-f]{8}"\}\n$/, "");
  return Buffer.from(`${changed},"crc":"${checksumOf(changed)}"}\n`);
}
