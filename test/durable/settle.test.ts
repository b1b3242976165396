// When a holder that is dead can publish nothing any more: what `settle` answers, and what it removes.
import { describe, expect, it } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { changedDisk } from "../sites/disks.ts";
import { nfs, World } from "../sites/world.ts";

const leaseMs = 8000;

const join = (world: World, process: string, machine = "machine"): Promise<Ground> =>
  Ground.open(world.ports(process, machine), "/ground", { leaseMs });

const tempOf = async (ground: Ground): Promise<string> => (await ground.session()).temp;
const idOf = async (ground: Ground): Promise<string> => (await ground.session()).holder.id;

describe("a holder is settled", () => {
  it("when it was killed: declared dead, and its temp directory removed with what is in it", async () => {
    const world = new World();
    const [dead, other] = [await join(world, "dead"), await join(world, "other")];
    const [id, temp] = [await idOf(dead), await tempOf(dead)];
    await world.ports("dead").disk.createFile(`${temp}/staged`, Buffer.from("x"), { sync: false });
    world.kill("dead");
    expect(await other.settle(id)).toBe(true);
    expect(Object.keys(world.tree("/ground")).filter((path) => path.includes(id))).toEqual([
      `/ground/holders/${id}.dead`,
    ]);
    expect(await other.settle(id)).toBe(true);
  });

  it("by any number of processes at once", async () => {
    const world = new World();
    const dead = await join(world, "dead");
    const others = await Promise.all(["a", "b", "c"].map((name) => join(world, name)));
    const id = await idOf(dead);
    world.kill("dead");
    // A process that meets another one at the heartbeat file does not know yet.
    expect(await Promise.all(others.map((other) => other.settle(id)))).toContain(true);
    expect(await Promise.all(others.map((other) => other.settle(id)))).toEqual([true, true, true]);
  });

  it("when it has ended by itself", async () => {
    const world = new World();
    const [gone, other] = [await join(world, "gone"), await join(world, "other")];
    const id = await idOf(gone);
    await gone.close();
    expect(await other.settle(id)).toBe(true);
  });

  it("on a share when it was silent for a lease, and not before", async () => {
    const world = new World({ volume: nfs });
    const [dead, other] = [await join(world, "dead", "another machine"), await join(world, "other")];
    const id = await idOf(dead);
    world.kill("dead");
    for (let quarter = 0; quarter < 4; quarter++) {
      expect(await other.settle(id)).toBe(false);
      await world.advance(leaseMs / 4);
    }
    await world.advance(leaseMs / 4);
    expect(await other.settle(id)).toBe(true);
  });
});

describe("a holder is not settled", () => {
  it("while it is alive, neither by others nor by itself", async () => {
    const world = new World();
    const [living, other] = [await join(world, "living"), await join(world, "other")];
    const id = await idOf(living);
    for (const ground of [living, other]) expect(await ground.settle(id)).toBe(false);
    expect(world.tree("/ground")).toHaveProperty([`/ground/holders/${id}.json`]);
  });

  it("as long as something in its temp directory cannot be removed", async () => {
    const world = new World();
    const [dead, other] = [await join(world, "dead"), await join(world, "other")];
    const [id, temp] = [await idOf(dead), await tempOf(dead)];
    const { disk } = world.ports("other");
    await disk.mkdir(`${temp}/directory`);
    world.kill("dead");
    expect(await other.settle(id)).toBe(false);
    await disk.rmdir(`${temp}/directory`);
    expect(await other.settle(id)).toBe(true);
  });

  it("by a process whose client remembers that its record or its directory was not there", async () => {
    const world = new World({ volume: nfs });
    const living = await join(world, "living");
    const holder = await idOf(living);
    const real = world.ports("other", "another machine");
    const absent = (path: string): Promise<never> => Promise.reject(diskError("ENOENT", "read", path));
    const disk = changedDisk(real.disk, (below) => ({
      readFile: (path, bytesMax) => (path.endsWith(`${holder}.json`) ? absent(path) : below.readFile(path, bytesMax)),
      list: (path) => (path.endsWith(`/temp/${holder}`) ? absent(path) : below.list(path)),
    }));
    const other = await Ground.open({ ...real, disk }, "/ground", { leaseMs });
    expect(await other.settle(holder)).toBe(false);
    await world.ports("third").disk.rename(`/ground/holders/${holder}.json`, `/ground/holders/${holder}.dead`);
    expect(await other.settle(holder)).toBe(false);
    expect(Object.keys(world.tree("/ground/temp"))).toContain(`/ground/temp/${holder}/`);
  });
});
