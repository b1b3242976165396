// When an offer of a hold lapses: by stamps of opened files, because the client of a share answers
// a stat from its cache.
import { expect, it } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { LockTable } from "../../src/locks/table/lock-table.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { changedDisk } from "../sites/disks.ts";
import { nfs, World } from "../sites/world.ts";

it("an offer neither lapses nor stands by an old stamp that the client of a share remembers", async () => {
  const world = new World({ volume: nfs });
  const ports = world.ports("ada");
  const transfer = { secretHash: "5e", expiresMs: 1000 };
  const tableOn = async (disk: Disk): Promise<LockTable> =>
    await LockTable.open(await Ground.open({ ...ports, disk }, "/ground"));
  const table = await tableOn(ports.disk);
  await table.createOffer("id", transfer);
  for (const rememberedMs of [0, world.nowMs + 1_000_000]) {
    const disk = changedDisk(ports.disk, (real) => ({
      stat: async (path) => ({
        ...(await real.stat(path)),
        ...(path.endsWith(".transfer") ? { mtimeMs: rememberedMs } : {}),
      }),
    }));
    expect(await (await tableOn(disk)).isLapsed({ id: "id", transfer })).toBe(false);
  }
  await world.advance(1001);
  expect(await table.isLapsed({ id: "id", transfer })).toBe(true);
  await table.removeOffer("id", transfer);
  expect(await table.isLapsed({ id: "id", transfer: { ...transfer, expiresMs: 1_000_000 } })).toBe(true);
});
