// What every part of a store works with, used here without any capability: leases, loops, progress,
// generations.
import { expect, onTestFinished, test } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { moveAside } from "../../src/part/aside.ts";
import { Generations } from "../../src/part/generations.ts";
import { directoryLeases, type Leases } from "../../src/part/leases.ts";
import { Loop, Loops, ProgressWaiters } from "../../src/part/loop.ts";
import { Checkpoints, type MarkedSequence } from "../../src/part/progress/checkpoints.ts";
import { waitUntilProcessed } from "../../src/part/progress/wait-until-processed.ts";
import { underLease, type WorkOutcome } from "../../src/part/under-lease.ts";
import { World } from "../sites/world.ts";

const never = new AbortController().signal;

interface Process {
  readonly ground: Ground;
  readonly leases: Leases;
  readonly loops: Loops;
}

async function start(world: World, name: string, part = "/store/box"): Promise<Process> {
  const ground = await Ground.open(world.ports(name), "/store/.holdfast", {});
  const leases = directoryLeases(part, async () => ground);
  const loops = new Loops(ground.ports.clock, part);
  onTestFinished(async () => {
    await loops.close();
    await leases.close();
    await ground.close();
  });
  return { ground, leases, loops };
}

async function makeWorld(): Promise<World> {
  const world = new World();
  const { disk } = world.ports("setup");
  for (const path of ["/store", "/store/box", "/store/other"]) await disk.mkdir(path);
  return world;
}

/** A sequence of 10 positions; each restore gives it other marks. */
function sequenceOf(history: string): MarkedSequence {
  return {
    findMark: async (position) => (position > 10 ? undefined : position === 0 ? "00000000" : `${history}${position}`),
    rewound: (position) => new Error(`rewound at ${position}`),
    mayLag: false,
  };
}

async function openCheckpoints({ ground, loops }: Process, history = "a"): Promise<Checkpoints> {
  return await Checkpoints.open(ground, "/store/box/checkpoint", {
    ground: ground.id,
    sequence: sequenceOf(history),
    onSaved: () => loops.progressed(),
  });
}

test("a lease has one holder, and its fence grows with each", async () => {
  const world = await makeWorld();
  const [one, other] = [await start(world, "one"), await start(world, "other")];
  const first = await one.leases.acquire("lane", never);
  const next = other.leases.acquire("lane", never);
  await first.assertHeld();
  await first.release();
  expect((await next).fence).toBeGreaterThan(first.fence);
});

test("leases of two parts on one ground, and a lock on the whole tree, do not stop each other", async () => {
  const world = await makeWorld();
  const [box, other] = [await start(world, "box"), await start(world, "other", "/store/other")];
  const locks = await TablePathLocks.open(box.ground, { root: "/store", ownsGround: false });
  onTestFinished(() => locks.close());
  await locks.acquire("", { mode: "tree" });
  await box.leases.acquire("lane", never);
  await other.leases.acquire("lane", never);
  expect((await locks.list()).map(({ path }) => path).sort()).toEqual(["", "/box/lane", "/other/lane"]);
});

test("work whose lease was lost is done again under the next lease", async () => {
  const { leases } = await start(await makeWorld(), "one");
  const outcomes: WorkOutcome[] = ["lost", "finished"];
  const fences: number[] = [];
  await underLease(leases, "lane", { stopping: never, lettingGo: never }, async ({ fence }) => {
    fences.push(fence);
    return outcomes.shift() ?? "finished";
  });
  expect(fences).toHaveLength(2);
  expect(fences[1]).toBeGreaterThan(fences[0] ?? 0);
});

test("a worker that was superseded cannot save, and a wait ends with the checkpoint of its successor", async () => {
  const world = await makeWorld();
  const [one, other] = [await start(world, "one"), await start(world, "other")];
  const [late, next] = [await openCheckpoints(one), await openCheckpoints(other)];
  await late.begin(0);
  const [lateWork, nextWork] = [await late.take(1), await next.take(2)];
  expect(await lateWork?.save(5)).toBe(false);
  const observed = {
    loops: other.loops,
    sequence: sequenceOf("a"),
    findCheckpoint: async () => (await next.read()).state,
    findFailure: () => undefined,
  };
  const waiting = waitUntilProcessed(7, observed);
  expect(await nextWork?.save(7)).toBe(true);
  await waiting;
});

test("a checkpoint whose mark is another one since a restore is refused", async () => {
  const process = await start(await makeWorld(), "one");
  const before = await openCheckpoints(process, "a");
  await before.begin(0);
  await (await before.take(1))?.save(3);
  const after = await openCheckpoints(process, "b");
  await expect(after.take(2)).rejects.toThrow("rewound at 3");
});

test("closing the loops of a part ends its waits with CLOSED, and no loop begins after that", async () => {
  const process = await start(await makeWorld(), "one");
  const { loops } = process;
  const checkpoints = await openCheckpoints(process);
  const waiters = new ProgressWaiters();
  const waiting = waiters.listen(() =>
    waitUntilProcessed(1, {
      loops,
      sequence: sequenceOf("a"),
      findCheckpoint: async () => (await checkpoints.read()).state,
      findFailure: () => undefined,
    }),
  );
  const [end] = await Promise.allSettled([waiting, loops.close()]);
  expect(end).toMatchObject({ status: "rejected", reason: { code: "CLOSED" } });
  await expect(new Loop(loops, async () => undefined).done).rejects.toMatchObject({ code: "CLOSED" });
});

test("generations below the current one are removed, and numbers are never given twice", async () => {
  const { ground } = await start(await makeWorld(), "one");
  const { disk } = ground.ports;
  await disk.mkdir("/store/box/index");
  const generations = await Generations.open(ground.staging, "/store/box/index", ground.ports.host.bootId);
  await disk.mkdir(generations.directoryOf(1));
  await generations.nameFirst(1);
  await generations.nameBuilding(1, 1);
  await generations.abandon(2);
  const { building } = await generations.nameBuilding(1, 1);
  expect(building).toEqual({ number: 3, version: 1 });
  await disk.mkdir(generations.directoryOf(3));
  expect(await generations.switchTo(3)).toEqual({ current: { number: 3, version: 1 }, last: 3 });
  await generations.removeOld();
  expect((await disk.list("/store/box/index")).sort()).toEqual(["0000000003", "catalog"]);
});

test("a file that is moved aside keeps its content under a new name", async () => {
  const { ground } = await start(await makeWorld(), "one");
  const { disk } = ground.ports;
  await disk.createFile("/store/box/odd", Buffer.from("odd"), { sync: false });
  let ids = 0;
  const place = { disk, directory: "/store/box", newId: () => `${++ids}` };
  expect(await moveAside(place, "/store/box/odd")).toBe(true);
  expect(await moveAside(place, "/store/box/odd")).toBe(false);
  expect(Buffer.from(await disk.readFile("/store/box/aside/odd.1", 10)).toString()).toBe("odd");
});
