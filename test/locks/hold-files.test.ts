// When an offer of a hold lapses: by stamps of opened files, because the client of a share answers
// a stat from its cache.
import { expect, it } from "vitest";
import type { Staging } from "../../src/durable/publish/staging.ts";
import { HoldFiles } from "../../src/locks/table/hold-files.ts";
import { GroundLayout } from "../../src/durable/liveness/holder-record.ts";
import { changedDisk } from "../sites/disks.ts";
import { nfs, World } from "../sites/world.ts";

it("an offer neither lapses nor stands by an old stamp that the client of a share remembers", async () => {
  const world = new World({ volume: nfs });
  const staging = await world.staging("ada");
  await staging.disk.mkdir("/holds");
  const transfer = { secretHash: "5e", expiresMs: 1000 };
  const holdsOf = (own: Staging): HoldFiles => new HoldFiles({ layout: new GroundLayout(""), staging: own });
  await holdsOf(staging).createOffer("id", transfer);
  for (const rememberedMs of [0, world.nowMs + 1_000_000]) {
    const disk = changedDisk(staging.disk, (real) => ({
      stat: async (path) => ({
        ...(await real.stat(path)),
        ...(path.endsWith(".transfer") ? { mtimeMs: rememberedMs } : {}),
      }),
    }));
    expect(await holdsOf({ ...staging, disk }).isLapsed({ id: "id", transfer })).toBe(false);
  }
  await world.advance(1001);
  expect(await holdsOf(staging).isLapsed({ id: "id", transfer })).toBe(true);
  await holdsOf(staging).removeOffer("id", transfer);
  expect(await holdsOf(staging).isLapsed({ id: "id", transfer: { ...transfer, expiresMs: 1_000_000 } })).toBe(true);
});
