import { beforeEach, describe, expect, it } from "vitest";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { pagesOf } from "../../../src/events/index/file/index-query.ts";
import { hashItems } from "../../../src/events/index/keys/key-hash.ts";
import { SealedIndex } from "../../../src/events/index/file/sealed-index.ts";
import { imageOf } from "../../../src/events/index/build/segment-image.ts";
import { UnusableIndex } from "../../../src/events/index/file/index-blocks.ts";
import { diskError } from "../../../src/ports/disk-error.ts";
import { asNewerFormat } from "../../durable/newer-format.ts";
import { changedDisk, places, withDisk, type Place } from "../../sites/disks.ts";
import { expectRightAnswers, indexesOf, namesIn, segmentsOf } from "./index-bench.ts";
import { listOf, ModelLog } from "./model-log.ts";

const coveredBy = (log: ModelLog): { logId: string; segments: typeof log.segments } => ({
  logId: "log-1",
  segments: log.segments,
});

/** All answers of one index, or "unusable" if it refuses one. */
async function answersOf(bytes: Uint8Array, log: ModelLog): Promise<unknown> {
  const source = {
    read: async (offset: number, length: number) => bytes.slice(offset, offset + length),
    close: async () => undefined,
  };
  try {
    const index = await SealedIndex.open(source, coveredBy(log));
    const answers: unknown[] = [];
    for (const tags of [["all"], ["only 0"], ["never"], ["even", "all"]])
      answers.push(
        (await listOf(pagesOf(index, hashItems([{ types: [], tags }]), { after: 0, upTo: 9 }, false))).flat(),
      );
    for (const position of [1, 2, 3]) answers.push(await index.getLine(position));
    return answers;
  } catch (error) {
    if (error instanceof UnusableIndex) return "unusable";
    throw error;
  }
}

// Twenty thousand indexes are opened here, which is slow on a busy machine.
describe("a damaged index", { timeout: 240_000 }, () => {
  const log = new ModelLog(segmentsOf(1));

  it("is refused or right, whichever byte of it is altered", async () => {
    const image = await imageOf("log-1", log.segments[0] as (typeof log.segments)[0], { scan: log.scan });
    const right = await answersOf(image, log);
    const text = JSON.stringify(right);
    expect(text).toContain("[[1,2],[1,3],[],[2],");
    const used = Buffer.from(image).indexOf("\n") + 1;
    let refused = 0;
    for (let at = 0; at < image.length; at++) {
      const altered = image.slice();
      altered[at] = (altered[at] as number) ^ (1 << (at % 8));
      const answers = await answersOf(altered, log);
      if (answers === "unusable") refused++;
      else if (JSON.stringify(answers) !== text) throw new Error(`byte ${at}: ${JSON.stringify(answers)}`);
    }
    // All bytes but the padding after the header, which is not used.
    expect(refused).toBe(image.length - (4096 - used));
  });

  it("is refused wherever it ends too early", async () => {
    const image = await imageOf("log-1", log.segments[0] as (typeof log.segments)[0], { scan: log.scan });
    for (let length = 0; length < image.length; length++)
      if ((await answersOf(image.subarray(0, length), log)) !== "unusable") throw new Error(`length ${length}`);
  });

  it("is refused when two of its blocks have changed places", async () => {
    const image = await imageOf("log-1", log.segments[0] as (typeof log.segments)[0], { scan: log.scan });
    for (let a = 1; a < image.length / 4096; a++)
      for (let b = a + 1; b < image.length / 4096; b++) {
        const swapped = image.slice();
        swapped.set(image.subarray(a * 4096, (a + 1) * 4096), b * 4096);
        swapped.set(image.subarray(b * 4096, (b + 1) * 4096), a * 4096);
        expect(await answersOf(swapped, log)).toBe("unusable");
      }
  });

  it("is refused at its header when it is of another log or of other bytes", async () => {
    const segment = log.segments[0] as (typeof log.segments)[0];
    const image = await imageOf("log-1", segment, { scan: log.scan });
    const source = {
      read: async (offset: number, length: number) => image.slice(offset, offset + length),
      close: async () => undefined,
    };
    for (const coverage of [
      { logId: "log-2", segments: [segment] },
      ...[{ number: 2 }, { first: 2 }, { last: 4 }, { length: 1 }, { checksum: "ffffffff" }].map((change) => ({
        logId: "log-1",
        segments: [{ ...segment, ...change }],
      })),
    ])
      await expect(SealedIndex.open(source, coverage)).rejects.toBeInstanceOf(UnusableIndex);
    await SealedIndex.open(source, { logId: "log-1", segments: [segment] });
  });

  it("is refused when one of its blocks is of another log's index", async () => {
    const segment = log.segments[0] as (typeof log.segments)[0];
    const image = await imageOf("log-1", segment, { scan: log.scan });
    const other = await imageOf("log-2", segment, { scan: log.scan });
    for (let block = 1; block < image.length / 4096; block++) {
      const mixed = image.slice();
      mixed.set(other.subarray(block * 4096, (block + 1) * 4096), block * 4096);
      expect(await answersOf(mixed, log)).toBe("unusable");
    }
  });

  it("that fails in the middle of a long answer leaves no position out and gives none twice", async () => {
    const place = await (places[1] as (typeof places)[0])[1]();
    const long = new ModelLog(
      [0, 1, 2, 3, 4, 5].map(() => [
        Array.from({ length: 5000 }, (_, at) => ({ type: at % 2 === 0 ? "A" : "B", tags: at % 5 === 0 ? ["x"] : [] })),
      ]),
    );
    await indexesOf(place, long).build();
    const items = [
      { types: ["A"], tags: [] },
      { types: [], tags: ["x"] },
    ];
    const range = { after: 10, upTo: 29_000 };
    for (let failing = 1; failing < 14; failing++)
      for (const backwards of [false, true]) {
        let reads = 0;
        const spoilt = withDisk(place, (disk) => ({
          open: async (path, mode) => {
            const file = await disk.open(path, mode);
            const read = async (offset: number, length: number): Promise<Uint8Array> => {
              if (++reads % failing === 0) throw diskError("EIO", "read", path);
              return file.read(offset, length);
            };
            return mode === "read" ? changed(file, { read }) : file;
          },
        }));
        expect(await listOf(indexesOf(spoilt, long).candidates(items, range, backwards))).toEqual(
          long.find(items, range, backwards),
        );
      }
  });

  describe.each(places)("on %s", (_, make) => {
    let place: Place;
    let shared: ModelLog;
    beforeEach(async () => {
      place = await make();
      shared = new ModelLog(segmentsOf(7));
      await indexesOf(place, shared).build();
      // The first six are merged; their own files are gone.
      expect(await namesIn(place)).toEqual(["0000000001-0000000006.idx", "0000000007-0000000007.idx"]);
    });

    const pathOf = (name: string): string => `${place.directory}/index/${name}`;
    async function change(name: string, alter: (bytes: Uint8Array) => Uint8Array): Promise<void> {
      const { disk } = place.staging;
      const bytes = await disk.readFile(pathOf(name), 1_000_000);
      await disk.unlink(pathOf(name));
      await disk.createFile(pathOf(name), alter(bytes.slice()), { sync: true });
    }
    const flip =
      (at: number) =>
      (bytes: Uint8Array): Uint8Array => {
        bytes[at % bytes.length] = (bytes[at % bytes.length] as number) ^ 0x10;
        return bytes;
      };

    it.each([
      ["an altered byte in the header", flip(100)],
      ["an altered byte in the filter", flip(4096)],
      ["an altered byte in the lines", flip(2 * 4096)],
      ["an altered byte in the keys", flip(3 * 4096)],
      ["an altered byte in the postings", flip(4 * 4096)],
      ["its last byte missing", (bytes: Uint8Array) => bytes.subarray(0, -1)],
      ["half of it missing", (bytes: Uint8Array) => bytes.subarray(0, bytes.length / 2)],
      ["nothing in it", () => new Uint8Array(0)],
      ["zeros instead", (bytes: Uint8Array) => bytes.fill(0)],
      ["garbage instead", (bytes: Uint8Array) => bytes.fill(0x7b)],
      ["a newer format", newerHeader],
    ])("with %s changes no answer, and is replaced", async (_fault, alter) => {
      const names = await namesIn(place);
      for (const name of names) await change(name, alter);
      const scans = shared.scanned.length;
      const indexes = indexesOf(place, shared);
      await expectRightAnswers(indexes, shared);
      expect(shared.scanned.length).toBe(scans + 7);
      await indexes.build();
      await expectRightAnswers(indexes, shared);
      await expectRightAnswers(indexesOf(place, shared), shared);
      expect(shared.scanned.length).toBe(scans + 7);
      expect(await namesIn(place)).toEqual(names);
    });

    it("that is damaged while it is open changes no answer", async () => {
      const indexes = indexesOf(place, shared);
      await expectRightAnswers(indexes, shared);
      for (const name of await namesIn(place)) {
        const file = await place.staging.disk.open(pathOf(name), "write");
        for (let block = 1; block < 6; block++) await file.write(block * 4096 + 7, Uint8Array.of(255));
        await file.close();
      }
      await expectRightAnswers(indexes, shared);
      await expectRightAnswers(indexesOf(place, shared), shared);
    });

    it("of other segments under its name changes no answer", async () => {
      const [merged, single] = (await namesIn(place)) as [string, string];
      const { disk } = place.staging;
      await disk.rename(pathOf(merged), pathOf("x"));
      await disk.rename(pathOf(single), pathOf(merged));
      await disk.rename(pathOf("x"), pathOf(single));
      await expectRightAnswers(indexesOf(place, shared), shared);
    });

    it("of another log is not used, in either direction", async () => {
      const other = new ModelLog(segmentsOf(7).reverse());
      const indexes = indexesOf(place, other, { logId: "log-2" });
      await expectRightAnswers(indexes, other);
      await indexes.build();
      await expectRightAnswers(indexesOf(place, shared), shared);
    });

    it("of the same log id with other bytes is not used: a log may be restored from a backup", async () => {
      const restored = new ModelLog(segmentsOf(7).reverse(), { name: "restored" });
      await expectRightAnswers(indexesOf(place, restored), restored);
    });

    it("with a directory under its name changes no answer", async () => {
      for (const name of await namesIn(place)) {
        await place.staging.disk.unlink(pathOf(name));
        await place.staging.disk.mkdir(pathOf(name));
      }
      const indexes = indexesOf(place, shared);
      await expectRightAnswers(indexes, shared);
      await indexes.build();
      await expectRightAnswers(indexes, shared);
    });

    it("that is gone with its whole directory is made again", async () => {
      const indexes = indexesOf(place, shared);
      await expectRightAnswers(indexes, shared);
      const names = await namesIn(place);
      for (const name of names) await place.staging.disk.unlink(pathOf(name));
      await place.staging.disk.rmdir(`${place.directory}/index`);
      await expectRightAnswers(indexes, shared);
      const fresh = indexesOf(place, shared);
      await expectRightAnswers(fresh, shared);
      await fresh.build();
      expect(await namesIn(place)).toEqual(names);
    });

    it("with a file where its directory should be changes no answer", async () => {
      for (const name of await namesIn(place)) await place.staging.disk.unlink(pathOf(name));
      await place.staging.disk.rmdir(`${place.directory}/index`);
      await place.staging.disk.createFile(`${place.directory}/index`, Buffer.from("hello"), { sync: false });
      const indexes = indexesOf(place, shared);
      await expectRightAnswers(indexes, shared);
      await indexes.build();
    });

    it("that a failing disk spoils on each read changes no answer", async () => {
      const spoilt = withDisk(place, (disk) => ({
        open: async (path, mode) => {
          const file = await disk.open(path, mode);
          const read = async (offset: number, length: number): Promise<Uint8Array> => {
            const bytes = (await file.read(offset, length)).slice();
            if (offset >= 4096) bytes[50] = 0xff ^ (bytes[50] ?? 0);
            return bytes;
          };
          return changed(file, { read });
        },
      }));
      const indexes = indexesOf(spoilt, shared);
      await expectRightAnswers(indexes, shared);
      await indexes.build();
      await expectRightAnswers(indexes, shared);
    });

    it.each(["EIO", "ESTALE", "EACCES", "ENOENT"])("whose reads fail with %s changes no answer", async (errno) => {
      let calls = 0;
      const failing: Place = withDisk(place, (disk) => ({
        open: async (path, mode) => {
          const file = await disk.open(path, mode);
          const read = async (offset: number, length: number): Promise<Uint8Array> => {
            if (calls++ % 3 === 2) throw diskError(errno, "read", path);
            return file.read(offset, length);
          };
          return changed(file, { read });
        },
      }));
      const indexes = indexesOf(failing, shared);
      await expectRightAnswers(indexes, shared);
      await indexes.build();
      await expectRightAnswers(indexes, shared);
    });
  });
});

function newerHeader(bytes: Uint8Array): Uint8Array {
  const end = bytes.indexOf(0x0a) + 1;
  const header = asNewerFormat(bytes.subarray(0, end));
  const newer = new Uint8Array(bytes.length);
  newer.set(header);
  newer.set(bytes.subarray(4096), 4096);
  return newer;
}

type Opened = Awaited<ReturnType<Staging["disk"]["open"]>>;
function changed(file: Opened, changes: Partial<Opened>): Opened {
  return changedDisk(file as never, () => changes) as never;
}
