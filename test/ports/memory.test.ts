import { spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { decodeBeat, encodeBeat } from "../../src/format/beat.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { DiskFile } from "../../src/ports/disk.ts";
import { createMemoryDisk } from "../../src/ports/memory/disk.ts";
import { createMemoryHeart } from "../../src/ports/memory/heart.ts";
import { createMemoryOsLock } from "../../src/ports/memory/os-lock.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { createMemoryWatch } from "../../src/ports/memory/watch.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { openNodeHost } from "../../src/ports/node/host.ts";
import { nodeRandom } from "../../src/ports/node/random.ts";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import { describeDiskContract } from "../sites/contracts.ts";
import { describeOsLockContract } from "../sites/contracts.ts";

const moduleUrl = (path: string): string =>
  JSON.stringify(pathToFileURL(compiledModule(new URL(`../../src/${path}`, import.meta.url))).href);

const patience = { timeout: 30_000, interval: 5 };

describeDiskContract("memory", async () => {
  const disk = createMemoryDisk(nodeClock.wallMs);
  await disk.mkdir("/root");
  return { disk, root: "/root" };
});
describeDiskContract("memory, in its root", async () => ({ disk: createMemoryDisk(nodeClock.wallMs), root: "/" }));

describeOsLockContract("a memory disk", async () => {
  const disk = createMemoryDisk(nodeClock.wallMs);
  await disk.mkdir("/locks");
  return { osLock: createMemoryOsLock(disk), disk, directory: "/locks" };
});

describe("the memory disk", () => {
  it("stamps files with the clock that it was given", async () => {
    let nowMs = 5000;
    const disk = createMemoryDisk(() => nowMs);
    await disk.createFile("/a", new Uint8Array(1), { sync: false });
    nowMs = 7000;
    await disk.createFile("/b", new Uint8Array(1), { sync: false });
    expect([(await disk.stat("/a")).mtimeMs, (await disk.stat("/b")).mtimeMs]).toEqual([5000, 7000]);
  });

  it("tells which directories changed, and only then", async () => {
    const changed: string[] = [];
    const disk = createMemoryDisk(nodeClock.wallMs, (directory) => changed.push(directory));
    const changesOf = async (operation: Promise<unknown>): Promise<string[]> => {
      await operation.catch(() => undefined);
      return changed.splice(0);
    };
    expect(await changesOf(disk.mkdir("/d"))).toEqual(["/"]);
    expect(await changesOf(disk.createFile("/d/a", new Uint8Array(), { sync: true }))).toEqual(["/d"]);
    expect(await changesOf(disk.open("/d/b", "create"))).toEqual(["/d"]);
    expect(await changesOf(disk.link("/d/a", "/c"))).toEqual(["/"]);
    expect(await changesOf(disk.rename("/c", "/d/c"))).toEqual(["/d", "/"]);
    expect(await changesOf(disk.unlink("/d/c"))).toEqual(["/d"]);
    expect(await changesOf(disk.rmdir("/d"))).toEqual([]);
    expect(await changesOf(disk.open("/d/a", "write"))).toEqual([]);
    expect(await changesOf(disk.createFile("/d/a", new Uint8Array(), { sync: true }))).toEqual([]);
  });
});

describe("the memory OS lock", () => {
  it("serves waiters in the order in which they came, and passes over those that left", async () => {
    const osLock = createMemoryOsLock(createMemoryDisk(nodeClock.wallMs));
    const served: string[] = [];
    const holder = await osLock.open("/lock");
    await holder.lock();
    const leaving = new AbortController();
    const wait = async (name: string, signal?: AbortSignal): Promise<void> => {
      const file = await osLock.open("/lock");
      await file.lock({ signal });
      served.push(name);
      await file.close();
    };
    const first = wait("first");
    await new Promise((resolve) => setImmediate(resolve));
    const left = wait("left", leaving.signal);
    await new Promise((resolve) => setImmediate(resolve));
    const last = wait("last");
    await new Promise((resolve) => setImmediate(resolve));
    leaving.abort();
    await expect(left).rejects.toMatchObject({ name: "AbortError" });
    await holder.close();
    await Promise.all([first, last]);
    expect(served).toEqual(["first", "last"]);
  });

  it("is handed over without a moment in which it is free", async () => {
    const osLock = createMemoryOsLock(createMemoryDisk(nodeClock.wallMs));
    const [holder, waiter, third] = [await osLock.open("/l"), await osLock.open("/l"), await osLock.open("/l")];
    await holder.lock();
    const waiting = waiter.lock();
    const [, stolen] = await Promise.all([holder.unlock(), third.tryLock()]);
    expect(stolen).toBe(false);
    await waiting;
  });

  it("closes the file that it opened", async () => {
    const disk = createMemoryDisk(nodeClock.wallMs);
    const opened: DiskFile[] = [];
    const open = async (path: string, mode: "read" | "write" | "create"): Promise<DiskFile> => {
      const file = await disk.open(path, mode);
      opened.push(file);
      return file;
    };
    const lock = await createMemoryOsLock({ ...disk, open }).open("/lock");
    await lock.close();
    expect(opened).toHaveLength(1);
    await expect(opened[0]?.stat()).rejects.toMatchObject({ errno: "EBADF" });
  });

  it("is another one on another disk", async () => {
    const [one, other] = [createMemoryDisk(nodeClock.wallMs), createMemoryDisk(nodeClock.wallMs)].map(
      createMemoryOsLock,
    );
    expect(await (await one?.open("/lock"))?.tryLock()).toBe(true);
    expect(await (await other?.open("/lock"))?.tryLock()).toBe(true);
  });
});

describe("the memory heart", () => {
  /** A clock that is moved by hand: `pass` wakes every sleeper whose time has come. */
  function handClock(): Clock & { pass: (ms: number) => Promise<void> } {
    let nowMs = 1000;
    const sleepers = new Set<{ dueMs: number; wake: () => void }>();
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    return {
      wallMs: () => nowMs + 1_000_000,
      monotonicMs: () => nowMs,
      sleep: (ms, { signal } = {}) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason);
          const sleeper = { dueMs: nowMs + ms, wake: resolve };
          sleepers.add(sleeper);
          signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
        }),
      alarm(ms, ring) {
        const sleeper = { dueMs: nowMs + ms, wake: ring };
        sleepers.add(sleeper);
        return () => sleepers.delete(sleeper);
      },
      async pass(ms) {
        await turn();
        nowMs += ms;
        for (const sleeper of sleepers) if (sleeper.dueMs <= nowMs && sleepers.delete(sleeper)) sleeper.wake();
        await turn();
      },
    };
  }

  async function start(options: { stallMs?: number } = {}) {
    const clock = handClock();
    const disk = createMemoryDisk(clock.wallMs);
    const file = await disk.open("/beat", "create");
    const losses: unknown[] = [];
    const { stallMs = 400 } = options;
    const onLost = (cause: unknown): void => void losses.push(cause);
    const beating = createMemoryHeart(clock).start(file, {
      everyMs: 100,
      stallMs,
      gapMsMax: 60_000,
      from: 7,
      leaseMs: 30_000,
      onLost,
    });
    const countNow = async (): Promise<number | undefined> => decodeBeat(await disk.readFile("/beat", 100))?.count;
    return { clock, disk, file, losses, beating, countNow };
  }

  it("writes the bytes of format/beat.ts at once and then after every interval, over each other", async () => {
    const { clock, disk, beating } = await start();
    await clock.pass(0);
    expect(await disk.readFile("/beat", 100)).toEqual(encodeBeat(7, clock.wallMs(), 30_000));
    await clock.pass(99);
    expect(await disk.readFile("/beat", 100)).toEqual(encodeBeat(7, clock.wallMs() - 99, 30_000));
    await clock.pass(1);
    expect(await disk.readFile("/beat", 100)).toEqual(encodeBeat(8, clock.wallMs(), 30_000));
    await beating.stop();
  });

  it("writes a line of the same length whatever the clock says", async () => {
    const disk = createMemoryDisk(() => 0);
    for (const wallMs of [-1, 8.64e15, Infinity]) {
      const file = await disk.open(`/${wallMs}`, "create");
      const options = { everyMs: 100, stallMs: 400, gapMsMax: 60_000, from: 0, onLost: () => undefined };
      const beating = createMemoryHeart({ ...handClock(), wallMs: () => wallMs }).start(file, options);
      await beating.stop();
      expect(await disk.readFile(`/${wallMs}`, 100)).toEqual(encodeBeat(0, wallMs));
    }
  });

  it("tells the times from just before its last beat", async () => {
    const { clock, beating } = await start();
    await clock.pass(0);
    expect(beating.lastBeat()).toEqual({ monotonicMs: 1000, wallMs: 1_001_000 });
    await clock.pass(130);
    expect(beating.lastBeat()).toEqual({ monotonicMs: 1130, wallMs: 1_001_130 });
    await beating.stop();
    expect(beating.lastBeat()).toEqual({ monotonicMs: 1130, wallMs: 1_001_130 });
  });

  it("begins no beat after a stop, and reports no loss for it", async () => {
    const { clock, beating, losses, countNow } = await start();
    await clock.pass(100);
    await Promise.all([beating.stop(), beating.stop()]);
    await clock.pass(1000);
    expect([await countNow(), losses]).toEqual([8, []]);
  });

  it("stops when its file is closed, and reports no loss for it", async () => {
    const { clock, file, losses, countNow } = await start();
    await clock.pass(0);
    await file.close();
    await clock.pass(1000);
    expect([await countNow(), losses]).toEqual([7, []]);
  });

  it("reports a failed write once, and beats no more", async () => {
    const clock = handClock();
    const losses: unknown[] = [];
    const failure = new Error("no more room");
    let writes = 0;
    const file = { write: () => Promise.reject((writes++, failure)) } as Partial<DiskFile> as DiskFile;
    const options = {
      everyMs: 100,
      stallMs: 400,
      gapMsMax: 60_000,
      from: 1,
      onLost: (cause: unknown) => losses.push(cause),
    };
    const beating = createMemoryHeart(clock).start(file, options);
    await clock.pass(1000);
    expect([losses, writes, beating.lastBeat()]).toEqual([[failure], 1, undefined]);
    await beating.stop();
  });

  it("falls silent for good when the event loop did not turn for stallMs, and says so", async () => {
    const { clock, losses, beating, countNow } = await start();
    await clock.pass(0);
    await clock.pass(499);
    expect([await countNow(), losses]).toEqual([8, []]);
    await clock.pass(500);
    await clock.pass(1000);
    expect([await countNow(), losses.length]).toEqual([8, 1]);
    expect(String(losses[0])).toContain("400 ms");
    await beating.stop();
  });

  it("does not keep the process alive", () => {
    const program = `
      import { createMemoryDisk } from ${moduleUrl("ports/memory/disk.ts")};
      import { createMemoryHeart } from ${moduleUrl("ports/memory/heart.ts")};
      import { nodeClock } from ${moduleUrl("ports/node/clock.ts")};
      const file = await createMemoryDisk(nodeClock.wallMs).open("/beat", "create");
      const options = { everyMs: 600_000, stallMs: 600_000, gapMsMax: 600_000, from: 1, onLost: () => undefined };
      createMemoryHeart(nodeClock).start(file, options);`;
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { timeout: 60_000 });
    expect([child.status, child.signal, child.stderr.toString()]).toEqual([0, null, ""]);
  });
});

describe("the memory watch", () => {
  // Time passes: in which every hint comes that is on its way, and one could come that must not.
  const turns = (): Promise<void> => nodeClock.sleep(20);

  it("gives one hint for a burst of changes in its directory, and none for another directory", async () => {
    const watch = createMemoryWatch(nodeClock);
    const hints: string[] = [];
    watch.start("/a", () => hints.push("a"));
    watch.start("/b", () => hints.push("b"));
    for (let i = 0; i < 5; i++) watch.changed("/a");
    watch.changed("/a/below");
    expect(hints).toEqual([]);
    await turns();
    expect(hints).toEqual(["a"]);
    watch.changed("/a");
    await turns();
    expect(hints).toEqual(["a", "a"]);
  });

  it("gives no hint after it was stopped, not even one that was on its way", async () => {
    const watch = createMemoryWatch(nodeClock);
    const hints: string[] = [];
    const stop = watch.start("/a", () => hints.push("stopped"));
    watch.start("/a", () => hints.push("watching"));
    watch.changed("/a");
    stop();
    stop();
    watch.changed("/a");
    await turns();
    expect(hints).toEqual(["watching"]);
  });

  it("lets the event loop turn though every hint is answered by a change", async () => {
    const watch = createMemoryWatch(nodeClock);
    const stop = watch.start("/a", () => watch.changed("/a"));
    watch.changed("/a");
    await turns();
    stop();
  });
});

describe("the memory ports", () => {
  const makePorts = async () => createMemoryPorts({ clock: nodeClock, random: nodeRandom, host: await openNodeHost() });

  it("work together on one disk", async () => {
    const { disk, clock, heart, osLock, watch, host } = await makePorts();
    await disk.mkdir("/d");
    let hints = 0;
    const stopWatching = watch.start("/d", () => hints++);
    const lock = await osLock.open("/d/lock");
    expect(await lock.tryLock()).toBe(true);
    const file = await disk.open("/d/beat", "create");
    const beating = heart.start(file, {
      everyMs: 20,
      stallMs: 60_000,
      gapMsMax: 60_000,
      from: 1,
      onLost: () => undefined,
    });
    await vi.waitFor(() => expect(beating.lastBeat()).toBeDefined(), patience);
    expect(beating.lastBeat()?.monotonicMs).toBeLessThanOrEqual(clock.monotonicMs());
    await vi.waitFor(() => expect(hints).toBeGreaterThan(0), patience);
    expect((await disk.list("/d")).sort()).toEqual(["beat", "lock"]);
    expect(host.processState(host.pid, host.startMark)).toBe("alive");
    stopWatching();
    await file.close();
    await lock.close();
  });

  it("are another world with each call", async () => {
    const [one, other] = [await makePorts(), await makePorts()];
    await one.disk.mkdir("/d");
    expect(await other.disk.list("/")).toEqual([]);
  });
});

it("a memory disk lets timers have their turn, however long a caller writes and syncs", async () => {
  const disk = createMemoryDisk(nodeClock.wallMs);
  const file = await disk.open("/file", "create");
  let isOver = false;
  // Time passes: this is the timer that must have its turn.
  setTimeout(() => (isOver = true), 1);
  // Would never end if a sync were only a promise.
  for (let at = 0; !isOver && at < 1_000_000; at++) {
    await file.write(0, Buffer.from("x"));
    await file.sync();
  }
  expect(isOver).toBe(true);
});
