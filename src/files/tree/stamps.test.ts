import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { createMemoryDisk } from "../../ports/memory/disk.ts";
import { Stamps, stampOf } from "./stamps.ts";

const path = "/a.bin";
const chunkBytes = 256 * 1024;

function stampsOf(disk: Disk): Stamps {
  return new Stamps(disk, { nowMs: async () => 1_000_000 });
}

/** A disk whose files say that they have so many bytes, as a share does that has not heard of the newest ones. */
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
});
