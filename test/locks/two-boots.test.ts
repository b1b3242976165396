// systemd-nspawn and LXC show a boot id of their own in each container, and a sandbox may hide it.
// To the host the processes of the container then looked like those of an earlier boot, and the
// other way round: each declared the other dead and took its locks.
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { unknownBootId } from "../../src/ports/host.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { LocksWorld } from "../sites/path-locks.ts";

describe("path locks of processes under one kernel that see different boot ids", () => {
  let world: LocksWorld;
  beforeEach(async () => void (world = await LocksWorld.make()));
  afterEach(() => world.end());

  const under =
    (bootId: string) =>
    (ports: Ports): Ports => ({ ...ports, host: { ...ports.host, bootId } });

  it.each([
    ["the container has its own", randomUUID()],
    ["it is hidden from the container", unknownBootId("1")],
  ])("have one holder when %s", async (_, bootId) => {
    const host = await world.open();
    const held = await host.tryAcquire("till.txt");
    const container = await world.open({ tamper: under(bootId) });
    expect(await container.tryAcquire("till.txt")).toBe(undefined);
    const other = await container.tryAcquire("other.txt");
    expect(await host.tryAcquire("other.txt")).toBe(undefined);
    await held?.assertHeld();
    await other?.assertHeld();
    await held?.release();
    const next = await container.tryAcquire("till.txt");
    expect(next?.fence).toBeGreaterThan(held?.fence ?? Infinity);
    expect(await host.tryAcquire("till.txt")).toBe(undefined);
  });
});
