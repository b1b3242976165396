import { describe, expect, it } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { putIfAbsent } from "../../src/durable/publish/publish.ts";
import { LivenessJudge } from "../../src/durable/liveness/liveness-judge.ts";
import { makeId } from "../../src/format/id.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { asNewerFormat } from "./newer-format.ts";
import { nfs, World } from "../sites/world.ts";

const leaseMs = 8000;
const hourMs = 3_600_000;

const join = (world: World, process: string, machine = "machine"): Promise<Ground> =>
  Ground.open(world.ports(process, machine), "/ground", { leaseMs });

/** Beats seldom, so that many hours pass quickly. */
const joinForLong = (world: World, process: string, machine = "machine"): Promise<Ground> =>
  Ground.open(world.ports(process, machine), "/ground", { leaseMs: hourMs });

async function idOf(ground: Ground): Promise<string> {
  return (await ground.session()).holder.id;
}

async function stageFiles(world: World, process: string, ground: Ground, count: number): Promise<void> {
  const { temp } = await ground.session();
  for (let index = 0; index < count; index++)
    await world.ports(process).disk.createFile(`${temp}/file-${index}`, Buffer.from("x"), { sync: false });
}

/** A disk that makes its call number `at` only after `sleep`. */
function sleepingAt(disk: Disk, at: number, sleep: () => Promise<void>): Disk {
  let calls = 0;
  return new Proxy(disk, {
    get: (target, name: keyof Disk) => {
      const member = target[name];
      if (typeof member !== "function") return member;
      return async (...args: unknown[]) => {
        if (++calls === at) await sleep();
        return await (member as (...args: unknown[]) => Promise<unknown>).apply(target, args);
      };
    },
  });
}

const foundIn = (world: World, directory: string): string[] =>
  Object.keys(world.tree(directory)).map((path) => path.slice(directory.length + 1));

describe("a sweep", () => {
  it("removes the temp files and the heartbeat of a dead holder, and leaves the record of its death", async () => {
    const world = new World();
    const [dead, living] = [await join(world, "dead"), await join(world, "living")];
    const deadId = await idOf(dead);
    await stageFiles(world, "dead", dead, 3);
    world.kill("dead");
    const sweeper = await join(world, "sweeper");
    expect((await sweeper.sweep()).map(({ id }) => id)).toEqual([deadId]);
    expect(foundIn(world, "/ground/temp").sort()).toEqual([`${await idOf(living)}/`, `${await idOf(sweeper)}/`].sort());
    const ofDead = foundIn(world, "/ground/holders").filter((name) => name.startsWith(deadId));
    expect(ofDead).toEqual([`${deadId}.dead`]);
    expect(await sweeper.sweep()).toEqual([]);
  });

  it("removes the record of a death that another sweep has declared, and no record of a living holder", async () => {
    const world = new World();
    const [dead, sweeper, other] = [await join(world, "dead"), await join(world, "one"), await join(world, "other")];
    const deadId = await idOf(dead);
    world.kill("dead");
    await sweeper.sweep();
    expect(foundIn(world, "/ground/holders")).toContain(`${deadId}.dead`);
    await other.sweep();
    const ofLiving = [await idOf(sweeper), await idOf(other)].flatMap((id) => [`${id}.beat`, `${id}.json`]);
    expect(foundIn(world, "/ground/holders").sort()).toEqual(ofLiving.sort());
  });

  it("touches nothing of the living, however long they are silent by their stamps", async () => {
    const world = new World();
    const living = await join(world, "living");
    await stageFiles(world, "living", living, 2);
    const sweeper = await join(world, "sweeper");
    const id = await idOf(living);
    for (let round = 0; round < 10; round++) {
      await world.advance(leaseMs);
      expect(await sweeper.sweep()).toEqual([]);
    }
    expect(await idOf(living)).toBe(id);
    // It looks whether its directory stands.
    await world.settle();
    expect(foundIn(world, "/ground/temp").filter((path) => path.startsWith(id))).toHaveLength(2);
  });

  it("touches nothing of one with a long lease, whose last beat is hours ago", async () => {
    const world = new World();
    const living = await Ground.open(world.ports("living"), "/ground", { leaseMs: 24 * hourMs });
    await stageFiles(world, "living", living, 2);
    await world.advance(2 * hourMs);
    const before = world.tree("/ground");
    const sweeper = await join(world, "sweeper");
    expect(await sweeper.sweep()).toEqual([]);
    expect(world.tree("/ground")).toMatchObject(before);
  });

  it("by a process that has only just come removes what a machine left that has been silent for two leases", async () => {
    const world = new World({ volume: nfs });
    const gone = await join(world, "gone", "another machine");
    const goneId = await idOf(gone);
    await world.advance(leaseMs);
    world.kill("gone");
    await world.advance(1.5 * leaseMs);
    expect(await (await join(world, "early")).sweep()).toEqual([]);
    await world.advance(leaseMs);
    // Each process comes only for a moment: the first notes what it saw, and the last confirms it.
    for (const name of ["first", "second", "third"]) {
      await using comer = await join(world, name);
      expect(await comer.sweep()).toEqual([]);
      await world.advance(leaseMs / 8);
    }
    const last = await join(world, "last");
    expect((await last.sweep()).map(({ id }) => id)).toEqual([goneId]);
    expect(foundIn(world, "/ground/holders").filter((name) => name.startsWith(goneId))).toEqual([`${goneId}.dead`]);
  });

  // When the clock of the server is set ahead, all living holders look old until their next beat: a
  // process that opened in that moment took their locks.
  it("by a process that has only just come touches nothing of living holders when the clock of the server was set ahead", async () => {
    const world = new World({ volume: nfs });
    const living = [await join(world, "one", "machine 1"), await join(world, "two", "machine 2")];
    const ids = await Promise.all(living.map(idOf));
    await world.advance(leaseMs);
    for (const id of ids) world.server.find(`/ground/holders/${id}.beat`)!.mtimeMs -= hourMs;
    for (const name of ["first", "second", "third", "fourth"]) {
      await using comer = await join(world, name, "machine 3");
      expect(await comer.sweep()).toEqual([]);
      await world.advance(leaseMs / 8);
    }
    expect(await Promise.all(living.map(idOf))).toEqual(ids);
  });

  it("takes back a suspicion with its holder", async () => {
    const world = new World({ volume: nfs });
    const living = await join(world, "one", "machine 1");
    const id = await idOf(living);
    await world.advance(leaseMs);
    world.server.find(`/ground/holders/${id}.beat`)!.mtimeMs -= hourMs;
    const sweeper = await join(world, "sweeper", "machine 3");
    await sweeper.sweep();
    expect(foundIn(world, "/ground/holders")).toContain(`${id}.suspect`);
    await living.close();
    await sweeper.sweep();
    expect(foundIn(world, "/ground/holders").filter((name) => name.startsWith(id))).toEqual([]);
  });

  it("touches nothing of a process that is just joining", async () => {
    const world = new World();
    const sweeper = await joinForLong(world, "sweeper");
    const { disk } = world.ports("joining");
    const [early, later] = [makeId(1, new Uint8Array(16).fill(1)), makeId(1, new Uint8Array(16).fill(2))];
    await disk.mkdir(`/ground/temp/${early}`);
    await disk.mkdir(`/ground/temp/${later}`);
    await disk.createFile(`/ground/holders/${later}.beat`, Buffer.from("beat"), { sync: false });
    await world.advance(hourMs / 2);
    await sweeper.sweep();
    expect(foundIn(world, "/ground/temp")).toEqual(expect.arrayContaining([`${early}/`, `${later}/`]));
    expect(foundIn(world, "/ground/holders")).toContain(`${later}.beat`);
  });

  it("touches nothing of a process at any step of joining, also where a new file has no stamp yet", async () => {
    for (let step = 1; ; step++) {
      const world = new World({ volume: nfs, quirks: { lateStamps: true } });
      const sweeper = await joinForLong(world, "sweeper");
      let isDone = false;
      // Not dead: its next call takes long.
      await world.killAtCall("joining", step, async () => {
        await joinForLong(world, "joining", "another machine");
        isDone = true;
      });
      if (isDone) return expect(step).toBeGreaterThan(8);
      const before = world.tree("/ground");
      await sweeper.sweep();
      expect(world.tree("/ground"), `at step ${step}`).toEqual(before);
    }
  });

  it("lets a process that sleeps at any step of joining join all the same, with another session", async () => {
    for (let step = 1; ; step++) {
      const world = new World();
      const sweeper = await Ground.open(world.ports("sweeper"), "/ground", { leaseMs: 100 * leaseMs });
      let isAsleep = false;
      const disk = sleepingAt(world.ports("late", "another machine").disk, step, async () => {
        isAsleep = true;
        for (let look = 0; look < 16; look++) {
          await world.advance(leaseMs / 4);
          await sweeper.sweep();
        }
      });
      const late = await Ground.open({ ...world.ports("late"), disk }, "/ground", { leaseMs });
      if (!isAsleep) return expect(step).toBeGreaterThan(8);
      expect(await putIfAbsent(late.staging, "/file", Buffer.from("x")), `asleep at step ${step}`).toBe(true);
    }
  });

  it("removes what a process left that died at any step of joining, after an hour", async () => {
    const twin = new World();
    await joinForLong(twin, "sweeper");
    twin.calls.length = 0;
    await joinForLong(twin, "ada");
    const steps = twin.calls.length;
    const leftOf: string[] = [];
    for (let step = 1; step <= steps; step++) {
      const world = new World();
      const sweeper = await joinForLong(world, "sweeper");
      await world.killAtCall("ada", step, () => joinForLong(world, "ada"));
      await world.advance(2 * hourMs);
      await sweeper.sweep();
      await sweeper.sweep();
      const own = await idOf(sweeper);
      const left = [...foundIn(world, "/ground/temp"), ...foundIn(world, "/ground/holders")].filter(
        (path) => !path.startsWith(own) && !path.endsWith(".dead"),
      );
      leftOf.push(...left);
    }
    expect(leftOf).toEqual([]);
    expect(steps).toBeGreaterThan(8);
  });

  it("removes an empty heartbeat that an observation of a leaving holder has made, after an hour", async () => {
    const world = new World();
    const sweeper = await joinForLong(world, "sweeper");
    const ada = await joinForLong(world, "ada");
    const { holder } = await ada.session();
    const ports = world.ports("judge");
    const osLock = {
      // Between the look at the file and the question whether it is locked.
      open: async (path: string) => {
        await ada.close();
        return await ports.osLock.open(path);
      },
    };
    const judge = new LivenessJudge({ ...ports, osLock }, sweeper.layout);
    expect(await judge.observe(holder)).toBe("alive");
    const beats = (): string[] => foundIn(world, "/ground/holders").filter((name) => name.endsWith(".beat"));
    expect(beats()).toHaveLength(2);
    await sweeper.sweep();
    expect(beats()).toHaveLength(2);
    await world.advance(2 * hourMs);
    await sweeper.sweep();
    expect(beats()).toEqual([`${await idOf(sweeper)}.beat`]);
  });

  it("removes what a process left that died at any step of leaving", async () => {
    const twin = new World();
    const leaving = await joinForLong(twin, "ada");
    twin.calls.length = 0;
    await leaving.close();
    const steps = twin.calls.length;
    for (let step = 1; step <= steps; step++) {
      const world = new World();
      const sweeper = await joinForLong(world, "sweeper");
      const ada = await joinForLong(world, "ada");
      await stageFiles(world, "ada", ada, 1);
      await world.killAtCall("ada", step, () => ada.close());
      await sweeper.sweep();
      await world.advance(2 * hourMs);
      await sweeper.sweep();
      const own = await idOf(sweeper);
      expect(
        [...foundIn(world, "/ground/temp"), ...foundIn(world, "/ground/holders")].filter(
          (path) => !path.startsWith(own) && !path.endsWith(".dead"),
        ),
      ).toEqual([]);
    }
  });

  it("may be done by two at once", async () => {
    const world = new World();
    for (const name of ["dead-1", "dead-2", "dead-3"]) {
      await stageFiles(world, name, await join(world, name), 5);
      world.kill(name);
    }
    const sweepers = [await join(world, "one"), await join(world, "two")];
    const found = await Promise.all(sweepers.map((sweeper) => sweeper.sweep()));
    expect(new Set(found.flat().map(({ id }) => id)).size).toBe(3);
    expect(foundIn(world, "/ground/temp").sort()).toEqual(
      (await Promise.all(sweepers.map(idOf))).map((id) => `${id}/`).sort(),
    );
    expect(foundIn(world, "/ground/holders").filter((name) => name.endsWith(".beat"))).toHaveLength(2);
    await Promise.all(sweepers.map((sweeper) => sweeper.sweep()));
    expect(foundIn(world, "/ground/holders").filter((name) => name.endsWith(".dead"))).toEqual([]);
  });

  it("judges a machine that is gone by its lease", async () => {
    const world = new World({ volume: nfs });
    const goneId = await idOf(await join(world, "gone", "machine 1"));
    const sweeper = await join(world, "sweeper", "machine 2");
    world.kill("gone");
    expect(await sweeper.sweep()).toEqual([]);
    let dead: string[] = [];
    for (let look = 0; look < 4; look++) {
      await world.advance(leaseMs / 4);
      dead = (await sweeper.sweep()).map(({ id }) => id);
    }
    expect(dead).toEqual([goneId]);
  });

  it("never evicts a holder that is still in its right: its own deadline comes first", async () => {
    const world = new World({ volume: nfs });
    // Its heart makes three beats and stops.
    world.ports("ada", "machine 1", 3);
    const [ada, sweeper] = [await join(world, "ada"), await join(world, "sweeper", "machine 2")];
    const session = await ada.session();
    for (let look = 0; look < 40; look++) {
      await world.advance(leaseMs / 10);
      if ((await sweeper.sweep()).length === 0) continue;
      expect(session.isOver).toBe(true);
      return;
    }
    throw new Error("it was never judged");
  });

  it("ignores what others put into its directories", async () => {
    const world = new World();
    const sweeper = await joinForLong(world, "sweeper");
    const { disk } = world.ports("sweeper");
    const foreign = [
      "holders/notes.json",
      "holders/Thumbs.db",
      "holders/notes.beat",
      "holders/notes.dead",
      "temp/notes",
    ];
    for (const name of foreign) await disk.createFile(`/ground/${name}`, Buffer.from("x"), { sync: false });
    await disk.mkdir("/ground/temp/folder");
    await disk.mkdir("/ground/holders/folder.json");
    await world.advance(2 * hourMs);
    expect(await sweeper.sweep()).toEqual([]);
    expect(await sweeper.judgeHolders()).toHaveLength(1);
    expect(foundIn(world, "/ground")).toEqual(
      expect.arrayContaining([...foreign, "temp/folder/", "holders/folder.json/"]),
    );
  });

  it("goes on around a foreign directory in the temp files of a dead holder", async () => {
    const world = new World();
    const [first, second] = [await join(world, "dead-1"), await join(world, "dead-2")];
    await stageFiles(world, "dead-1", first, 1);
    await stageFiles(world, "dead-2", second, 1);
    for (const ground of [first, second]) {
      const { temp } = await ground.session();
      await world.ports("other").disk.mkdir(`${temp}/.snapshot`);
      await world.ports("other").disk.createFile(`${temp}/.snapshot/x`, Buffer.from("x"), { sync: false });
    }
    world.kill("dead-1");
    world.kill("dead-2");
    const sweeper = await join(world, "sweeper");
    expect(await sweeper.sweep()).toHaveLength(2);
    expect(foundIn(world, "/ground/holders").filter((name) => name.endsWith(".beat"))).toHaveLength(1);
    expect(await sweeper.sweep()).toEqual([]);
  });

  it("is refused by name when the record of a holder is of a newer format, and removes nothing", async () => {
    const world = new World();
    const sweeper = await join(world, "sweeper");
    const { disk } = world.ports("sweeper");
    const path = `/ground/holders/${makeId(1, new Uint8Array(16))}.json`;
    const record = await disk.readFile(sweeper.layout.record(await idOf(sweeper)), 10_000);
    await disk.createFile(path, asNewerFormat(record), { sync: false });
    const before = world.tree("/ground");
    for (const action of [() => sweeper.judgeHolders(), () => sweeper.holders(), () => sweeper.sweep()])
      await expect(action()).rejects.toMatchObject({ code: "NEWER_FORMAT", path });
    expect(world.tree("/ground")).toEqual(before);
  });
});

describe("a holder whose record is damaged", () => {
  const spoil = async (world: World, id: string, content: string): Promise<void> => {
    const { disk } = world.ports("vandal");
    await disk.unlink(`/ground/holders/${id}.json`);
    await disk.createFile(`/ground/holders/${id}.json`, Buffer.from(content), { sync: false });
  };

  it("is dead when its heartbeat was silent for the lease that it states, and what it left is removed", async () => {
    const world = new World();
    const [dead, other] = [await join(world, "dead"), await join(world, "other")];
    const id = await idOf(dead);
    await stageFiles(world, "dead", dead, 2);
    world.kill("dead");
    await spoil(world, id, '{"kind":"holder"');
    for (let quarter = 0; quarter < 4; quarter++) {
      expect(await other.settle(id)).toBe(false);
      await world.advance(leaseMs / 4);
    }
    await world.advance(leaseMs / 4);
    expect(await other.settle(id)).toBe(true);
    const left = Object.keys(world.tree("/ground")).filter((path) => path.includes(id));
    expect(left).toEqual([`/ground/holders/${id}.dead`]);
    await other.sweep();
    expect(Object.keys(world.tree("/ground")).filter((path) => path.includes(id))).toEqual([]);
  });

  it("is never taken for dead while it beats, however long others watch", async () => {
    const world = new World();
    const [living, other] = [await join(world, "living"), await join(world, "other")];
    const id = await idOf(living);
    await spoil(world, id, "");
    for (let quarter = 0; quarter < 20; quarter++) {
      await world.advance(leaseMs / 4);
      expect(await other.settle(id)).toBe(false);
      expect(await other.sweep()).toEqual([]);
    }
    expect((await living.session()).holder.id).toBe(id);
  });

  it("is watched for an hour when its heartbeat does not state a lease either", async () => {
    const world = new World();
    const [gone, other] = [await join(world, "gone"), await join(world, "other")];
    const id = await idOf(gone);
    world.kill("gone");
    await spoil(world, id, "");
    await world.ports("vandal").disk.unlink(`/ground/holders/${id}.beat`);
    for (let quarter = 0; quarter < 4; quarter++) {
      expect(await other.settle(id)).toBe(false);
      await world.advance(hourMs / 4);
    }
    expect(await other.settle(id)).toBe(true);
  });
});
