import { expect, test } from "vitest";
import { findStoreAbove } from "../../src/durable/store/store-record.ts";
import { findRoot } from "../../src/locks/naming/lock-root.ts";
import { createMemoryDisk } from "../../src/ports/memory/disk.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { changedDisk } from "../sites/disks.ts";

// A search that does not end at the root of a drive of Windows never ends.
test.each(["C:/", "C:/shop", "C:/shop/files", "//server/share/shop", "/shop"])(
  "the search for a store above %s ends at the root",
  async (path) => {
    const disk = changedDisk(createMemoryDisk(nodeClock.wallMs), () => ({
      canOpen: async () => false,
      realPath: async (given) => given,
      findStat: async () => undefined,
    }));
    expect(await findStoreAbove(disk, path)).toBeUndefined();
    expect(await findRoot(disk, path)).toBeUndefined();
  },
);
