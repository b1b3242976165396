import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Ground, openGround } from "../../src/durable/index.ts";
import type { HolderSession } from "../../src/durable/liveness/holder-session.ts";
import { putIfAbsent } from "../../src/durable/publish/publish.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { decodeBeat } from "../../src/format/beat.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { makeScratch } from "../sites/scratch.ts";
import { World } from "../sites/world.ts";

const leaseMs = 10_000;
const patience = { timeout: 30_000, interval: 5 };
const lost = { code: "LOCK_LOST", action: "reopen", path: "/ground" };

interface Story {
  readonly world: World;
  readonly ground: Ground;
  readonly session: HolderSession;
}

/** A process whose heart makes so many beats. */
async function begin(beatsMax: number): Promise<Story> {
  const world = new World();
  const ground = await Ground.open(world.ports("ada", "machine", beatsMax), "/ground", { leaseMs });
  return { world, ground, session: await ground.session() };
}

/** Everything that escapes from a timer or a forgotten promise while the test runs. */
function catchStrays(): unknown[] {
  const strays: unknown[] = [];
  const catchOne = (error: unknown): void => void strays.push(error);
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, catchOne);
    onTestFinished(() => void process.off(event, catchOne));
  }
  return strays;
}

describe("a session", () => {
  it("without a heartbeat is over after 0.8 of its lease, and not before", async () => {
    const { world, session } = await begin(0);
    await world.advance(0.8 * leaseMs - 1);
    expect(session.isOver).toBe(false);
    session.throwIfOver();
    await world.advance(1);
    // By its own timer, without a question.
    expect(session.signal.aborted).toBe(true);
    expect(session.signal.reason).toMatchObject(lost);
    expect(session.isOver).toBe(true);
    expect(() => session.throwIfOver()).toThrow(expect.objectContaining(lost));
  });

  it("goes on for as long as its heart beats", async () => {
    const { world, session, ground } = await begin(1000);
    await world.advance(20 * leaseMs);
    expect(session.isOver).toBe(false);
    expect(await ground.session()).toBe(session);
  });

  it("is over 0.8 of a lease after its last beat, for good", async () => {
    const { world, session } = await begin(3);
    // Beats at 1/8, 3/8 and 5/8.
    await world.advance((5 / 8 + 0.8) * leaseMs - 1);
    expect(session.isOver).toBe(false);
    await world.advance(1);
    expect(session.signal.aborted).toBe(true);
    await world.advance(10 * leaseMs);
    expect(session.isOver).toBe(true);
  });

  it("starts no heart when it ends within an eighth of its lease", async () => {
    const { world, ground, session } = await begin(1000);
    await world.advance(leaseMs / 8 - 1);
    const beat = Object.entries(world.tree("/ground/holders")).find(([path]) => path.endsWith(".beat"))![1];
    expect(decodeBeat(Buffer.from(beat))?.count).toBe(0);
    await ground.close();
    expect(session.isOver).toBe(true);
    world.calls.length = 0;
    await world.advance(10 * leaseMs);
    expect(world.calls.filter(({ what }) => !what.startsWith("sleep"))).toEqual([]);
  });

  it("that slept knows it at once, before any timer has fired", async () => {
    const { world, session } = await begin(1000);
    await world.advance(leaseMs);
    expect(session.isOver).toBe(false);
    world.nowMs += 2 * leaseMs;
    expect(session.isOver).toBe(true);
    expect(session.signal.reason).toMatchObject(lost);
  });

  it.each([
    ["the laptop sleeps and the monotonic clock stands still", 3_600_000],
    ["the wall clock is set ahead", 0.8 * leaseMs],
  ])("is over when %s", async (_, jumpMs) => {
    const { world, session } = await begin(1000);
    world.machine("machine").wallOffsetMs += jumpMs;
    expect(session.isOver).toBe(true);
    expect(() => session.throwIfOver()).toThrow(expect.objectContaining(lost));
    // The heart wakes too, and must not make it look alive again.
    await world.advance(leaseMs);
    expect(session.isOver).toBe(true);
    const beat = Object.entries(world.tree("/ground/holders")).find(([path]) => path.endsWith(".beat"))![1];
    expect(decodeBeat(Buffer.from(beat))?.count).toBe(0);
  });

  it("that slept while the monotonic clock stood still ends with the next beat, without a question", async () => {
    const { world, session } = await begin(1000);
    // Just after a beat: its own timer has most of the lease still to run.
    await world.advance(leaseMs / 8);
    world.machine("machine").wallOffsetMs += 3_600_000;
    await world.advance(leaseMs / 4);
    expect(session.signal.reason).toMatchObject(lost);
  });

  it("that is over does not look alive to others: its heart stops", async () => {
    const { world, session } = await begin(1000);
    await world.advance(2 * leaseMs);
    world.machine("machine").wallOffsetMs += 0.8 * leaseMs;
    expect(session.isOver).toBe(true);
    world.calls.length = 0;
    world.machine("machine").wallOffsetMs -= 0.8 * leaseMs;
    await world.advance(2 * leaseMs);
    expect(world.calls.filter(({ what }) => what.startsWith("write"))).toEqual([]);
  });

  it("does not mind a wall clock that is set back or a little ahead", async () => {
    const { world, session } = await begin(1000);
    world.machine("machine").wallOffsetMs -= 86_400_000;
    await world.advance(3 * leaseMs);
    expect(session.isOver).toBe(false);
    world.machine("machine").wallOffsetMs += 0.4 * leaseMs;
    expect(session.isOver).toBe(false);
    await world.advance(3 * leaseMs);
    expect(session.isOver).toBe(false);
  });

  it("is not saved by a wall clock that is set back", async () => {
    const { world, session } = await begin(0);
    world.machine("machine").wallOffsetMs -= 86_400_000;
    await world.advance(0.8 * leaseMs);
    expect(session.isOver).toBe(true);
  });

  it("survives a beat that fails, and the next one comes", async () => {
    const strays = catchStrays();
    const { world, session } = await begin(1000);
    const isSpoiled = await world.withFault({ process: "ada", at: "write", label: "EIO", lasting: false }, () =>
      world.advance(5 * leaseMs),
    );
    expect(isSpoiled).toBe(true);
    expect(session.isOver).toBe(false);
    expect(strays).toEqual([]);
  });

  it("is over at its deadline when its beats fail for good, and nothing is thrown from a timer", async () => {
    const strays = catchStrays();
    const { world, session } = await begin(1000);
    await world.advance(leaseMs);
    await world.withFault({ process: "ada", at: 1, label: "EIO", lasting: true }, () => world.advance(leaseMs));
    expect(session.signal.reason).toMatchObject(lost);
    // Also when the disk comes back.
    await world.advance(10 * leaseMs);
    expect(session.isOver).toBe(true);
    expect(strays).toEqual([]);
  });

  it("is over at its deadline when no heart can be started, and nothing is thrown from a timer", async () => {
    const strays = catchStrays();
    const world = new World();
    let starts = 0;
    const heart = {
      start(): never {
        starts++;
        throw new Error("no more threads");
      },
    };
    const ground = await Ground.open({ ...world.ports("ada"), heart }, "/ground", { leaseMs });
    const session = await ground.session();
    await world.advance(0.8 * leaseMs - 1);
    expect(session.signal.aborted).toBe(false);
    await world.advance(1);
    expect(session.signal.reason).toMatchObject(lost);
    expect(starts).toBeGreaterThan(1);
    expect(strays).toEqual([]);
    await ground.close();
  });

  it("lets go of its lock and its file also when the disk fails as it ends", async () => {
    const { world, ground, session } = await begin(1000);
    const other = await Ground.open(world.ports("bea"), "/ground", { leaseMs });
    await world.withFault({ process: "ada", at: 1, label: "EIO", lasting: false }, async () => {
      await expect(ground.close()).rejects.toMatchObject({ code: "IO_ERROR", errno: "EIO" });
    });
    expect([...world.server.handles].filter(({ process }) => process === "ada")).toEqual([]);
    // So that others need not wait for the lease.
    expect((await other.sweep()).map(({ id }) => id)).toEqual([session.holder.id]);
    await other.close();
  });

  it("ends once its own file is removed by others, without an error", async () => {
    const { world, ground, session } = await begin(1000);
    const { disk } = world.ports("bea");
    await disk.rename(ground.layout.record(session.holder.id), ground.layout.deathRecord(session.holder.id));
    await disk.rmdir(session.temp);
    await disk.unlink(ground.layout.beat(session.holder.id));
    await ground.close();
    expect(Object.keys(world.tree("/ground/holders"))).toEqual([ground.layout.deathRecord(session.holder.id)]);
  });
});

describe("a session that others took for dead while its clocks stood still", () => {
  /** What a sweeper does. */
  async function sweepAway({ world, ground, session }: Story): Promise<void> {
    const { disk } = world.ports("bea");
    await disk.rename(ground.layout.record(session.holder.id), ground.layout.deathRecord(session.holder.id));
    await disk.rmdir(session.temp);
    await disk.unlink(ground.layout.beat(session.holder.id));
  }

  it("is over as soon as it wants to write, and another one begins", async () => {
    const story = await begin(1000);
    const { world, ground, session } = story;
    await sweepAway(story);
    const put = (): Promise<boolean> => putIfAbsent(ground.staging, "/file", Buffer.from("x"));
    await expect(put()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(session.signal.reason).toMatchObject(lost);
    expect(await put()).toBe(true);
    expect((await ground.session()).holder.id).not.toBe(session.holder.id);
    await ground.close();
    expect(Object.keys(world.tree("/ground/holders"))).toEqual([ground.layout.deathRecord(session.holder.id)]);
  });

  it("learns of the record of its death when it is used, within a beat, though nothing of it is swept yet", async () => {
    const { world, ground, session } = await begin(1000);
    await world
      .ports("bea")
      .disk.rename(ground.layout.record(session.holder.id), ground.layout.deathRecord(session.holder.id));
    await world.advance(leaseMs / 4);
    await ground.session();
    await world.settle();
    expect(session.signal.reason).toMatchObject(lost);
    expect((await ground.session()).holder.id).not.toBe(session.holder.id);
  });

  it("learns of it when it is used, within a beat, though the record of its death is forgotten", async () => {
    const story = await begin(1000);
    const { world, ground, session } = story;
    await sweepAway(story);
    await world.ports("bea").disk.unlink(ground.layout.deathRecord(session.holder.id));
    await world.advance(leaseMs / 4);
    await ground.session();
    await world.settle();
    expect(session.signal.reason).toMatchObject(lost);
    expect((await ground.session()).holder.id).not.toBe(session.holder.id);
  });

  it.each([
    ["deleted", async (disk: Disk, path: string) => disk.unlink(path)],
    [
      "replaced",
      async (disk: Disk, path: string) => {
        await disk.createFile("/restored", new Uint8Array(), { sync: false });
        await disk.rename("/restored", path);
      },
    ],
  ])("is over within a beat when its heartbeat file is %s", async (_, change) => {
    const { world, ground, session } = await begin(1000);
    await change(world.ports("bea").disk, ground.layout.beat(session.holder.id));
    await world.advance(leaseMs / 4);
    await ground.session();
    await world.settle();
    expect(session.signal.reason).toMatchObject(lost);
    expect((await ground.session()).holder.id).not.toBe(session.holder.id);
  });

  it("is looked for once in a beat, and ends by no record that is missing and by no look that fails", async () => {
    const { world, ground, session } = await begin(1000);
    await world.ports("bea").disk.unlink(ground.layout.record(session.holder.id));
    await world.advance(leaseMs);
    world.calls.length = 0;
    const fault = { process: "ada", at: "can open", label: "EIO", lasting: false };
    expect(
      await world.withFault(fault, async () => {
        for (let use = 0; use < 5; use++) await ground.session();
        await world.settle();
      }),
    ).toBe(true);
    expect(world.calls.map(({ what }) => what)).toEqual([`can open ${ground.layout.deathRecord(session.holder.id)}`]);
    await world.advance(leaseMs);
    expect(await ground.session()).toBe(session);
    await world.settle();
    expect(session.isOver).toBe(false);
  });

  it("does not end the one that has begun since", async () => {
    const { world, ground, session } = await begin(0);
    const slow = { ...ground.staging, directory: async () => session.temp };
    await world.advance(leaseMs);
    const next = await ground.session();
    await expect(putIfAbsent(slow, "/file", Buffer.from("x"))).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(next.isOver).toBe(false);
  });
});

describe("a session on the real disk", () => {
  /** Blocks this thread, event loop and all. */
  function block(ms: number): void {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (const endMs = nodeClock.monotonicMs() + ms; nodeClock.monotonicMs() < endMs;) Atomics.wait(cell, 0, 0, 5);
  }

  async function beginReal(leaseMs: number): Promise<{ session: HolderSession; beat: string }> {
    const ground = await openGround(makeScratch(), { leaseMs });
    onTestFinished(() => ground.close());
    const session = await ground.session();
    return { session, beat: ground.layout.beat(session.holder.id) };
  }

  it("is not lost while the event loop is blocked for less than the lease", async () => {
    const { session, beat } = await beginReal(3000);
    await vi.waitFor(() => expect(decodeBeat(readFileSync(beat))?.count).toBeGreaterThan(0), patience);
    block(2700);
    expect(session.isOver).toBe(false);
    await new Promise((resolve) => setImmediate(resolve));
    expect(session.signal.aborted).toBe(false);
  });

  it("is lost when it is blocked for longer, and says so before any timer has fired", async () => {
    const strays = catchStrays();
    const { session } = await beginReal(500);
    block(1000);
    expect(session.isOver).toBe(true);
    expect(session.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    // Time passes: whatever was due meanwhile comes now.
    await nodeClock.sleep(10);
    expect(session.isOver).toBe(true);
    expect(strays).toEqual([]);
  });
});
