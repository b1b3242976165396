// Bodies in and out: what is streamed to a file is what was given, whole or not there, and what is read back is verified.
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { beforeEach, describe, expect, it } from "vitest";
import type { Body } from "../../src/common.ts";
import { writeBody, type BodyDigest } from "../../src/part/body.ts";
import { FileContent } from "../../src/part/content.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk, DiskFile } from "../../src/ports/disk.ts";
import { changedDisk, places } from "../sites/disks.ts";

const megabyte = 1024 * 1024;

function digestOf(bytes: Uint8Array): BodyDigest {
  return { size: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** Bytes that differ from place to place. */
function bytesOf(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 8)) & 255);
}

async function* chunked(bytes: Uint8Array, chunk: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += chunk) yield bytes.subarray(start, start + chunk);
}

const text = "zwölf Boxkämpfer 🥊\n";
const kinds: readonly [kind: string, make: () => Body, bytes: Uint8Array][] = [
  ["a text", () => text, Buffer.from(text)],
  ["an empty text", () => "", new Uint8Array()],
  ["bytes", () => bytesOf(1000), bytesOf(1000)],
  ["no bytes", () => new Uint8Array(), new Uint8Array()],
  ["bytes that are written in pieces", () => bytesOf(2 * megabyte + 1), bytesOf(2 * megabyte + 1)],
  ["a generator", () => chunked(bytesOf(1000), 7), bytesOf(1000)],
  ["a generator that gives nothing", () => chunked(new Uint8Array(), 7), new Uint8Array()],
  ["chunks of just what is gathered", () => chunked(bytesOf(200_000), 65_536), bytesOf(200_000)],
  ["chunks of a little less", () => chunked(bytesOf(200_000), 65_535), bytesOf(200_000)],
  ["chunks of a little more", () => chunked(bytesOf(200_000), 65_537), bytesOf(200_000)],
  ["a Node stream", () => Readable.from(chunked(bytesOf(1000), 100)), bytesOf(1000)],
  [
    "a web stream",
    () =>
      new ReadableStream<Uint8Array>({
        start: (controller) => {
          controller.enqueue(bytesOf(10));
          controller.close();
        },
      }),
    bytesOf(10),
  ],
];

describe.each(places)("a body on %s", (_, make) => {
  let disk: Disk;
  let directory: string;
  let path: string;
  beforeEach(async () => {
    const place = await make();
    ({ directory } = place);
    ({ disk } = place.staging);
    path = `${directory}/body`;
  });
  const names = (): Promise<string[]> => disk.list(directory);
  /** A disk whose new files do some things otherwise. */
  const withFiles = (change: (file: DiskFile) => Partial<DiskFile>): Disk =>
    changedDisk(disk, (real) => ({
      open: async (at, mode, options) => {
        const file = await real.open(at, mode, options);
        const rest: DiskFile = {
          read: (offset, length) => file.read(offset, length),
          write: (offset, bytes) => file.write(offset, bytes),
          sync: () => file.sync(),
          stat: () => file.stat(),
          close: () => file.close(),
        };
        return { ...rest, ...change(file) };
      },
    }));

  it.each(kinds)("is written as it was given: %s", async (_kind, makeBody, bytes) => {
    expect(await writeBody(disk, path, makeBody())).toEqual(digestOf(bytes));
    expect(Buffer.from(await disk.readFile(path, 10 * megabyte)).equals(bytes)).toBe(true);
  });

  it("may come in a buffer that its source uses again", async () => {
    async function* reusing(): AsyncGenerator<Uint8Array> {
      const buffer = new Uint8Array(3);
      for (let round = 0; round < 4; round++) yield buffer.fill(round);
    }
    const bytes = Uint8Array.from([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    expect(await writeBody(disk, path, reusing())).toEqual(digestOf(bytes));
  });

  it("is asked for more only when what it gave is written", async () => {
    let given = 0;
    let written = 0;
    async function* counting(): AsyncGenerator<Uint8Array> {
      for (; given < 5; given++) {
        expect(written).toBe(given);
        yield new Uint8Array(100_000);
      }
    }
    const counted = withFiles((file) => ({
      write: async (offset, bytes) => {
        await file.write(offset, bytes);
        written++;
      },
    }));
    await writeBody(counted, path, counting());
    expect(written).toBe(5);
  });

  it("is synced before the file is closed and the call answered", async () => {
    const calls: string[] = [];
    const noting = withFiles((file) => ({
      sync: async () => {
        await file.sync();
        calls.push("sync");
      },
      close: async () => {
        calls.push("close");
        await file.close();
      },
    }));
    await writeBody(noting, path, "x");
    expect(calls).toEqual(["sync", "close"]);
  });

  it("leaves no file when its source fails, and rejects with that very error", async () => {
    const failure = new Error("the source failed");
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield bytesOf(100_000);
      throw failure;
    }
    await expect(writeBody(disk, path, failing())).rejects.toBe(failure);
    await expect(writeBody(disk, path, Readable.from(failing()))).rejects.toBe(failure);
    expect(await names()).toEqual([]);
  });

  it("leaves no file when it gives something that is not bytes, and its source is ended", async () => {
    let isEnded = false;
    async function* texts(): AsyncGenerator {
      try {
        yield "text";
      } finally {
        isEnded = true;
      }
    }
    await expect(writeBody(disk, path, texts() as AsyncGenerator<Uint8Array>)).rejects.toThrow(TypeError);
    expect(isEnded).toBe(true);
    expect(await names()).toEqual([]);
  });

  it.each(["write", "sync", "close"] as const)(
    "leaves no file when %s fails, and its source is ended",
    async (call) => {
      const full = withFiles((file) => ({
        [call]: async () => {
          if (call === "close") await file.close();
          throw diskError("ENOSPC", call, path);
        },
      }));
      const source = Readable.from(chunked(bytesOf(500_000), 100_000));
      await expect(writeBody(full, path, source)).rejects.toMatchObject({ code: "DISK_FULL" });
      expect(await names()).toEqual([]);
      expect(source.destroyed).toBe(true);
    },
  );

  it("leaves no file when it is aborted, also while its source gives nothing", async () => {
    const reason = new Error("enough");
    const controller = new AbortController();
    async function* hanging(): AsyncGenerator<Uint8Array> {
      yield bytesOf(10);
      controller.abort(reason);
      await new Promise<never>(() => undefined);
    }
    await expect(writeBody(disk, path, hanging(), { signal: controller.signal })).rejects.toBe(reason);
    await expect(writeBody(disk, path, "x", { signal: controller.signal })).rejects.toBe(reason);
    expect(await names()).toEqual([]);
  });

  it("does not take the place of a file that is there", async () => {
    if (disk.volume.kind !== "local") return;
    await disk.createFile(path, Buffer.from("before"), { sync: false });
    await expect(writeBody(disk, path, "x")).rejects.toMatchObject({ errno: "EEXIST" });
    expect(Buffer.from(await disk.readFile(path, 10)).toString()).toBe("before");
  });

  it("is written though the answer to the opening of its file was lost on a share", async () => {
    if (disk.volume.kind === "local") return;
    let lost = 1;
    const losing = changedDisk(disk, (real) => ({
      open: async (at, mode, options) => {
        const file = await real.open(at, mode, options);
        if (lost-- <= 0) return file;
        await file.close();
        throw diskError("EHOSTDOWN", "open", at);
      },
    }));
    expect(await writeBody(losing, path, "x")).toEqual(digestOf(Buffer.from("x")));
  });

  describe("is read back", () => {
    const contentOf = (digest: BodyDigest, more: { offset?: number; mismatch?: (what: string) => Error } = {}) =>
      new FileContent({ path, open: () => disk.open(path, "read", { isBulk: true }), digest, ...more });
    const overwrite = async (offset: number, bytes: Uint8Array): Promise<void> => {
      const file = await disk.open(path, "write");
      await file.write(offset, bytes);
      await file.close();
    };

    it.each(kinds)("as it was written: %s", async (_kind, makeBody, bytes) => {
      await using content = contentOf(await writeBody(disk, path, makeBody()));
      await content.verify();
      const [first, second] = await Promise.all([content.bytes(), content.bytes()]);
      for (const read of [first, second]) expect(Buffer.from(bytes).equals(read)).toBe(true);
      expect(await content.text()).toBe(Buffer.from(bytes).toString());
    });

    it("from where it begins, behind a record", async () => {
      await disk.createFile(path, Buffer.from(`record\n${text}`), { sync: false });
      await using content = contentOf(digestOf(Buffer.from(text)), { offset: 7 });
      expect(await content.text()).toBe(text);
    });

    it("not to its end when a byte of it was altered", async () => {
      const bytes = bytesOf(600_000);
      await using content = contentOf(await writeBody(disk, path, bytes));
      await overwrite(599_999, Uint8Array.of(1));
      let length = 0;
      const reading = async (): Promise<void> => {
        for await (const chunk of content.stream()) length += chunk.length;
      };
      await expect(reading()).rejects.toMatchObject({ code: "CORRUPT", path });
      expect(length).toBeLessThan(600_000);
      await expect(content.bytes()).rejects.toMatchObject({ code: "CORRUPT" });
      await expect(content.verify()).rejects.toMatchObject({ code: "CORRUPT" });
    });

    it.each([
      ["longer", 11, 10],
      ["shorter", 9, 10],
      ["empty", 0, 10],
      ["not empty", 1, 0],
    ])("not at all when the file is %s", async (_what, there, expected) => {
      await disk.createFile(path, bytesOf(there), { sync: false });
      await using content = contentOf(digestOf(bytesOf(expected)));
      const [first] = await Promise.allSettled([content.stream().next()]);
      expect(first).toMatchObject({ status: "rejected", reason: { code: "CORRUPT" } });
    });

    it("with the error of the part that it belongs to", async () => {
      await disk.createFile(path, bytesOf(3), { sync: false });
      await using content = contentOf(digestOf(Buffer.from("abc")), { mismatch: (what) => new Error(`ours: ${what}`) });
      await expect(content.bytes()).rejects.toThrow("ours: its SHA-256 differs");
    });

    it("to its end though the file was removed meanwhile, and no more when it was closed", async () => {
      const content = contentOf(await writeBody(disk, path, bytesOf(600_000)));
      const stream = content.stream();
      await stream.next();
      await disk.unlink(path);
      let length = 262_144;
      for await (const chunk of stream) length += chunk.length;
      expect(length).toBe(600_000);
      await content.close();
      await content.close();
      await expect(content.bytes()).rejects.toMatchObject({ code: "CLOSED" });
    });

    it("by the next read when it could not be opened before", async () => {
      await using content = contentOf(digestOf(Buffer.from("late")));
      await expect(content.text()).rejects.toMatchObject({ errno: "ENOENT" });
      await writeBody(disk, path, "late");
      expect(await content.text()).toBe("late");
    });
  });
});
