import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { createMemoryDisk } from "../../ports/memory/disk.ts";
import { Stamps, stampOf } from "./stamps.ts";

const path = "/a.bin";
const chunkBytes = 256 * 1024;

function stampsOf(disk: Disk, nowMs = 1_000_000): Stamps {
  return new Stamps(disk, { wallMs: () => nowMs });
}

/** A disk whose files have given times, and that counts the bytes read. */
function timed(times: { mtimeMs: number; ctimeMs: number }, kind: Disk["volume"]["kind"] = "local") {
  const disk = createMemoryDisk(() => 0);
  const counted = { reads: 0 };
  const open: Disk["open"] = async (...args) => {
    const file = await disk.open(...args);
    const told: DiskFile = {
      read: async (offset, length) => {
        counted.reads++;
        return await file.read(offset, length);
      },
      write: (offset, bytes) => file.write(offset, bytes),
      sync: () => file.sync(),
      stat: async () => ({ ...(await file.stat()), ...times }),
      close: () => file.close(),
    };
    return told;
  };
  return { disk: { ...disk, open, volume: { ...disk.volume, kind } }, counted };
}

async function writeOver(disk: Disk, text: string): Promise<void> {
  const file = await disk.open(path, "write");
  await file.write(0, Buffer.from(text));
  await file.close();
}

/** A disk whose files report this size, like a share that has not seen the newest bytes. */
function saying(disk: Disk, size: number): Disk {
  const open: Disk["open"] = async (...args) => {
    const file = await disk.open(...args);
    const told: DiskFile = {
      read: (offset, length) => file.read(offset, length),
      write: (offset, bytes) => file.write(offset, bytes),
      sync: () => file.sync(),
      stat: async () => ({ ...(await file.stat()), size }),
      close: () => file.close(),
    };
    return told;
  };
  return { ...disk, open };
}

describe("the stamp of a file", () => {
  it.each([0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 2 * chunkBytes, 2 * chunkBytes + 1])(
    "is that of all its %i bytes",
    async (size) => {
      const disk = createMemoryDisk(() => 0);
      const bytes = randomBytes(size);
      await disk.createFile(path, bytes, { sync: true });
      expect((await stampsOf(disk).get(path)).stamp).toBe(stampOf(bytes));
    },
  );

  it.each([
    ["fewer", 0],
    ["fewer", chunkBytes],
    ["one fewer", 3 * chunkBytes - 1],
    ["more", 5 * chunkBytes],
  ])("is that of all its bytes when the disk says that there are %s (%i)", async (_, told) => {
    const disk = createMemoryDisk(() => 0);
    const bytes = randomBytes(3 * chunkBytes);
    await disk.createFile(path, bytes, { sync: true });
    expect((await stampsOf(saying(disk, told)).get(path)).stamp).toBe(stampOf(bytes));
  });

  it("is not taken from memory when another program changes the content and puts the time back", async () => {
    const times = { mtimeMs: 100, ctimeMs: 100 };
    const { disk } = timed(times);
    await disk.createFile(path, Buffer.from("wolf"), { sync: true });
    const stamps = stampsOf(disk);
    await stamps.get(path);
    await writeOver(disk, "bear");
    times.ctimeMs = 900_000;
    expect((await stamps.get(path)).stamp).toBe(stampOf(Buffer.from("bear")));
  });

  it("stays the same when only the ctime changes, as by chmod or a link, and costs one more reading", async () => {
    const times = { mtimeMs: 100, ctimeMs: 100 };
    const { disk, counted } = timed(times);
    await disk.createFile(path, Buffer.from("wolf"), { sync: true });
    const stamps = stampsOf(disk);
    const { stamp } = await stamps.get(path);
    await stamps.get(path);
    expect(counted.reads).toBe(1);
    times.ctimeMs = 900_000;
    for (let look = 0; look < 2; look++) expect((await stamps.get(path)).stamp).toBe(stamp);
    expect(counted.reads).toBe(2);
  });

  it.each([
    ["its ctime is so recent that a second change could have the same", 999_000, "local"],
    ["it is on a network mount, whose ctime proves nothing", 100, "network"],
  ] as const)("is read anew each time while %s", async (_, ctimeMs, kind) => {
    const { disk } = timed({ mtimeMs: 100, ctimeMs }, kind);
    await disk.createFile(path, Buffer.from("wolf"), { sync: true });
    const stamps = stampsOf(disk);
    await stamps.get(path);
    await writeOver(disk, "bear");
    expect((await stamps.get(path)).stamp).toBe(stampOf(Buffer.from("bear")));
  });

  it("is not remembered when the reading began within a step of the ctime, however long it takes", async () => {
    let nowMs = 1_000_000;
    const { disk } = timed({ mtimeMs: 100, ctimeMs: nowMs });
    await disk.createFile(path, Buffer.from("wolf"), { sync: true });
    const slow: Disk["open"] = async (...args) => {
      const file = await disk.open(...args);
      const read: DiskFile["read"] = async (offset, length) => {
        nowMs += 60_000;
        return await file.read(offset, length);
      };
      return { ...file, read };
    };
    const stamps = new Stamps({ ...disk, open: slow }, { wallMs: () => nowMs });
    await stamps.get(path);
    await writeOver(disk, "bear");
    expect((await stamps.get(path)).stamp).toBe(stampOf(Buffer.from("bear")));
  });
});
