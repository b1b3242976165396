import * as fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { ActiveIndex } from "../../../src/events/index/memory/active-index.ts";
import type { FindActive } from "../../../src/events/index/build/segment-image.ts";
import { keysOf, type IndexedEvent } from "../../../src/events/index/keys/key-hash.ts";
import type { IndexedLine } from "../../../src/events/index/keys/indexed-line.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { createMemoryDisk } from "../../../src/ports/memory/disk.ts";
import { nodeRandom } from "../../../src/ports/node/random.ts";
import { changedDisk, places, withDisk, type Place } from "../../sites/disks.ts";
import { expectRightAnswers, indexesOf, namesIn, segmentsOf } from "./index-bench.ts";
import { anyQuestion, anySegments, listOf, ModelLog } from "./model-log.ts";
import { SealedIndexes } from "../../../src/events/index/sealed-indexes.ts";

async function memoryPlace(): Promise<Place> {
  const disk = createMemoryDisk(() => 0);
  for (const path of ["/temp", "/files"]) await disk.mkdir(path);
  return { staging: { disk, random: nodeRandom, directory: async () => "/temp" }, temp: "/temp", directory: "/files" };
}

/** The indexes in memory of a process that followed the log from its beginning. */
async function activesOf(log: ModelLog): Promise<FindActive> {
  const actives: ActiveIndex[] = [];
  for (const segment of log.segments) {
    const active = new ActiveIndex(segment.first);
    for await (const line of log.scan(segment)) active.add(line);
    actives.push(active);
  }
  log.scanned.length = 0;
  return (position) => actives.find(({ first, last }) => first <= position && position <= last);
}

/** A promise that the test resolves. */
function newGate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

describe("the index of sealed segments", { timeout: 240_000 }, () => {
  it("gives exactly the positions that a walk over the log gives: just made, opened again, and merged", async () => {
    await fc.assert(
      fc.asyncProperty(anySegments, fc.array(anyQuestion, { maxLength: 12 }), async (segments, questions) => {
        const log = new ModelLog(segments, { firstSegment: 3, step: 2 });
        const place = await memoryPlace();
        const open = (findActive?: FindActive): SealedIndexes => {
          const { staging, directory } = place;
          const options = { staging, directory: `${directory}/index`, logId: "x", scan: log.scan, findActive };
          const indexes = new SealedIndexes(options);
          for (const segment of log.segments) indexes.add(segment);
          return indexes;
        };
        const agree = async (indexes: SealedIndexes): Promise<void> => {
          for (const { items, range, backwards } of questions) {
            const expected = log.find(items, range, backwards);
            expect(await listOf(indexes.candidates(items, range, backwards))).toEqual(expected);
            if (indexes.excludes(items, range.after))
              expect(log.find(items, { after: range.after, upTo: log.last }, false)).toEqual([]);
          }
          for (const [at, { line }] of log.events.entries()) expect(await indexes.getLine(at + 1)).toEqual(line);
          for (const id of ["id-1", "id-2", "Sold", "never"])
            expect(await listOf(indexes.idCandidates(id))).toEqual(log.findId(id));
        };
        const recent = open(await activesOf(log));
        await agree(recent);
        // Indexes that are still in memory need no file.
        await expect(place.staging.disk.list(`${place.directory}/index`)).rejects.toMatchObject({ errno: "ENOENT" });
        const made = open();
        await agree(made);
        const opened = open();
        await agree(opened);
        await opened.build();
        await agree(opened);
        // The other instance merged its files meanwhile.
        await agree(made);
        const merged = open();
        const scans = log.scanned.length;
        await agree(merged);
        expect(log.scanned).toHaveLength(scans);
        for (const indexes of [recent, made, opened, merged]) await indexes.close();
      }),
      { numRuns: 60 },
    );
  });

  describe.each(places)("on %s", (_, make) => {
    let place: Place;
    beforeEach(async () => {
      place = await make();
    });

    it("reads each segment once in its life, and none again after a restart", async () => {
      const log = new ModelLog(segmentsOf(8));
      await indexesOf(place, log).build();
      expect(log.scanned).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      await expectRightAnswers(indexesOf(place, log), log);
      expect(log.scanned).toHaveLength(8);
      expect(await place.staging.disk.list(place.temp)).toEqual([]);
    });

    it("makes no index before a question, and then only those that it needs", async () => {
      const log = new ModelLog(segmentsOf(8));
      const indexes = indexesOf(place, log);
      await expect(place.staging.disk.list(`${place.directory}/index`)).rejects.toMatchObject({ errno: "ENOENT" });
      await indexes.getLine(7);
      expect(log.scanned).toEqual([3]);
      expect(await namesIn(place)).toEqual(["0000000003-0000000003.idx"]);
    });

    it("merges six into one, and removes the six when the next segment was sealed", async () => {
      const log = new ModelLog(segmentsOf(6));
      const indexes = indexesOf(place, log);
      await indexes.build();
      expect(await namesIn(place)).toHaveLength(7);
      indexes.add(log.seal(segmentsOf(1)[0] ?? []));
      await indexes.build();
      expect(await namesIn(place)).toEqual(["0000000001-0000000006.idx", "0000000007-0000000007.idx"]);
      await expectRightAnswers(indexes, log);
      expect(log.scanned).toHaveLength(7);
    });

    it("leaves the index of the newest segment to the process that sealed it, if asked to", async () => {
      const log = new ModelLog(segmentsOf(6));
      const indexes = indexesOf(place, log);
      await indexes.build({ butNewest: true });
      expect(log.scanned).toEqual([1, 2, 3, 4, 5]);
      await indexes.build();
      expect(await namesIn(place)).toContain("0000000001-0000000006.idx");
      await expectRightAnswers(indexes, log);
    });

    it("finds merges of other processes, and does not make their parts again", async () => {
      const log = new ModelLog(segmentsOf(12));
      const late = indexesOf(place, log);
      await indexesOf(place, log).build();
      log.seal(segmentsOf(1)[0] ?? []);
      await indexesOf(place, log).build();
      const before = await namesIn(place);
      const scans = log.scanned.length;
      await late.build({ butNewest: true });
      expect(await namesIn(place)).toEqual(before);
      expect(log.scanned).toHaveLength(scans);
    });

    it("goes on reading while a merge removes the files", async () => {
      const log = new ModelLog(segmentsOf(7));
      const reader = indexesOf(place, log);
      const builder = indexesOf(place, log);
      const found: number[] = [];
      for await (const position of reader.candidates([{ types: ["Sold"], tags: [] }], { after: 0, upTo: 99 }, false)) {
        if (found.length === 1) await builder.build();
        if (found.length === 5) await reader.build();
        found.push(position);
      }
      expect(found).toEqual(log.find([{ types: ["Sold"], tags: [] }], { after: 0, upTo: 99 }, false));
    });
  });

  it("merges merges: after 43 segments three files are left", async () => {
    const place = await memoryPlace();
    const log = new ModelLog(segmentsOf(43));
    const indexes = indexesOf(place, log);
    await indexes.build();
    expect(await namesIn(place)).toEqual([
      "0000000001-0000000036.idx",
      "0000000037-0000000042.idx",
      "0000000043-0000000043.idx",
    ]);
    await expectRightAnswers(indexes, log);
    expect(log.scanned).toHaveLength(43);
  });

  it("answers for an unseen tag from memory, once the filters are loaded", async () => {
    let reads = 0;
    const place = withDisk(await memoryPlace(), (disk) => ({
      open: async (path, mode) => {
        const file = await disk.open(path, mode);
        return new Proxy(file, {
          get: (target, key) => {
            if (key === "read") reads++;
            const value: unknown = Reflect.get(target, key);
            return typeof value === "function" ? value.bind(target) : value;
          },
        });
      },
    }));
    const log = new ModelLog(segmentsOf(8));
    const indexes = indexesOf(place, log);
    await indexes.build();
    const ask = (tag: string): Promise<number[]> =>
      listOf(indexes.candidates([{ types: [], tags: [tag] }], { after: 0, upTo: 99 }, false));
    expect(indexes.excludes([{ types: [], tags: ["new 0"] }], 0)).toBe(false);
    await ask("new 0");
    const before = reads;
    const unseen = Array.from({ length: 100 }, (_, at) => `new ${at}`);
    const sure = unseen.filter((tag) => indexes.excludes([{ types: [], tags: [tag] }], 0));
    expect(sure.length).toBeGreaterThan(85);
    for (const tag of sure) expect(await ask(tag)).toEqual([]);
    expect(reads).toBe(before);
    expect(indexes.excludes([{ types: [], tags: ["only 7"] }], 0)).toBe(false);
    expect(indexes.excludes([{ types: [], tags: ["only 7"] }], log.last)).toBe(true);
  });

  it("pages through lists of many blocks, from anywhere in both directions", async () => {
    const place = await memoryPlace();
    const eventAt = (at: number): IndexedEvent => ({
      type: at % 3 === 0 ? "Third" : "Other",
      tags: at % 100 === 0 ? ["hundredth", "any"] : at % 7 === 0 ? ["any"] : [],
    });
    const segment = (from: number): IndexedEvent[][] =>
      Array.from({ length: 3000 }, (_, line) => [eventAt(from + line * 2), eventAt(from + line * 2 + 1)]);
    const log = new ModelLog([0, 1, 2, 3, 4, 5].map((number) => segment(number * 6000 + 1)));
    const indexes = indexesOf(place, log);
    await indexes.build();
    expect(indexes.last).toBe(36_000);
    for (const items of [
      [{ types: ["Third"], tags: [] }],
      [{ types: ["Other", "Third"], tags: ["any"] }],
      [{ types: ["Third"], tags: ["hundredth", "any"] }],
      [{ types: ["Other", "Third"], tags: [] }],
      [
        { types: ["Third"], tags: [] },
        { types: [], tags: ["any"] },
      ],
    ])
      for (const [after, upTo] of [
        [0, 36_000],
        [8191, 8192],
        [12_345, 23_456],
        [35_990, 99_999],
      ] as const)
        for (const backwards of [false, true]) {
          const found = await listOf(indexes.candidates(items, { after, upTo }, backwards));
          expect(found).toEqual(log.find(items, { after, upTo }, backwards));
        }
    for (const position of [1, 2, 17_999, 18_000, 36_000])
      expect(await indexes.getLine(position)).toEqual(log.events[position - 1]?.line);
  });

  it("reads neither a huge list nor a long past for a question about a rare tag near the end", async () => {
    const blocks: number[] = [];
    const place = withDisk(await memoryPlace(), (disk) => ({
      open: async (path, mode) => {
        const file = await disk.open(path, mode);
        const read = async (offset: number, length: number): Promise<Uint8Array> => {
          blocks.push(offset);
          return file.read(offset, length);
        };
        return {
          ...file,
          read,
          write: file.write.bind(file),
          sync: file.sync.bind(file),
          stat: file.stat.bind(file),
          close: file.close.bind(file),
        };
      },
    }));
    const events = Array.from({ length: 100_000 }, (_, at): IndexedEvent => ({
      type: "T",
      tags: at % 50_000 === 0 ? ["rare"] : ["common"],
    }));
    const log = new ModelLog([[events]]);
    await indexesOf(place, log).build();
    const all = { after: 0, upTo: 100_000 };
    for (const { tag, range, count } of [
      { tag: "rare", range: all, count: 2 },
      { tag: "common", range: { after: 99_990, upTo: 100_000 }, count: 10 },
      { tag: "common", range: { after: 1, upTo: 11 }, count: 10 },
    ])
      for (const backwards of [false, true]) {
        const indexes = indexesOf(place, log);
        blocks.length = 0;
        expect(await listOf(indexes.candidates([{ types: ["T"], tags: [tag] }], range, backwards))).toHaveLength(count);
        // The list of the type has 25 blocks, and so has that of the common tag.
        expect(blocks.length).toBeLessThan(20);
      }
  });

  it("bears ten thousand tags on one event", async () => {
    const place = await memoryPlace();
    const tags = Array.from({ length: 10_000 }, (_, at) => `tag ${at}`);
    const log = new ModelLog([[[{ type: "A", tags }]], ...segmentsOf(5)]);
    const indexes = indexesOf(place, log);
    await indexes.build();
    for (const tag of ["tag 0", "tag 9999", "tag 10000"]) {
      const items = [{ types: ["A"], tags: [tag, "tag 5"] }];
      expect(await listOf(indexes.candidates(items, { after: 0, upTo: 99 }, false))).toEqual(
        log.find(items, { after: 0, upTo: 99 }, false),
      );
    }
    expect(await listOf(indexes.candidates([{ types: [], tags }], { after: 0, upTo: 99 }, false))).toEqual([1]);
  });

  it("answers a query of ten thousand items", async () => {
    const place = await memoryPlace();
    const log = new ModelLog(segmentsOf(8));
    const indexes = indexesOf(place, log);
    await indexes.build();
    const items = Array.from({ length: 10_000 }, (_, at) => ({ types: ["Opened", "Sold"], tags: [`only ${at}`] }));
    expect(await listOf(indexes.candidates(items, { after: 0, upTo: 99 }, true))).toEqual(
      log.find(items, { after: 0, upTo: 99 }, true),
    );
  });

  it("counts positions from its own first one, so that they may be beyond 2^32", async () => {
    const { staging, directory } = await memoryPlace();
    const first = 2 ** 45;
    const segment = { number: 9_999_999_999, first, last: first + 1, length: 50, checksum: "00000000" };
    const keys = [keysOf({ type: "A", tags: [] }), keysOf({ type: "B", tags: ["x"] })];
    const scan = async function* (): AsyncGenerator<IndexedLine> {
      yield { segment: segment.number, offset: 9, bytes: 41, first, timeMs: 0, keys };
    };
    const indexes = new SealedIndexes({ staging, directory: `${directory}/index`, logId: "x", scan });
    indexes.add(segment);
    expect(await listOf(indexes.candidates([{ types: [], tags: ["x"] }], { after: 0, upTo: Infinity }, false))).toEqual(
      [first + 1],
    );
    expect(await indexes.getLine(first + 1)).toEqual({ segment: 9_999_999_999, offset: 9, bytes: 41, first });
    await indexes.close();
  });

  it("refuses a segment that does not follow, and a position that no sealed segment has", async () => {
    const log = new ModelLog(segmentsOf(2));
    const indexes = indexesOf(await memoryPlace(), log);
    expect(() => indexes.add({ number: 3, first: 9, last: 9, length: 1, checksum: "00000000" })).toThrow(RangeError);
    await expect(indexes.getLine(0)).rejects.toThrow(RangeError);
    await expect(indexes.getLine(7)).rejects.toThrow(RangeError);
    expect(await listOf(indexes.candidates([{ types: [], tags: [] }], { after: 6, upTo: 99 }, false))).toEqual([]);
  });

  it("passes on errors of the log, and makes no index of a segment with other events than expected", async () => {
    const place = await memoryPlace();
    const log = new ModelLog(segmentsOf(1));
    const [segment] = log.segments;
    if (segment === undefined) throw new Error("no segment");
    const short = new SealedIndexes({ ...place, directory: `${place.directory}/index`, logId: "x", scan: log.scan });
    short.add({ ...segment, last: segment.last + 1 });
    await expect(short.getLine(1)).rejects.toSatisfy((error) => isHoldfastError(error, "CORRUPT"));
    const failing = new SealedIndexes({
      ...place,
      directory: `${place.directory}/index`,
      logId: "x",
      scan: async function* () {
        yield* log.linesOf(1);
        throw new Error("the log cannot be read");
      },
    });
    failing.add(segment);
    await expect(failing.getLine(1)).rejects.toThrow("the log cannot be read");
    await expect(place.staging.disk.list(`${place.directory}/index`)).rejects.toMatchObject({ errno: "ENOENT" });
  });

  it("rejects with CLOSED when closed, and a build under way ends", async () => {
    const place = await memoryPlace();
    const indexes = indexesOf(place, new ModelLog(segmentsOf(13)));
    const build = indexes.build();
    await indexes.close();
    await expect(build).rejects.toMatchObject({ code: "CLOSED" });
    await expect(indexes.getLine(1)).rejects.toMatchObject({ code: "CLOSED" });
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });

  it("ends a merge that is under way when it is closed, and leaves no file of it", async () => {
    const { staging, directory } = await memoryPlace();
    const log = new ModelLog(segmentsOf(6));
    let closing: Promise<void> | undefined;
    const pause = async (): Promise<void> => {
      // All segments have their index: this is the first write of the merge.
      if ((await staging.disk.list(`${directory}/index`).catch(() => [])).length === 6) closing ??= indexes.close();
    };
    const indexes = new SealedIndexes({ staging, directory: `${directory}/index`, logId: "x", scan: log.scan, pause });
    for (const segment of log.segments) indexes.add(segment);
    await Promise.allSettled([indexes.build()]);
    await closing;
    expect(closing).toBeDefined();
    expect(await staging.disk.list(`${directory}/index`)).toHaveLength(6);
    expect(await staging.disk.list("/temp")).toEqual([]);
  });

  it("yields to the event loop while it works", async () => {
    const { staging, directory } = await memoryPlace();
    const log = new ModelLog(segmentsOf(6));
    let pauses = 0;
    const pause = async (): Promise<void> => void pauses++;
    const indexes = new SealedIndexes({ staging, directory: `${directory}/index`, logId: "x", scan: log.scan, pause });
    for (const segment of log.segments) indexes.add(segment);
    await indexes.build();
    expect(pauses).toBeGreaterThan(6);
    await indexes.close();
  });

  it("does not pause while a caller waits for it", async () => {
    const { staging, directory } = await memoryPlace();
    const log = new ModelLog(segmentsOf(2));
    const [begun, goOn] = [newGate(), newGate()];
    const pause = async (): Promise<void> => {
      begun.open();
      await goOn.opened;
    };
    const indexes = new SealedIndexes({ staging, directory: `${directory}/index`, logId: "x", scan: log.scan, pause });
    for (const segment of log.segments) indexes.add(segment);
    // For this caller it is made without a pause.
    expect(await indexes.getLine(1)).toEqual(log.events[0]?.line);
    // A build in the background goes on without pauses from its next step on.
    const built = indexes.build();
    await begun.opened;
    const place = indexes.getLine(5);
    goOn.open();
    expect(await place).toEqual(log.events[4]?.line);
    await built;
    await indexes.close();
  });

  it("closes every file that it opened", async () => {
    const open = new Set<object>();
    const plain = await memoryPlace();
    const disk = changedDisk(plain.staging.disk, (below) => ({
      open: async (path, mode) => {
        const file = await below.open(path, mode);
        open.add(file);
        const { close } = file;
        file.close = async () => {
          open.delete(file);
          await close.call(file);
        };
        return file;
      },
    }));
    const log = new ModelLog(segmentsOf(8));
    const place = { ...plain, staging: { ...plain.staging, disk } };
    const indexes = indexesOf(place, log);
    await expectRightAnswers(indexes, log);
    await indexes.build();
    expect(open.size).toBe(3);
    await indexes.close();
    expect(open.size).toBe(0);
  });
});
