// Which locks may be taken from their holders, and on what evidence: on a simulated disk, whose
// time passes by hand.
import { describe, expect, it } from "vitest";
import type { SemaphoreOptions } from "../../src/locks/semaphore/options.ts";
import type { PortsSemaphore } from "../../src/locks/semaphore/semaphore.ts";
import type { Disk, Volume } from "../../src/ports/disk.ts";
import { nfs } from "../sites/world.ts";
import { lockPath, SemaphoreWorld } from "./semaphore-world.ts";

const hour = 3_600_000;

async function canTake(semaphore: PortsSemaphore): Promise<boolean> {
  const { stale, locked } = await semaphore.status();
  const hold = await semaphore.tryAcquire();
  // What a status says and what an attempt does must agree.
  expect(hold !== undefined).toBe(stale || !locked);
  return hold !== undefined;
}

describe("a lock of another program", () => {
  it("goes by its age, as the protocol says, whether its process lives or not", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(`pid=4711\ntimestamp=${world.nowSeconds()}\n`);
    const ada = world.semaphore("ada");
    await world.advance(hour);
    expect(await canTake(ada)).toBe(false);
    await world.advance(1000);
    expect(await canTake(ada)).toBe(true);
  });

  it("is respected for staleMs, and for ever when it is null", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(`pid=4711\ntimestamp=${world.nowSeconds()}\n`);
    const [never, soon] = [world.semaphore("ada", { staleMs: null }), world.semaphore("bob", { staleMs: 5000 })];
    await world.advance(100 * hour);
    expect(await canTake(never)).toBe(false);
    expect(await canTake(soon)).toBe(true);
  });

  it("with a time in the future counts for staleMs after it was written, not for years", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(`pid=4711\ntimestamp=${world.nowSeconds() + 10 * 365 * 86_400}\n`);
    const ada = world.semaphore("ada");
    await world.advance(hour - 1000);
    expect(await canTake(ada)).toBe(false);
    await world.advance(2000);
    expect(await canTake(ada)).toBe(true);
  });

  it("with a time in the future goes stale for a waiter too", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(`pid=4711\ntimestamp=${world.nowSeconds() + 86_400}\n`);
    const waiting = world.semaphore("ada", { staleMs: 60_000, retryMs: 1000 }).acquire();
    const state = watch(waiting);
    await world.advance(58_000);
    expect(state.settled).toBe(false);
    await world.advance(5000);
    expect(state.settled).toBe(true);
  });

  it("with timestamp 0 is stale", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant("pid=4711\ntimestamp=0\n");
    expect(await canTake(world.semaphore("ada"))).toBe(true);
  });
});

describe("a lock of another program whose process runs on this machine", () => {
  const nowMs = 1_700_000_000_000;
  const text = `pid=4711\ntimestamp=${nowMs / 1000}\n`;
  const seenBy = (world: SemaphoreWorld, startMs: number | undefined, options: SemaphoreOptions = {}): PortsSemaphore =>
    world.semaphore("ada", options, { host: { findStartMs: (pid) => (pid === 4711 ? startMs : undefined) } });

  it("is held however old it is, if the process began before the lock", async () => {
    for (const startMs of [0, nowMs - 5000, nowMs + 900]) {
      const world = await SemaphoreWorld.make();
      await world.plant(text);
      await world.advance(100 * hour);
      expect(await canTake(seenBy(world, startMs))).toBe(false);
      expect(await seenBy(world, startMs).clean()).toBe(false);
      // The process has ended.
      expect(await canTake(seenBy(world, undefined))).toBe(true);
    }
  });

  it("goes by its age if the process began later: it only has the number of the one that died", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(text);
    await world.advance(hour + 60_000);
    expect(await canTake(seenBy(world, nowMs + 30_000))).toBe(true);
  });

  it("goes by its age on a share, where the number is of another machine's process", async () => {
    const world = await SemaphoreWorld.make({ volume: nfs });
    await world.plant(text);
    await world.advance(2 * hour);
    expect(await seenBy(world, 0).status()).toMatchObject({ stale: true });
  });
});

describe("a lock of ours", () => {
  it("is stale at once when its process has ended on this boot", async () => {
    const world = await SemaphoreWorld.make();
    await world.semaphore("ada").acquire();
    const bob = world.semaphore("bob");
    expect(await canTake(bob)).toBe(false);
    world.end("ada");
    expect(await canTake(bob)).toBe(true);
  });

  it("is stale at once also where locks never go stale by age", async () => {
    const world = await SemaphoreWorld.make();
    await world.semaphore("ada").acquire();
    world.end("ada");
    expect(await canTake(world.semaphore("bob", { staleMs: null }))).toBe(true);
  });

  it("is never taken while its process lives, however old it is", async () => {
    const world = await SemaphoreWorld.make();
    const hold = await world.semaphore("ada").acquire();
    await world.advance(100 * hour);
    expect(await canTake(world.semaphore("bob"))).toBe(false);
    expect(await world.semaphore("bob").clean()).toBe(false);
    expect(hold.signal.aborted).toBe(false);
    await hold.release();
    expect(world.text()).toBe(undefined);
  });

  it("goes by its age when it was taken in another container, where its pid means another process", async () => {
    const world = await SemaphoreWorld.make();
    const host = { pid: 1, processSpace: "container-1" };
    await world.semaphore("ada", {}, { host }).acquire();
    // In this container pid 1 is this process, or none.
    const bob = world.semaphore(
      "bob",
      {},
      { host: { pid: 1, processSpace: "container-2", processState: () => "dead" } },
    );
    expect(await canTake(bob)).toBe(false);
    expect((await bob.status()).mine).toBe(false);
    await world.advance(hour + 1000);
    expect(await canTake(bob)).toBe(true);
  });

  it("is released for another process only by helpers of that very process, not of one with its pid", async () => {
    const world = await SemaphoreWorld.make();
    const owner = { pid: 1 };
    const here = { processSpace: "container-1", startMarkOf: () => "77" };
    await world.semaphore("ada", { owner }, { host: here }).acquire();
    for (const elsewhere of [{ processSpace: "container-2" }, { bootId: "another" }, { startMarkOf: () => "78" }]) {
      const helper = world.semaphore("bob", { owner }, { host: { ...here, ...elsewhere } });
      expect((await helper.status()).mine).toBe(false);
      await expect(helper.release()).rejects.toMatchObject({ code: "NOT_HELD" });
    }
    const helper = world.semaphore("cleo", { owner }, { host: here });
    expect((await helper.status()).mine).toBe(true);
    await helper.release();
    expect(world.text()).toBe(undefined);
  });

  it("is refused to a process that does not run: it would be stale at once", async () => {
    const world = await SemaphoreWorld.make();
    const host = { processState: (): "dead" => "dead" };
    const call = world.semaphore("ada", { owner: { pid: 77 } }, { host }).tryAcquire();
    await expect(call).rejects.toThrow(
      new RangeError("owner.pid 77 is not a running process: its lock would be stale at once."),
    );
  });

  const yesterday = { host: { bootId: "boot-of-yesterday" } };

  it("is stale at once when it was taken before a restart: on a local disk its kernel is gone", async () => {
    const world = await SemaphoreWorld.make();
    await world.semaphore("ada", {}, yesterday).acquire();
    world.end("ada");
    for (const staleMs of [hour, null]) {
      const bob = world.semaphore("bob", { staleMs });
      expect(await bob.status()).toMatchObject({ locked: true, stale: true, mine: false });
    }
    expect(await canTake(world.semaphore("bob"))).toBe(true);
  });

  it("goes by its age after a restart where that is not certain", async () => {
    const cases: Readonly<Record<string, (world: SemaphoreWorld) => [PortsSemaphore, PortsSemaphore]>> = {
      "a client of a share that this machine serves, and has mounted as a disk": (world) => [
        world.semaphore("ada", {}, { ...yesterday, disk: withVolume(world.ports("ada").disk, nfs) }),
        world.semaphore("bob"),
      ],
      "a process of another container, which may have a boot id of its own": (world) => [
        world.semaphore("ada", {}, { host: { ...yesterday.host, processSpace: "container-1" } }),
        world.semaphore("bob"),
      ],
      "a process that did not know its boot": (world) => [
        world.semaphore("ada", {}, { host: { bootId: "unknown-1" } }),
        world.semaphore("bob"),
      ],
    };
    for (const [title, make] of Object.entries(cases)) {
      const world = await SemaphoreWorld.make();
      const [ada, bob] = make(world);
      await ada.acquire();
      world.end("ada");
      expect({ title, canTake: await canTake(bob) }).toEqual({ title, canTake: false });
      await world.advance(hour + 1000);
      expect({ title, canTake: await canTake(bob) }).toEqual({ title, canTake: true });
    }
  });

  it("goes by its age when a process with its number and its start runs under another boot id", async () => {
    const world = await SemaphoreWorld.make();
    await world.semaphore("ada", {}, yesterday).acquire();
    expect(await canTake(world.semaphore("bob"))).toBe(false);
    await world.advance(hour + 1000);
    expect(await canTake(world.semaphore("bob"))).toBe(true);
  });

  it("proves nothing to a process that does not know its own boot, even if the text is equal", async () => {
    const world = await SemaphoreWorld.make();
    const host = { bootId: "unknown-1", processState: (): "dead" => "dead" };
    await world.semaphore("ada", {}, { host }).acquire();
    expect(await canTake(world.semaphore("bob", {}, { host }))).toBe(false);
  });
});

describe("a file without a readable record", () => {
  const torn = {
    empty: "",
    blank: "\r\n",
    "cut off": "pid=12",
    "cut off in its second line": "pid=12\ntimest",
    "zeros after a crash": "\0".repeat(60),
    "a beginning and zeros": `pid=12${"\0".repeat(60)}`,
    "a process without a time": "pid=12\n",
  };

  it.each(Object.entries(torn))("that is %s is held for ten seconds, and stale then: one try", async (_, text) => {
    const world = await SemaphoreWorld.make();
    await world.plant(text);
    expect(await canTake(world.semaphore("ada"))).toBe(false);
    await world.advance(9_000);
    expect(await canTake(world.semaphore("bob"))).toBe(false);
    await world.advance(1_500);
    // A process that never saw it before goes by the stamps of the file system.
    expect(await canTake(world.semaphore("cleo"))).toBe(true);
    // Probes are gone.
    expect(Object.keys(world.tree("/shared")).sort()).toEqual([lockPath, `${lockPath}.guard`]);
  });

  it.each(Object.entries(torn))(
    "that is %s is waited for, and taken after ten seconds of watching",
    async (_, text) => {
      const world = await SemaphoreWorld.make();
      await world.plant(text);
      const state = watch(world.semaphore("ada").acquire());
      await world.advance(9_500);
      expect(state.settled).toBe(false);
      await world.advance(1_000);
      expect(state.settled).toBe(true);
    },
  );

  it("is a lock again as soon as its record is written", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant("");
    const state = watch(world.semaphore("ada").acquire());
    await world.advance(8_000);
    const { disk } = world.ports("shell");
    const file = await disk.open(lockPath, "write");
    await file.write(0, Buffer.from(`pid=4711\ntimestamp=${world.nowSeconds()}\n`));
    await file.close();
    await world.advance(hour - 1000);
    expect(state.settled).toBe(false);
    await disk.unlink(lockPath);
    await world.advance(200);
    expect(state.settled).toBe(true);
  });

  it("is watched only while this process runs: one that was stopped has seen nothing", async () => {
    const world = await SemaphoreWorld.make();
    const ada = world.semaphore("ada");
    await world.plant("");
    expect((await ada.status()).stale).toBe(false);
    // A program keeps writing the same torn content, so its stamp is always new.
    const { disk } = world.ports("shell");
    for (let time = 0; time < 5; time++) {
      await world.advance(9_000);
      const file = await disk.open(lockPath, "write");
      await file.write(0, Buffer.from("p"));
      await file.close();
      expect((await ada.status()).stale).toBe(false);
    }
  });
});

describe("empty files of programs that come and go", () => {
  // A crowd of programs that create, write, work and unlink once lost updates to a waiter of ours:
  // it met a file that had just been created five times, two seconds apart, and took the sixth from
  // its holder.
  it("are never taken for one that has been empty for ten seconds, though each look meets one", async () => {
    const world = await SemaphoreWorld.make();
    const ada = world.semaphore("ada");
    const { disk } = world.ports("shell");
    for (let round = 0; round < 8; round++) {
      await world.plant("");
      expect(await canTake(ada)).toBe(false);
      await disk.unlink(lockPath);
      // A look that finds the name free, or another lock under it, ends what was watched.
      if (round % 2 === 0) expect((await ada.status()).locked).toBe(false);
      await world.advance(2000);
    }
  });

  it("are told apart though no look fell between one and the next, and though both are as young", async () => {
    const world = await SemaphoreWorld.make();
    const ada = world.semaphore("ada");
    const { disk } = world.ports("shell");
    await world.plant("");
    for (let round = 0; round < 8; round++) {
      expect(await canTake(ada)).toBe(false);
      await world.advance(2000);
      await disk.unlink(lockPath);
      await world.plant("");
    }
  });

  it("are told apart by a waiter, too", async () => {
    const world = await SemaphoreWorld.make();
    const { disk } = world.ports("shell");
    const state = watch(world.semaphore("ada").acquire());
    for (let round = 0; round < 30; round++) {
      await world.plant("");
      await world.advance(450);
      await disk.unlink(lockPath);
      await world.plant(`pid=4711\ntimestamp=${world.nowSeconds()}\n`);
      await world.advance(300);
      await disk.unlink(lockPath);
    }
    expect(state.settled).toBe(false);
  });
});

describe("a whole record with values that cannot be read", () => {
  const malformed: Readonly<Record<string, (nowMs: number) => string>> = {
    "a time in milliseconds": (nowMs) => `pid=4711\ntimestamp=${nowMs}\ntag=live\n`,
    "a time with a fraction": (nowMs) => `pid=4711\ntimestamp=${nowMs / 1000 + 0.25}\n`,
    "a time in words": (nowMs) => `pid=4711\ntimestamp=${new Date(nowMs).toISOString()}\n`,
    "a time with a sign": (nowMs) => `pid=4711\ntimestamp=+${Math.floor(nowMs / 1000)}\n`,
    "a number of 64 bits for the process": (nowMs) => `pid=4294967296\ntimestamp=${Math.floor(nowMs / 1000)}\n`,
    "a process that is 0": (nowMs) => `pid=0\ntimestamp=${Math.floor(nowMs / 1000)}\n`,
    "a name for the process": (nowMs) => `pid=worker-3\ntimestamp=${Math.floor(nowMs / 1000)}\n`,
    "a comment": (nowMs) => `pid=4711 # me\ntimestamp=${Math.floor(nowMs / 1000)}\n`,
    "keys of its own before them": (nowMs) => `owner=me\ntimestamp=${nowMs}\npid=4711\n`,
    "no end of the last line": (nowMs) => `pid=4711\r\ntimestamp=${nowMs}`,
  };

  it.each(Object.entries(malformed))("(%s) counts for staleMs by the age of the file", async (_, text) => {
    const world = await SemaphoreWorld.make();
    await world.plant(text(world.nowMs));
    const ada = world.semaphore("ada");
    await world.advance(20_000);
    expect(await canTake(ada)).toBe(false);
    expect(await world.semaphore("bob").clean()).toBe(false);
    await world.advance(hour - 21_000);
    expect(await canTake(ada)).toBe(false);
    expect(await canTake(world.semaphore("cleo", { staleMs: null }))).toBe(false);
    await world.advance(2000);
    expect(await canTake(ada)).toBe(true);
  });

  it("is waited for, and removed when a person says so", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant("pid=worker-3\ntimestamp=soon\n");
    const state = watch(world.semaphore("ada").acquire());
    await world.advance(60_000);
    expect(state.settled).toBe(false);
    await world.semaphore("bob").release({ force: true });
    await world.advance(1000);
    expect(state.settled).toBe(true);
  });
});

describe("a directory without a record", () => {
  it("counts for staleMs in the directory form, because other programs lock by mkdir alone", async () => {
    const world = await SemaphoreWorld.make();
    await world.ports("setup").disk.mkdir(lockPath);
    const [file, directory] = [world.semaphore("ada"), world.semaphore("bob", { form: "directory" })];
    await world.advance(hour - 1000);
    expect(await canTake(directory)).toBe(false);
    await world.advance(2000);
    expect(await canTake(file)).toBe(false);
    expect(await canTake(directory)).toBe(true);
  });
});

describe("where the guard would not exclude every process", () => {
  const locations = {
    "there are no OS locks": { quirks: { osLocks: "none" } },
    "it is a share": { volume: nfs },
    "nothing is known of the disk": { volume: { kind: "unknown", type: "fuse", mountOptions: [] } },
  } as const;

  it.each(Object.entries(locations))("because %s, nothing is taken over", async (_, options) => {
    const world = await SemaphoreWorld.make(options);
    await world.plant("pid=4711\ntimestamp=0\n");
    const ada = world.semaphore("ada");
    expect((await ada.status()).stale).toBe(true);
    expect(await ada.tryAcquire()).toBe(undefined);
    const failure: unknown = await ada.acquire({ timeoutMs: 0 }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "LOCK_TIMEOUT", message: expect.stringContaining("it is stale") as string });
    await expect(ada.clean()).rejects.toMatchObject({ code: "UNSUPPORTED_DISK", path: lockPath });
    expect(world.text()).toBeDefined();
    // A person may know more.
    await ada.release({ force: true });
    expect(world.text()).toBe(undefined);
  });

  it.each(Object.entries(locations))(
    "because %s, a free name can still be acquired and released",
    async (_, options) => {
      const world = await SemaphoreWorld.make(options);
      for (const form of ["file", "directory"] as const) {
        const hold = await world.semaphore("ada", { form }).acquire();
        await world.advance(2 * hour);
        await hold.release();
        expect(hold.signal.aborted).toBe(false);
      }
      expect(world.tree("/shared")).toEqual({ "/shared/": "" });
    },
  );
});

describe("the guard", () => {
  it("is asked for by a holder whose lock is older than half of staleMs, and not before", async () => {
    for (const [ageMs, isGuarded] of [
      [hour / 2 - 1000, false],
      [hour / 2 + 1000, true],
    ] as const) {
      const world = await SemaphoreWorld.make();
      const hold = await world.semaphore("ada").acquire();
      await world.advance(ageMs);
      await hold.release();
      expect(world.calls.some(({ what }) => what.startsWith("try lock"))).toBe(isGuarded);
    }
  });

  it("is asked for early enough where locks never go stale here, but may elsewhere", async () => {
    const world = await SemaphoreWorld.make();
    const hold = await world.semaphore("ada", { staleMs: null }).acquire();
    await world.advance(hour);
    await hold.release();
    expect(world.calls.some(({ what }) => what.startsWith("try lock"))).toBe(true);
  });

  it("that another process holds makes a taker retry later, and a holder wait for a while", async () => {
    const world = await SemaphoreWorld.make();
    const hold = await world.semaphore("ada").acquire();
    await world.advance(hour);
    const guard = await world.ports("other").osLock.open(`${lockPath}.guard`);
    await guard.lock();
    const failed = hold.release().catch((error: unknown) => error);
    await world.advance(11_000);
    expect(await failed).toMatchObject({ code: "LOCK_TIMEOUT", path: `${lockPath}.guard` });
    expect(world.text()).toBeDefined();
    // Nothing is lost: it is released at the next try.
    const released = hold.release();
    await world.advance(1000);
    await guard.close();
    await world.advance(1000);
    await released;
    expect(world.text()).toBe(undefined);

    await world.plant("pid=4711\ntimestamp=0\n");
    await guard.close();
    const again = await world.ports("other").osLock.open(`${lockPath}.guard`);
    await again.lock();
    expect(await world.semaphore("bob").tryAcquire()).toBe(undefined);
  });
});

function watch(promise: Promise<unknown>): { settled: boolean } {
  const state = { settled: false };
  promise.then(
    () => (state.settled = true),
    () => (state.settled = true),
  );
  return state;
}

/** The same disk, as a machine sees it that has mounted it in another way. */
function withVolume(disk: Disk, volume: Volume): Disk {
  return new Proxy(disk, {
    get: (target, key) => {
      const value: unknown = key === "volume" ? volume : Reflect.get(target, key);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
