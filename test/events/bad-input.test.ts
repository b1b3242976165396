// Bad input of every kind: from callers, in files, and from the disk. Each is refused by name, and
// disturbs no other caller.
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { NewEvent } from "../../src/common.ts";
import { isHoldfastError } from "../../src/errors.ts";
import type { EventStore, EventStoreOptions, LogMode } from "../../src/events/model/event-store.ts";
import { memoryEvents, openEvents, verifyEvents } from "../../src/events/index.ts";
import type { Query } from "../../src/events/model/query.ts";
import { listPathLocks } from "../../src/locks/index.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk, DiskFile } from "../../src/ports/disk.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { asNewerFormat } from "../durable/newer-format.ts";
import { changedDisk } from "../sites/disks.ts";
import { fill, mountSmallDisk } from "../durable/small-disk.ts";
import { nfs } from "../sites/world.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { failureOf, listOf, numbers, openOn, positionsOf, smallSegments } from "../sites/event-logs.ts";

const modes: readonly LogMode[] = ["local", "share"];
const noted = (data: unknown, ...tags: string[]): NewEvent => ({ type: "Noted", data, tags });
const any = <T>(value: unknown): T => value as T;

async function open(directory: string, options: EventStoreOptions = {}): Promise<EventStore> {
  const store = await openEvents(directory, options);
  onTestFinished(() => store.close());
  return store;
}

/** The directory of a closed log with `count` events, nearly one segment each. */
async function makeLog(mode: LogMode, count: number, options = smallSegments): Promise<string> {
  const directory = `${makeScratch()}/log`;
  const store = await openOn(await openNodePorts(directory), directory, { mode, ...options });
  for (let each = 1; each <= count; each++)
    await store.append(noted(`event ${each} ${"x".repeat(100)}`, `each:${each}`));
  await store.close();
  return directory;
}

async function reopen(directory: string): Promise<EventStore> {
  return await openOn(await openNodePorts(directory), directory);
}

function segmentsOf(directory: string): string[] {
  return readdirSync(join(directory, "segments"))
    .filter((name) => /^\d+\.ndjson$/.test(name))
    .sort()
    .map((name) => join(directory, "segments", name));
}

/** Every path below with its content, without files that change by themselves. */
function contentOf(directory: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const path = join(directory, name);
    if (!name.startsWith(".holdfast"))
      found[name] = statSync(path).isFile() ? readFileSync(path, "latin1") : "(directory)";
  }
  return found;
}

describe("an append is refused, and the store goes on,", () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = { cycle };

  it.each<[what: string, data: unknown]>([
    ["a function", () => 1],
    ["a bigint", 1n],
    ["a bigint inside", { list: [1n] }],
    ["a cycle", cycle],
    ["undefined", undefined],
    ["a symbol", Symbol("x")],
    [
      "something whose toJSON throws",
      {
        toJSON: () => {
          throw new Error("no");
        },
      },
    ],
    ["something whose toJSON gives nothing", { toJSON: () => undefined }],
    // JSON would store something else for each of these.
    ["no number", { price: NaN }],
    ["without end", [Infinity]],
    ["a map", new Map([[1, 2]])],
    ["a set inside", { list: [new Set([1])] }],
    ["a list with a hole", { list: [1, undefined] }],
    ["a function in a list", [() => 1]],
    ["a pattern", { pattern: /a/ }],
  ])("when its data is %s: EVENT_INVALID", async (_, data) => {
    const store = memoryEvents();
    const error = await failureOf(store.append([noted("before"), { type: "Broken", data }]));
    expect(error).toMatchObject({
      code: "EVENT_INVALID",
      action: "fix-caller",
      type: "Broken",
      issues: [expect.any(String)],
    });
    expect(await store.append(noted("fine"))).toMatchObject({ first: 1 });
  });

  it("but not for what JSON carries: dates, fields that are undefined, objects of a class", async () => {
    const store = memoryEvents();
    class Price {
      readonly cents = 5;
    }
    const data = {
      at: new Date(0),
      none: undefined,
      price: new Price(),
      empty: {},
      bare: Object.create(null) as object,
    };
    await store.append({ type: "Sold", data });
    expect((await store.last())?.data).toEqual({
      at: "1970-01-01T00:00:00.000Z",
      price: { cents: 5 },
      empty: {},
      bare: {},
    });
  });

  it("when its metadata is no object, or not JSON: EVENT_INVALID", async () => {
    const store = memoryEvents();
    for (const metadata of ["text", null, [1], { big: 1n }, { rate: NaN }, cycle])
      expect(await failureOf(store.append({ type: "Broken", data: 1, metadata: any(metadata) }))).toMatchObject({
        code: "EVENT_INVALID",
      });
    expect(await store.head()).toBe(0);
  });

  it.each<[what: string, event: unknown, error: object]>([
    ["null", null, { name: "TypeError" }],
    ["a text", "Sold", { name: "TypeError" }],
    ["a list with a hole", [undefined], { name: "TypeError" }],
    ["an empty list", [], { name: "TypeError" }],
    ["without a type", { data: 1 }, { name: "TypeError" }],
    ["with an empty type", { type: "", data: 1 }, { code: "EVENT_INVALID" }],
    ["with a type of two lines", { type: "a\nb", data: 1 }, { code: "EVENT_INVALID" }],
    ["with a type that is too long", { type: "x".repeat(1001), data: 1 }, { code: "EVENT_INVALID" }],
    ["with an id that is a number", { type: "A", data: 1, id: 7 }, { code: "EVENT_INVALID" }],
    ["with an empty id", { type: "A", data: 1, id: "" }, { code: "EVENT_INVALID" }],
    ["with tags that are a text", { type: "A", data: 1, tags: "tag" }, { code: "EVENT_INVALID" }],
    ["with a tag that is a number", { type: "A", data: 1, tags: [1] }, { code: "EVENT_INVALID" }],
    ["with an empty tag", { type: "A", data: 1, tags: [""] }, { code: "EVENT_INVALID" }],
    ["with a newline in a tag", { type: "A", data: 1, tags: ["a\nb"] }, { code: "EVENT_INVALID" }],
    ["with a NUL in a tag", { type: "A", data: 1, tags: ["a\0"] }, { code: "EVENT_INVALID" }],
    ["with a line separator in a tag", { type: "A", data: 1, tags: ["a\u2028b"] }, { code: "EVENT_INVALID" }],
    ["with a tag that is too long", { type: "A", data: 1, tags: ["x".repeat(1001)] }, { code: "EVENT_INVALID" }],
    [
      "with 10 000 tags",
      { type: "A", data: 1, tags: numbers(1, 10_000).map(String) },
      { code: "TOO_LARGE", limit: 1000, actual: 10_000 },
    ],
    [
      "of more than 10 000 events",
      numbers(1, 10_001).map((each) => noted(each)),
      { code: "TOO_LARGE", limit: 10_000, actual: 10_001 },
    ],
    ["over the size limit", noted("x".repeat(17_000_000)), { code: "TOO_LARGE", limit: 16_777_216 }],
    ["over the size limit in bytes, not in letters", noted("ü".repeat(9_000_000)), { code: "TOO_LARGE" }],
  ])("when it is %s", async (_, event, error) => {
    const store = memoryEvents();
    expect(await failureOf(store.append(any(event)))).toMatchObject(error);
    expect(await store.append(noted("fine"))).toMatchObject({ first: 1 });
  });

  it("but not for a thousand tags, a large payload, and fields that JSON leaves out", async () => {
    const store = memoryEvents();
    const tags = numbers(1, 1000).map((each) => `tag:${each}`);
    await store.append({ type: "A", data: { gone: undefined, call: () => 1 }, tags });
    await store.append(noted("x".repeat(15_000_000)));
    await store.append(noted("after"));
    expect(await listOf(store.read({ tags: ["tag:1000"] }))).toMatchObject([{ position: 1, data: {}, tags }]);
    expect(await listOf(store.read({ types: ["Noted"] }))).toMatchObject([{ position: 2 }, { data: "after" }]);
  });

  it.each([-1, 1.5, Number.NaN, -Infinity, "1"])("when `after` of its condition is %j: RangeError", async (after) => {
    const store = memoryEvents();
    const condition = { failIfEventsMatch: "all" as const, after: any<number>(after) };
    expect(await failureOf(store.append(noted("never"), { condition }))).toBeInstanceOf(RangeError);
    expect(await store.head()).toBe(0);
  });

  it.each<[what: string, query: unknown]>([
    ["an empty list", []],
    ["a text", "Sold"],
    ["a list of strings", ["Sold"]],
    ["types that are a text", { types: "Sold" }],
    ["tags that are numbers", { tags: [1] }],
    ["an item with a word that it does not have", { type: ["Sold"] }],
  ])("or a question, when its query is %s: TypeError", async (_, query) => {
    const store = memoryEvents();
    expect(
      await failureOf(store.append(noted("never"), { condition: { failIfEventsMatch: any<Query>(query) } })),
    ).toBeInstanceOf(TypeError);
    expect(() => store.read(any<Query>(query))).toThrow(TypeError);
    expect(() => store.subscribe(any<Query>(query))).toThrow(TypeError);
    expect(await store.head()).toBe(0);
  });
});

it("`memory:` opens a log in memory, and no folder of that name", async () => {
  for (const location of ["memory:", new URL("memory:")]) {
    await using store = await openEvents(location);
    expect(await store.append(noted("here"))).toMatchObject({ first: 1 });
  }
  for (const call of [() => listPathLocks("memory:"), () => verifyEvents("memory:"), () => openEvents("memory:a")])
    await expect(call()).rejects.toMatchObject({ code: "INVALID_PATH" });
  expect(existsSync("memory:")).toBe(false);
});

it.each(["after", "upTo", "limit"])(
  "a read is refused with RangeError when its %s is no whole number from 0",
  (name) => {
    const store = memoryEvents();
    for (const value of [-1, 0.5, Number.NaN, -Infinity, "3"])
      expect(() => store.read("all", { [name]: value })).toThrow(RangeError);
  },
);

describe.each(modes)("what stands on the disk, in mode %s:", (mode) => {
  it("a newer format is refused by name in every file, and nothing is changed", async () => {
    const directory = await makeLog(mode, 6);
    const files = [join(directory, "log.json"), segmentsOf(directory).at(-1)!];
    if (mode === "local") files.push(join(directory, "head"));
    for (const path of files) {
      const before = readFileSync(path);
      const end = before.indexOf(10) + 1;
      writeFileSync(path, Buffer.concat([asNewerFormat(before.subarray(0, end)), before.subarray(end)]));
      const content = contentOf(directory);
      const error = await failureOf(reopen(directory));
      expect(error).toMatchObject({ code: "NEWER_FORMAT", path, writtenBy: "9.9.9", action: "fix-caller" });
      expect(contentOf(directory)).toEqual(content);
      writeFileSync(path, before);
    }
    expect(await (await reopen(directory)).head()).toBe(6);
  });

  it.each(["garbage", ""])("a log.json of %j is CORRUPT, and is left as it is", async (text) => {
    const directory = await makeLog(mode, 2);
    const path = join(directory, "log.json");
    writeFileSync(path, text);
    const content = contentOf(directory);
    expect(await failureOf(reopen(directory))).toMatchObject({ code: "CORRUPT", path, action: "fix-data" });
    expect(contentOf(directory)).toEqual(content);
  });

  it("a byte changed by hand is CORRUPT, with file and byte; events before it can be read", async () => {
    for (const at of ["first", "last"] as const) {
      const directory = await makeLog(mode, 9);
      const files = segmentsOf(directory);
      const path = (at === "first" ? files[1] : files.at(-1))!;
      const before = readFileSync(path);
      const byte = before.indexOf("event");
      const line = before.lastIndexOf(10, byte) + 1;
      const damaged = Number(/event (\d+)/.exec(before.toString())?.[1]);
      writeFileSync(path, Buffer.concat([before.subarray(0, byte), Buffer.from("E"), before.subarray(byte + 1)]));
      const check = async (promise: Promise<unknown>): Promise<void> => {
        const error = await failureOf(promise);
        expect(error).toMatchObject({ code: "CORRUPT", path, action: "fix-data" });
        expect((error as Error).message).toContain(`byte ${line}`);
      };
      const store = await reopen(directory);
      await check(listOf(store.read()));
      // An opening reads the active segment at once: nothing behind the damage is known.
      if (at === "last") {
        expect(positionsOf(await listOf(store.read("all", { upTo: damaged - 1 })))).toEqual(numbers(1, damaged - 1));
        await check(store.append(noted("never")));
        await check(store.head());
        continue;
      }
      await check(listOf(store.read({ tags: [`each:${damaged}`] })));
      expect(positionsOf(await listOf(store.read("all", { upTo: damaged - 1 })))).toEqual(numbers(1, damaged - 1));
      expect(positionsOf(await listOf(store.read("all", { after: damaged + 3 })))).toEqual(numbers(damaged + 4, 9));
      // A condition that cannot be judged fails; one that does not depend on the damage is judged.
      await check(store.append(noted("never"), { condition: { failIfEventsMatch: { tags: [`each:${damaged}`] } } }));
      expect(
        await store.append(noted("fine"), { condition: { failIfEventsMatch: { types: ["Never"] }, after: 9 } }),
      ).toMatchObject({ first: 10 });
    }
  });

  it("a segment that is cut off, gone, or copied over another is reported, and gives no wrong answer", async () => {
    const spoil: [string, (path: string, other: string) => void][] = [
      ["cut off", (path) => truncateSync(path, statSync(path).size - 30)],
      ["cut to nothing", (path) => truncateSync(path, 0)],
      ["gone", (path) => rmSync(path)],
      ["copied over", (path, other) => cpSync(other, path)],
    ];
    for (const [, act] of spoil) {
      const directory = await makeLog(mode, 9);
      const [first, second] = segmentsOf(directory);
      act(second!, first!);
      const error = await failureOf(reopen(directory).then((store) => listOf(store.read())));
      expect(error).toMatchObject({ code: "CORRUPT", action: "fix-data", path: second });
    }
  });

  it("every call that needs a missing segment reports it, and events elsewhere can be read", async () => {
    const directory = await makeLog(mode, 9);
    const [first = "", second] = segmentsOf(directory);
    const missing = { code: "CORRUPT", path: first, message: expect.stringContaining("from a backup") as string };
    // Opened before: the headers are known, the files are not open.
    const store = await reopen(directory);
    rmSync(first);
    const ways = [
      () => listOf(store.read()),
      () => listOf(store.read("all", { backwards: true })),
      () => listOf(store.read({ tags: ["each:1"] })),
      () => reopen(directory),
    ];
    for (const way of ways) expect(await failureOf(way())).toMatchObject(missing);
    expect(await listOf(store.read({ tags: ["each:9"] }))).toHaveLength(1);
    // The directory is not the log any more, which tells nothing about the single file.
    renameSync(dirname(second!), `${directory}/elsewhere`);
    expect(await failureOf(listOf(store.read({ tags: ["each:1"] })))).toMatchObject({ code: "IO_ERROR" });
  });

  it("foreign files among the segments and beside them are ignored", async () => {
    const directory = await makeLog(mode, 6);
    const names = [
      "notes.txt",
      ".DS_Store",
      "Thumbs.db",
      "0000000001.ndjson.bak",
      "1.ndjson",
      "x.ndjson",
      "0000000001 (copy).ndjson",
    ];
    for (const name of names) writeFileSync(join(directory, "segments", name), "foreign");
    mkdirSync(join(directory, "segments", "directory"));
    for (const name of ["notes.txt", "index/notes.txt", "index/x.idx"]) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), "foreign");
    }
    const store = await reopen(directory);
    for (let each = 7; each <= 12; each++) await store.append(noted(`event ${each} ${"x".repeat(100)}`));
    expect(positionsOf(await listOf(store.read()))).toEqual(numbers(1, 12));
    for (const name of names) expect(readFileSync(join(directory, "segments", name), "utf8")).toBe("foreign");
  });

  it.each(["a copy", "garbage", ""])(
    "a file with the name of the next segment (%j) is not written into, and not believed",
    async (kind) => {
      const directory = await makeLog(mode, 3, { segmentBytesMax: 600 });
      const last = segmentsOf(directory).at(-1)!;
      const number = Number(/(\d+)\.ndjson$/.exec(last)?.[1]);
      const next = join(dirname(last), `${String(number + 1).padStart(10, "0")}.ndjson`);
      const content = kind === "a copy" ? readFileSync(last, "utf8") : kind;
      const store = await openOn(await openNodePorts(directory), directory, { segmentBytesMax: 600 });
      writeFileSync(next, content);
      let made = 3;
      const error = await failureOf(
        (async () => {
          for (let each = 0; each < 10; each++, made++) await store.append(noted("x".repeat(200)));
        })(),
      );
      expect(error).toMatchObject({ code: "CORRUPT", path: next });
      expect(readFileSync(next, "utf8")).toBe(content);
      expect(positionsOf(await listOf(store.read()))).toEqual(numbers(1, made));
      await store.close();
      const reopening = reopen(directory).then((reopened) => reopened.append(noted("x")));
      expect(await failureOf(reopening)).toMatchObject({ code: "CORRUPT", path: next });
      rmSync(next);
      const again = await reopen(directory);
      expect(positionsOf(await listOf(again.read()))).toEqual(numbers(1, made));
      expect(await again.append(noted("fine"))).toMatchObject({ first: made + 1 });
    },
  );

  it("the `mode` that another process asks for does not change that of the log", async () => {
    const directory = await makeLog(mode, 3);
    const store = await open(directory, { mode: mode === "local" ? "share" : "local" });
    expect(await store.append(noted("fine"))).toMatchObject({ first: 4 });
    expect(existsSync(join(directory, "tenures"))).toBe(mode === "share");
    expect(existsSync(join(directory, "head"))).toBe(mode === "local");
    expect(await (await reopen(directory)).head()).toBe(4);
  });

  it("a read-only directory can be read, appends reject with NO_PERMISSION, and nothing in it is changed", async () => {
    const directory = await makeLog(mode, 3);
    const all = ["", ...readdirSync(directory, { recursive: true, encoding: "utf8" })].map((name) =>
      join(directory, name),
    );
    chmodSync(dirname(directory), 0o755);
    for (const path of all) chmodSync(path, statSync(path).isDirectory() ? 0o555 : 0o444);
    const content = contentOf(directory);
    await asOrdinaryUser(async () => {
      const store = await openEvents(directory);
      expect(await store.head()).toBe(3);
      expect(await failureOf(store.append(noted("4")))).toMatchObject({
        code: "NO_PERMISSION",
        action: "fix-caller",
        path: directory,
        message: expect.stringContaining("may not write to") as string,
      });
      await store.close();
      expect(await verifyEvents(directory)).toMatchObject({ ok: true, checked: 3 });
    });
    for (const path of all) if (statSync(path).isDirectory()) chmodSync(path, 0o755);
    expect(contentOf(directory)).toEqual(content);
  });

  // From the next session on: a writer has its files open for as long as its session lasts.
  it("an append to a directory that was removed while the log is open is not acknowledged", async () => {
    const directory = await makeLog(mode, 3, {});
    const store = await open(directory);
    await store.append(noted("4"));
    // Until all promises are settled.
    await new Promise((resolve) => void setImmediate(resolve));
    rmSync(directory, { recursive: true, force: true });
    const error = await failureOf(store.append(noted("5")));
    expect(isHoldfastError(error)).toBe(true);
  });

  it.each([Number.NaN, "soon"])("%j as lockTimeoutMs is refused", async (lockTimeoutMs) => {
    const directory = makeScratch();
    expect(await failureOf(openEvents(directory, { mode, lockTimeoutMs: any(lockTimeoutMs) }))).toBeInstanceOf(
      RangeError,
    );
    expect(readdirSync(directory)).toEqual([]);
  });
});

it("on a share the absence of the newest segment may be a stale answer, that of an older one is damage", async () => {
  const directory = `${makeScratch()}/log`;
  let hidden = "";
  const ports = await openNodePorts(directory);
  const disk = changedDisk(ports.disk, (real) => ({
    volume: nfs,
    open: async (path, use) => {
      if (path === hidden) throw diskError("ENOENT", "open", path);
      return await real.open(path, use);
    },
    list: async (path) => (await real.list(path)).filter((name) => !hidden.endsWith(`/${name}`)),
  }));
  const store = await openOn({ ...ports, disk }, directory, smallSegments);
  for (const each of numbers(1, 6)) await store.append(noted(`event ${each} ${"x".repeat(100)}`));
  const segments = segmentsOf(directory);
  hidden = segments.at(-1)!;
  expect(await failureOf(listOf(store.read()))).toMatchObject({ code: "IO_ERROR", path: hidden });
  hidden = segments[0]!;
  expect(await failureOf(listOf(store.read()))).toMatchObject({ code: "CORRUPT", path: hidden });
  hidden = "";
  expect(await listOf(store.read())).toHaveLength(6);
});

describe("the head of a log on one machine", () => {
  const spoil: [string, (path: string) => void][] = [
    ["garbage", (path) => writeFileSync(path, "garbage\n".repeat(64))],
    ["empty", (path) => truncateSync(path, 0)],
    ["cut off", (path) => truncateSync(path, 100)],
    ["missing", (path) => rmSync(path, { force: true })],
    [
      "of another boot",
      (path) =>
        writeFileSync(
          path,
          readFileSync(path, "utf8").replace(/"boot":"[^"]*"/, '"boot":"00000000-0000-4000-8000-000000000000"'),
        ),
    ],
  ];

  it.each(spoil)("may be %s when the log is opened: the segments decide", async (_, act) => {
    const directory = await makeLog("local", 7);
    act(join(directory, "head"));
    const reader = await reopen(directory);
    expect(positionsOf(await listOf(reader.read()))).toEqual(numbers(1, 7));
    act(join(directory, "head"));
    const writer = await reopen(directory);
    expect(await writer.append(noted("8"), { condition: { failIfEventsMatch: { tags: ["never"] } } })).toMatchObject({
      first: 8,
    });
    expect(
      await failureOf(writer.append(noted("9"), { condition: { failIfEventsMatch: { tags: ["each:7"] } } })),
    ).toMatchObject({ conflicts: [{ position: 7 }] });
    expect(positionsOf(await listOf((await reopen(directory)).read()))).toEqual(numbers(1, 8));
  });

  it("may be gone with all segments: the indexes prove that there were some, and no append gets position 1 again", async () => {
    const directory = await makeLog("local", 9);
    expect(readdirSync(join(directory, "index"))).not.toEqual([]);
    rmSync(join(directory, "head"));
    for (const path of segmentsOf(directory)) rmSync(path);
    for (let time = 1; time <= 2; time++)
      expect(await failureOf(reopen(directory))).toMatchObject({
        code: "CORRUPT",
        path: join(directory, "segments"),
        message: expect.stringContaining("from a backup") as string,
      });
    expect(segmentsOf(directory)).toEqual([]);
  });

  it("is absent in an empty log, which opens also with foreign files in its index", async () => {
    const directory = await makeLog("local", 0);
    mkdirSync(join(directory, "index"));
    writeFileSync(join(directory, "index", "notes.idx"), "foreign");
    expect(await (await reopen(directory)).append(noted("1"))).toMatchObject({ first: 1 });
  });

  it.each(spoil)("may become %s while the log is open: no acknowledged event is lost", async (_, act) => {
    const directory = await makeLog("local", 3);
    const [one, other] = [await reopen(directory), await reopen(directory)];
    const acknowledged: string[] = [];
    for (let round = 0; round < 4; round++)
      for (const [index, store] of [one, other].entries()) {
        const name = `round ${round} of ${index}`;
        await store.append(noted(name));
        acknowledged.push(name);
        if (round === 1) act(join(directory, "head"));
      }
    for (const store of [one, other, await reopen(directory)]) {
      const events = await listOf(store.read());
      expect(positionsOf(events)).toEqual(numbers(1, 11));
      expect(events.slice(3).map(({ data }) => data)).toEqual(acknowledged);
    }
  });
});

describe("a log for one machine on a network mount", () => {
  const onNetwork = async (directory: string): Promise<Ports> => {
    const ports = await openNodePorts(directory);
    return { ...ports, disk: changedDisk(ports.disk, () => ({ volume: nfs })) };
  };

  it("is refused with the way to convert it, and nothing is changed", async () => {
    const directory = await makeLog("local", 3);
    const content = contentOf(directory);
    const error = await failureOf(openOn(await onNetwork(directory), directory));
    expect(error).toMatchObject({ code: "UNSUPPORTED_DISK", path: directory, action: "fix-caller" });
    expect((error as Error).message).toMatch(/export.*import/);
    expect(contentOf(directory)).toEqual(content);
  });

  it("cannot be made there; by default a log there has mode share", async () => {
    const directory = `${makeScratch()}/log`;
    const ports = await onNetwork(directory);
    expect(await failureOf(openOn(ports, directory, { mode: "local" }))).toMatchObject({ code: "UNSUPPORTED_DISK" });
    expect(existsSync(join(directory, "log.json"))).toBe(false);
    const store = await openOn(ports, directory);
    await store.append(noted("1"));
    expect(readFileSync(join(directory, "log.json"), "utf8")).toContain('"mode":"share"');
  });

  it("is not made with an unknown mode, and leaves no files behind", async () => {
    const directory = `${makeScratch()}/log`;
    await failureOf(openEvents(directory, { mode: any("shared") }));
    expect(await (await open(directory)).append(noted("1"))).toMatchObject({ first: 1 });
  });
});

/** A disk on which some calls to the segments fail, as often as `plan` says. */
interface Plan {
  write: number;
  sync: number;
  errno: string;
  /** Written before it fails. */
  bytes: number;
}

function failing(ports: Ports, plan: Plan): Ports {
  const spoilt = (file: DiskFile, path: string): DiskFile => ({
    read: (offset, length) => file.read(offset, length),
    write: async (offset, bytes) => {
      if (plan.write-- > 0) {
        await file.write(offset, bytes.subarray(0, plan.bytes));
        throw diskError(plan.errno, "write", path);
      }
      await file.write(offset, bytes);
    },
    sync: async () => {
      if (plan.sync-- > 0) throw diskError(plan.errno, "sync", path);
      await file.sync();
    },
    stat: () => file.stat(),
    close: () => file.close(),
  });
  const change = (disk: Disk): Partial<Disk> => ({
    open: async (path, mode) => {
      const file = await disk.open(path, mode);
      return path.endsWith(".ndjson") && mode === "write" ? spoilt(file, path) : file;
    },
  });
  return { ...ports, disk: changedDisk(ports.disk, change) };
}

describe.each(modes)("a disk that fails, in mode %s:", (mode) => {
  async function setUp(): Promise<{ plan: Plan; store: EventStore; directory: string }> {
    const directory = await makeLog(mode, 2, { segmentBytesMax: 100_000 });
    const plan: Plan = { write: 0, sync: 0, errno: "EIO", bytes: 0 };
    const store = await openOn(failing(await openNodePorts(directory), plan), directory, { segmentBytesMax: 100_000 });
    return { plan, store, directory };
  }

  it("after a sync that fails once and then succeeds, the event never appears, and no line follows it", async () => {
    const { plan, store, directory } = await setUp();
    const before = segmentsOf(directory).length;
    plan.sync = 1;
    const error = await failureOf(store.append(noted("failed")));
    expect(error).toMatchObject({ code: "IO_ERROR" });
    expect(await store.append(noted("after"))).toMatchObject({ first: 3 });
    expect(segmentsOf(directory).length).toBeGreaterThan(before);
    for (const each of [store, await reopen(directory)])
      expect((await listOf(each.read("all", { after: 2 }))).map(({ data }) => data)).toEqual(["after"]);
    // Not even when the segments alone decide.
    if (mode === "share") return;
    rmSync(join(directory, "head"));
    expect((await listOf((await reopen(directory)).read("all", { after: 2 }))).map(({ data }) => data)).toEqual([
      "after",
    ]);
  });

  it.each([0, 1, 40, 100_000])(
    "an append whose write fails after %d bytes never appears, whatever was written of it",
    async (bytes) => {
      const { plan, store, directory } = await setUp();
      Object.assign(plan, { write: 1, errno: "ENOSPC", bytes });
      const together = await Promise.allSettled([store.append(noted("a")), store.append([noted("b"), noted("c")])]);
      expect(together).toMatchObject([{ reason: { code: "DISK_FULL" } }, { reason: { code: "DISK_FULL" } }]);
      const other = await reopen(directory);
      expect(await other.head()).toBe(2);
      expect(await other.append(noted("d"))).toMatchObject({ first: 3 });
      expect(await store.append(noted("e"))).toMatchObject({ first: 4 });
      expect((await listOf(store.read("all", { after: 2 }))).map(({ data }) => data)).toEqual(["d", "e"]);
    },
  );

  it("a call refused because of an event of its batch is judged again when the batch fails", async () => {
    const { plan, store } = await setUp();
    Object.assign(plan, { write: 1, errno: "ENOSPC" });
    const condition = { failIfEventsMatch: { tags: ["name:ada"] } };
    const answers = await Promise.allSettled(
      [1, 2, 3].map((each) => store.append(noted(each, "name:ada"), { condition })),
    );
    expect(answers).toMatchObject([
      { reason: { code: "DISK_FULL" } },
      { value: { first: 3 } },
      { reason: { code: "APPEND_CONDITION_FAILED", conflicts: [{ position: 3, data: 2 }] } },
    ]);
  });

  it("a call refused because of an id of its batch is judged again when the batch fails", async () => {
    const { plan, store } = await setUp();
    Object.assign(plan, { write: 1, errno: "ENOSPC" });
    const answers = await Promise.allSettled([1, 2].map((each) => store.append({ ...noted(each), id: "a" })));
    expect(answers).toMatchObject([{ reason: { code: "DISK_FULL" } }, { value: { first: 3, repeated: false } }]);
  });

  it("a batch on a disk that runs full fails as a whole, and the next append works once there is space", async (context) => {
    const directory = mountSmallDisk(context, "size=2m,nr_inodes=400");
    const store = await open(`${directory}/log`, { mode });
    await store.append(noted("before"));
    const free = fill(directory);
    // Room for a part of it.
    truncateSync(join(directory, "filler"), statSync(join(directory, "filler")).size - 40_000);
    const told = new Map<string, string>();
    for (const name of ["large", "larger"]) {
      const batch = numbers(1, 40).map((each) => noted(`${name} ${each} ${"x".repeat(3000)}`, name));
      told.set(
        name,
        await store.append(batch).then(
          () => "done",
          (error: unknown) => (isHoldfastError(error) ? error.code : String(error)),
        ),
      );
    }
    expect([...told.values()].filter((code) => !["DISK_FULL", "OUTCOME_UNKNOWN"].includes(code))).toEqual([]);
    expect(positionsOf(await listOf(store.read("all", { limit: 1 })))).toEqual([1]);
    free();
    const { first } = await store.append(noted("after"));
    for (const each of [store, await open(`${directory}/log`)]) {
      const events = await listOf(each.read());
      expect(positionsOf(events)).toEqual(numbers(1, events.length));
      expect(events[first - 1]?.data).toBe("after");
      for (const [name, code] of told) {
        const parts = events.filter(({ tags }) => tags.includes(name)).length;
        expect(code === "OUTCOME_UNKNOWN" ? [0, 40] : [0]).toContain(parts);
      }
    }
  });
});

it.each(modes)("a clock that is set back changes neither the order nor any answer (mode %s)", async (mode) => {
  const directory = `${makeScratch()}/log`;
  const ports = await openNodePorts(directory);
  let offsetMs = 0;
  const clock = { ...ports.clock, wallMs: () => ports.clock.wallMs() + offsetMs };
  const store = await openOn({ ...ports, clock }, directory, { mode });
  const day = 86_400_000;
  for (const [index, days] of [0, 400, -400, -20_000, 1].entries()) {
    offsetMs = days * day;
    expect(
      await store.append(noted(index, "clock"), {
        condition: { failIfEventsMatch: { tags: ["clock"] }, after: index },
      }),
    ).toMatchObject({ first: index + 1 });
  }
  for (const each of [store, await reopen(directory)]) {
    const events = await listOf(each.read({ tags: ["clock"] }));
    expect(events.map(({ data }) => data)).toEqual([0, 1, 2, 3, 4]);
    expect(new Set(events.map(({ id }) => id)).size).toBe(5);
    expect(await each.last()).toMatchObject({ position: 5 });
  }
});

it("a path that is a file, or no valid path, is refused as such", async () => {
  const file = join(makeScratch(), "file");
  writeFileSync(file, "foreign");
  expect(await failureOf(openEvents(file))).toMatchObject({ code: "IO_ERROR", errno: "ENOTDIR" });
  expect(readFileSync(file, "utf8")).toBe("foreign");
  for (const location of ["", "a\0b"])
    expect(await failureOf(openEvents(location))).toMatchObject({ code: "INVALID_PATH" });
});

it("a log whose directory was renamed is the same log", async () => {
  const directory = await makeLog("local", 3);
  const moved = `${directory}-moved`;
  renameSync(directory, moved);
  appendFileSync(join(moved, "notes.txt"), "moved");
  expect(await (await reopen(moved)).append(noted("4"))).toMatchObject({ first: 4 });
});
