// When an offer of a hold has lapsed: by the stamps of files that are opened, because a share answers a stat from what it remembers.
import { expect, it } from "vitest";
import { isLapsed } from "../../src/locks/table/lapse.ts";
import { changedDisk } from "../sites/disks.ts";
import { nfs, World } from "../sites/world.ts";

it("an offer does not lapse by an old stamp that the client of a share remembers, nor stand by one", async () => {
  const world = new World({ volume: nfs });
  const staging = await world.staging("ada");
  const file = "/id.transfer";
  await staging.disk.createFile(file, new Uint8Array(), { sync: false });
  for (const rememberedMs of [0, world.nowMs + 1_000_000]) {
    const disk = changedDisk(staging.disk, (real) => ({
      stat: async (path) => ({ ...(await real.stat(path)), ...(path === file ? { mtimeMs: rememberedMs } : {}) }),
    }));
    expect(await isLapsed({ ...staging, disk }, file, 1000)).toBe(false);
  }
  await world.advance(1001);
  expect(await isLapsed(staging, file, 1000)).toBe(true);
  await staging.disk.unlink(file);
  expect(await isLapsed(staging, file, 1_000_000)).toBe(true);
});
