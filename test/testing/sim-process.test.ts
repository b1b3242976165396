import { describe, expect, it } from "vitest";
import { decodeBeat } from "../../src/format/beat.ts";
import type { Volume } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { parkNever, type Park } from "../../src/testing/sim/call.ts";
import { SimOsLocks } from "../../src/testing/sim/os-locks.ts";
import { createSimPorts } from "../../src/testing/sim/process.ts";
import type { ServerQuirks } from "../../src/testing/sim/server.ts";
import { describeOsLockContract } from "../sites/contracts.ts";
import { Bench, bytesOf } from "./sim-bench.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Takes the ordinary outcome as soon as there is one. */
const parkPatiently: Park = async (call) => {
  for (;;) {
    const [ordinary] = call.outcomes();
    if (ordinary !== undefined) return ordinary.run();
    await turn();
  }
};

class World extends Bench {
  readonly osLocks: SimOsLocks;

  constructor(quirks: ServerQuirks = {}, kind?: Volume["kind"]) {
    super(quirks, "share", kind);
    this.osLocks = new SimOsLocks(quirks.osLocks);
  }

  ports(machine: string, { park = parkNever, beatsMax = 0, name = machine } = {}): Ports {
    return createSimPorts({
      name,
      machine: this.machine(machine),
      server: this.server,
      osLocks: this.osLocks,
      park,
      now: () => this.nowMs,
      observed: () => undefined,
      pid: 100,
      processState: () => "alive",
      beatsMax,
    });
  }
}

describeOsLockContract(
  "the simulated kernel",
  async () => {
    const { disk, osLock } = new World({}, "local").ports("m1", { park: parkPatiently });
    await disk.mkdir("/locks");
    return { disk, osLock, directory: "/locks" };
  },
  { hasNotes: false },
);

describe("the simulated OS lock", () => {
  const lockOn = async (world: World, machine: string, name = machine): Promise<boolean> =>
    (await world.ports(machine, { name }).osLock.open("/lock")).tryLock();

  it("excludes other machines by default", async () => {
    const world = new World();
    expect([await lockOn(world, "m1"), await lockOn(world, "m2")]).toEqual([true, false]);
  });

  it("excludes only within each machine with osLocks per machine", async () => {
    const world = new World({ osLocks: "per machine" });
    const locked = [await lockOn(world, "m1"), await lockOn(world, "m2"), await lockOn(world, "m1", "another")];
    expect(locked).toEqual([true, true, false]);
  });

  it("cannot be had with osLocks none", async () => {
    const world = new World({ osLocks: "none" });
    const failure = { code: "UNSUPPORTED_DISK", missing: ["OS lock"], path: "/lock" };
    await expect(world.ports("m1").osLock.open("/lock")).rejects.toMatchObject(failure);
    expect(world.state).toBe("(nothing)");
  });

  it("dies with the process that holds it, and with no other", async () => {
    const world = new World();
    expect(await lockOn(world, "m1", "holder")).toBe(true);
    world.osLocks.freeAllOf("another process");
    expect(await lockOn(world, "m1", "next")).toBe(false);
    world.osLocks.freeAllOf("holder");
    expect(await lockOn(world, "m1", "next")).toBe(true);
  });

  it("keeps its file open, which some file systems do not let go of then", async () => {
    const world = new World({ busyWhileOpen: true });
    const { disk, osLock } = world.ports("m1");
    const lock = await osLock.open("/lock");
    await expect(disk.unlink("/lock")).rejects.toMatchObject({ errno: "EBUSY" });
    await lock.close();
    await disk.unlink("/lock");
  });

  it("is told apart in what the explorer remembers", async () => {
    const world = new World();
    const before = world.osLocks.describe();
    await lockOn(world, "m1");
    expect(world.osLocks.describe()).not.toBe(before);
  });
});

describe("the simulated heart", () => {
  async function started(options: { beatsMax: number; gapMsMax?: number }) {
    const world = new World();
    const parked: (() => void)[] = [];
    const park: Park = (call) =>
      call.background
        ? parkPatiently(call)
        : new Promise((resolve, reject) => {
            parked.push(() => {
              try {
                resolve(call.outcomes()[0]?.run() as never);
              } catch (error) {
                reject(error);
              }
            });
          });
    const next = async (): Promise<void> => {
      await turn();
      parked.shift()?.();
      await turn();
    };
    await world.disk("m1").createFile("/beat", new Uint8Array(), { sync: true });
    const { disk, heart } = world.ports("m1", { park, beatsMax: options.beatsMax });
    const opening = disk.open("/beat", "write");
    await next();
    const file = await opening;
    const losses: unknown[] = [];
    const beating = heart.start(file, {
      everyMs: 100,
      stallMs: 1000,
      gapMsMax: options.gapMsMax ?? 1000,
      from: 1,
      onLost: (cause) => losses.push(cause),
    });
    const countNow = async (): Promise<number | undefined> =>
      decodeBeat(await world.disk("m2").readFile("/beat", 100))?.count;
    return { world, file, beating, losses, next, countNow, parked };
  }

  it("beats by steps that can be put off, for as often as the scenario lets it", async () => {
    const { world, beating, next, countNow, losses, parked } = await started({ beatsMax: 2 });
    expect(beating.lastBeat()).toBe(undefined);
    await next();
    expect([await countNow(), beating.lastBeat()]).toEqual([1, undefined]);
    await next();
    expect(beating.lastBeat()).toEqual({ monotonicMs: 1_000_000, wallMs: 1_000_000 });
    world.nowMs += 100;
    for (let steps = 0; steps < 2; steps++) await next();
    expect(beating.lastBeat()?.monotonicMs).toBe(1_000_100);
    world.nowMs += 100;
    await turn();
    expect([await countNow(), losses, parked.length]).toEqual([2, [], 0]);
  });

  it("has no beat under way any more when a stop, or a close of its file, resolves", async () => {
    for (const end of ["stop", "close"] as const) {
      const { file, beating, next, countNow, losses } = await started({ beatsMax: 5 });
      let isOver = false;
      const ending = (end === "stop" ? beating.stop() : file.close()).then(() => (isOver = true));
      await turn();
      expect(isOver).toBe(false);
      await next();
      await next();
      if (end === "close") await next();
      await ending;
      expect([await countNow(), losses]).toEqual([1, []]);
    }
  });

  it("reports a write that fails", async () => {
    const { world, beating, next, losses } = await started({ beatsMax: 5 });
    await next();
    await next();
    await world.disk("m1").createFile("/other", bytesOf("x"), { sync: true });
    const failing = world.ports("m1", { beatsMax: 1 });
    const file = await failing.disk.open("/other", "read");
    const options = { everyMs: 100, stallMs: 1000, gapMsMax: 1000, from: 1 };
    failing.heart.start(file, { ...options, onLost: (cause) => losses.push(cause) });
    await turn();
    expect(losses).toEqual([expect.objectContaining({ errno: "EBADF" })]);
    await beating.stop();
  });
});

describe("simulated hints", () => {
  it("come only with the quirk that says so", async () => {
    const hints: string[] = [];
    new World({ watch: "hints" }).ports("m1").watch.start("/", () => hints.push("hints"));
    new World({ watch: "silent" }).ports("m1").watch.start("/", () => hints.push("silent"));
    new World().ports("m1").watch.start("/", () => hints.push("default"));
    await turn();
    expect(hints).toEqual(["hints"]);
  });
});
