import { chmodSync, mkdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { planOf } from "../../../src/events/index/merge-range.ts";
import { diskError } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { makeRealPlace, places, withDisk } from "../../sites/disks.ts";
import { asOrdinaryUser } from "../../sites/scratch.ts";
import { expectRightAnswers, indexesOf, namesIn, segmentsOf } from "./index-bench.ts";
import { listOf, ModelLog } from "./model-log.ts";

describe("which segments share an index", () => {
  const segments = Array.from({ length: 1400 }, (_, at) => ({
    number: at + 1,
    first: at + 1,
    last: at + 1,
    length: 1,
    checksum: "00000000",
  }));

  it("covers all of them in order, with at most fifteen filters at ten million events", () => {
    for (let count = 0; count <= 1400; count++) {
      const plan = planOf(segments.slice(0, count));
      expect(plan.flatMap((span) => span.segments.map(({ number }) => number))).toEqual(
        segments.slice(0, count).map(({ number }) => number),
      );
      if (count <= 333) expect(plan.length).toBeLessThanOrEqual(15);
    }
  });

  it("keeps merged ranges: another segment makes one more index, or merges several", () => {
    for (let count = 1; count < 300; count++) {
      const later = planOf(segments.slice(0, count + 1));
      for (const { first, last } of planOf(segments.slice(0, count)))
        expect(later.filter((span) => span.first <= first && last <= span.last)).toHaveLength(1);
    }
  });
});

describe.each(places)("indexes shared by several processes on %s", (_, make) => {
  it("give right answers when all processes build and merge at the same time", async () => {
    const place = await make();
    const logs = [1, 2, 3].map(() => new ModelLog(segmentsOf(14)));
    const all = logs.map((log) => indexesOf(place, log));
    await Promise.all([
      ...all.map((indexes) => indexes.build()),
      ...all.map((indexes, at) => expectRightAnswers(indexes, logs[at] as ModelLog)),
    ]);
    for (const [at, indexes] of all.entries()) await expectRightAnswers(indexes, logs[at] as ModelLog);
    const [first, ...others] = all;
    await first?.build();
    expect(await namesIn(place)).toEqual([
      "0000000001-0000000006.idx",
      "0000000007-0000000012.idx",
      "0000000013-0000000013.idx",
      "0000000014-0000000014.idx",
    ]);
    for (const [at, indexes] of others.entries()) await expectRightAnswers(indexes, logs[at + 1] as ModelLog);
  });

  it("serve a reader that knows fewer segments than were merged", async () => {
    const place = await make();
    const log = new ModelLog(segmentsOf(6));
    await indexesOf(place, log).build();
    const scans = log.scanned.length;
    // One segment behind: the parts are still there.
    await expectRightAnswers(indexesOf(place, log, { count: 5 }), log, 5);
    expect(log.scanned).toHaveLength(scans);
    log.seal(segmentsOf(1)[0] ?? []);
    await indexesOf(place, log).build();
    // Two behind: it makes its own, and nothing is wrong.
    await expectRightAnswers(indexesOf(place, log, { count: 5 }), log, 5);
    await indexesOf(place, log).build();
    expect(await namesIn(place)).toEqual(["0000000001-0000000006.idx", "0000000007-0000000007.idx"]);
  });

  it("are found by a reader that looked for the merged one too early", async () => {
    const place = await make();
    const log = new ModelLog(segmentsOf(7));
    const reader = indexesOf(place, log);
    await reader.getLine(1);
    const builder = indexesOf(place, log);
    await builder.build();
    await builder.build();
    const scans = log.scanned.length;
    await expectRightAnswers(reader, log);
    expect(log.scanned).toHaveLength(scans);
  });

  it("are usable for a process that opens them in the middle of a merge", async () => {
    const place = await make();
    const log = new ModelLog(segmentsOf(7));
    let step = 0;
    const watched = withDisk(place, (disk) => {
      const look = async (): Promise<void> => {
        if (++step % 4 === 0) await expectRightAnswers(indexesOf(place, log), log);
      };
      return {
        rename: async (from, to) => {
          await look();
          await disk.rename(from, to);
          await look();
        },
        unlink: async (path) => {
          await look();
          await disk.unlink(path);
          await look();
        },
      };
    });
    await indexesOf(watched, log).build();
    expect(step).toBeGreaterThan(15);
  });

  it("leave foreign files alone", async () => {
    const place = await make();
    const log = new ModelLog(segmentsOf(7));
    await place.staging.disk.mkdir(`${place.directory}/index`);
    for (const name of ["README", "1-2.idx", "0000000001-0000000002.idx.bak"])
      await place.staging.disk.createFile(`${place.directory}/index/${name}`, Buffer.from("mine"), { sync: false });
    await indexesOf(place, log).build();
    expect(await namesIn(place)).toEqual(
      expect.arrayContaining(["README", "1-2.idx", "0000000001-0000000002.idx.bak"]),
    );
  });
});

describe("where nothing can be written", () => {
  const refusals: readonly [string, (disk: Disk) => Partial<Disk>][] = [
    [
      "the directory cannot be made",
      () => ({ mkdir: async (path) => Promise.reject(diskError("EROFS", "mkdir", path)) }),
    ],
    [
      "files cannot be made",
      (disk) => ({
        open: async (path, mode) =>
          mode === "create" ? Promise.reject(diskError("EACCES", "open", path)) : disk.open(path, mode),
      }),
    ],
    [
      "the disk is full",
      (disk) => ({
        open: async (path, mode) => {
          const file = await disk.open(path, mode);
          if (mode === "create") file.write = async () => Promise.reject(diskError("ENOSPC", "write", path));
          return file;
        },
      }),
    ],
    [
      "names cannot be changed",
      () => ({ rename: async (_from, to) => Promise.reject(diskError("EPERM", "rename", to)) }),
    ],
    [
      "the answer to a rename is lost",
      (disk) => ({
        rename: async (from, to) => {
          await disk.rename(from, to);
          throw diskError("EIO", "rename", to);
        },
      }),
    ],
  ];

  it.each(refusals)("because %s, the index is kept in memory and all answers are right", async (_, refuse) => {
    const place = await makeRealPlace();
    const log = new ModelLog(segmentsOf(8));
    const indexes = indexesOf(withDisk(place, refuse), log);
    await indexes.build();
    await expectRightAnswers(indexes, log);
    await indexes.build();
    await expectRightAnswers(indexes, log);
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
    // Each segment was read at most once by the questions, and once for the file that could not be
    // written.
    expect(log.scanned.length).toBeLessThanOrEqual(9);
    const healthy = indexesOf(place, log);
    await healthy.build();
    await expectRightAnswers(healthy, log);
  });

  it("as an ordinary user in a read-only directory, existing indexes are used and missing ones kept in memory", async () => {
    const place = await makeRealPlace();
    const log = new ModelLog(segmentsOf(7));
    await indexesOf(place, log).build();
    log.seal(segmentsOf(1)[0] ?? []);
    for (const path of [place.directory, place.temp, `${place.directory}/index`]) chmodSync(path, 0o555);
    const scans = log.scanned.length;
    await asOrdinaryUser(async () => {
      const indexes = indexesOf(place, log);
      await indexes.build();
      await expectRightAnswers(indexes, log);
    });
    expect(log.scanned.slice(scans)).toEqual([8]);
    for (const path of [place.directory, place.temp, `${place.directory}/index`]) chmodSync(path, 0o755);
    expect(await namesIn(place)).toHaveLength(2);
  });

  it("as an ordinary user without any index, all answers are right", async () => {
    const place = await makeRealPlace();
    mkdirSync(`${place.directory}/index`, { mode: 0o500 });
    chmodSync(place.directory, 0o555);
    chmodSync(place.temp, 0o555);
    const log = new ModelLog(segmentsOf(7));
    await asOrdinaryUser(async () => {
      const indexes = indexesOf(place, log);
      await expectRightAnswers(indexes, log);
      await indexes.build();
      await expectRightAnswers(indexes, log);
    });
  });

  it("indexes in memory are bounded: one that does not fit is made again, and the filters stay", async () => {
    const place = withDisk(await makeRealPlace(), () => ({
      mkdir: async (path) => Promise.reject(diskError("EROFS", "mkdir", path)),
    }));
    const log = new ModelLog(
      Array.from({ length: 7 }, (__, number) => [
        [{ type: "A", tags: Array.from({ length: 2000 }, (___, tag) => `${number} ${tag}`) }],
      ]),
    );
    // An index has about 80 kB: one fits.
    const indexes = indexesOf(place, log, { memoryBytesMax: 100_000 });
    const ask = (tag: string): Promise<number[]> =>
      listOf(indexes.candidates([{ types: [], tags: [tag] }], { after: 0, upTo: 999 }, false));
    expect(await ask("0 0")).toEqual([1]);
    expect(await ask("6 1999")).toEqual([7]);
    const scans = log.scanned.length;
    expect(scans).toBeLessThan(12);
    expect(indexes.excludes([{ types: [], tags: ["never seen"] }], 0)).toBe(true);
    expect(await ask("never seen")).toEqual([]);
    expect(log.scanned).toHaveLength(scans);
    for (let tag = 0; tag < 2000; tag += 190) expect(await ask(`0 ${tag}`)).toEqual([1]);
    expect(log.scanned.length).toBeGreaterThan(scans);
  });
});
