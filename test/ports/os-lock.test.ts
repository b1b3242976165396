import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { decideGate } from "../../src/durable/gate/gate-record.ts";
import type { Volume } from "../../src/ports/disk.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { openNodeDisk } from "../../src/ports/node/disk/disk.ts";
import { createNodeOsLock } from "../../src/ports/node/lock/os-lock.ts";
import { loadNativeLock, mustRunOnNode } from "../../src/ports/node/lock/native-lock.ts";
import { nodeRandom } from "../../src/ports/node/random.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { createNodeWatch } from "../../src/ports/node/watch.ts";
import type { OsLock, OsLockFile, OsLockOptions } from "../../src/ports/os-lock.ts";
import { describeOsLockContract } from "../sites/contracts.ts";
import { makeScratch, openFilesBelow } from "../sites/scratch.ts";

const note = new TextEncoder().encode("held");
const volumeOf = (kind: Volume["kind"]): Volume => ({ kind, type: "test", mountOptions: [] });
const parts = { clock: nodeClock, random: nodeRandom, watch: createNodeWatch(volumeOf("local")) };
const lockOf = (kind: Volume["kind"]) => createNodeOsLock(volumeOf(kind), parts);

async function open(path: string, kind: Volume["kind"] = "local"): Promise<OsLockFile> {
  const file = await lockOf(kind).open(path);
  onTestFinished(() => file.close());
  return file;
}

/** How many threads this process has. */
function threads(): number {
  return Number(/Threads:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
}

/** A process that holds the lock on `path` until it is killed. */
async function startHolder(path: string): Promise<ChildProcess> {
  const range = process.platform === "darwin" ? "0, 0" : "2 ** 40, 1";
  const program = `
    const fd = require("node:fs").openSync(process.argv[1], "a+");
    if (!require("fs-native-extensions").tryLock(fd, ${range})) process.exit(1);
    process.stdout.write("locked");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["-e", program, path], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout as NodeJS.EventEmitter, "data");
  return child;
}

for (const kind of ["local", "network", "unknown"] as const)
  describeOsLockContract(
    `a ${kind} volume`,
    async () => {
      const directory = makeScratch();
      return { osLock: lockOf(kind), disk: await openNodeDisk(directory), directory };
    },
    { isShare: kind !== "local" },
  );

describe.each(["local", "network", "unknown"] as const)("the OS lock on a %s volume", (kind) => {
  it("dies with the process that holds it", async () => {
    const path = join(makeScratch(), "lock");
    const holder = await startHolder(path);
    const file = await open(path, kind);
    expect(await file.tryLock()).toBe(false);
    let granted = false;
    const waiting = file.lock().then(() => (granted = true));
    // Time passes: in which it could be granted.
    await nodeClock.sleep(50);
    expect(granted).toBe(false);
    holder.kill("SIGKILL");
    await waiting;
  });

  it.runIf(process.platform === "linux")(
    "leaves no descriptor and no thread behind a wait that was given up",
    async () => {
      const path = join(makeScratch(), "lock");
      const [holder, waiter] = [await open(path, kind), await open(path, kind)];
      await holder.lock();
      const before = threads();
      for (let i = 0; i < 10; i++) {
        await expect(waiter.lock({ signal: AbortSignal.timeout(1) })).rejects.toMatchObject({ name: "TimeoutError" });
        expect(openFilesBelow(path)).toHaveLength(1);
      }
      expect(threads() - before).toBeLessThan(5);
      await waiter.close();
      expect(openFilesBelow(path)).toHaveLength(1);
      await holder.close();
      expect(openFilesBelow(path)).toHaveLength(0);
    },
  );

  it.skipIf(process.platform === "win32")("follows no symbolic link to where its user would not make it", async () => {
    const [path, target] = [join(makeScratch(), "lock"), join(makeScratch(), "target")];
    const make = (): Promise<void> => writeFile(path, "");
    const file = await lockOf(kind).open(path, { make });
    onTestFinished(() => file.close());
    // Also when it is put there after the file was opened.
    await rm(path);
    await symlink(target, path);
    const isLink = { code: "INVALID_PATH", errno: "ELOOP", path };
    await expect(file.tryLock()).rejects.toMatchObject(isLink);
    await expect(lockOf(kind).open(path, { make })).rejects.toMatchObject(isLink);
    expect(existsSync(target)).toBe(false);
  });
});

describe("the OS lock on a share", () => {
  it.runIf(process.platform === "linux")("keeps no descriptor between acquisitions", async () => {
    const path = join(makeScratch(), "lock");
    const file = await open(path, "network");
    expect(openFilesBelow(path)).toHaveLength(0);
    await file.lock();
    expect(openFilesBelow(path)).toHaveLength(1);
    await file.unlock();
    expect(openFilesBelow(path)).toHaveLength(0);
  });
});

describe("waiters on a local volume", () => {
  it("do not slow the reading of files, however many there are", async () => {
    const path = join(makeScratch(), "lock");
    const holder = await open(path);
    await holder.lock();
    const waiters = await Promise.all(Array.from({ length: 7 }, () => open(path)));
    const waiting = waiters.map((file) => file.lock().then(() => file.unlock()));
    const readMs: number[] = [];
    for (let i = 0; i < 5; i++) {
      const before = nodeClock.monotonicMs();
      await readFile(path);
      readMs.push(nodeClock.monotonicMs() - before);
    }
    // Behind seven waiters on a pool of four it would never come; the bound is for a busy machine.
    expect(Math.min(...readMs)).toBeLessThan(250);
    await holder.unlock();
    await Promise.all(waiting);
  });

  it("are woken by the note of the holder, and not by the next poll", async () => {
    const path = join(makeScratch(), "lock");
    const osLock = createNodeOsLock(volumeOf("local"), {
      ...parts,
      clock: { ...nodeClock, alarm: () => () => undefined },
    });
    const [holder, waiter] = [await osLock.open(path, { note }), await osLock.open(path, { note })];
    onTestFinished(async () => void (await Promise.all([holder.close(), waiter.close()])));
    await holder.lock();
    const waiting = waiter.lock();
    // Time passes: so that the waiter has begun to wait.
    await nodeClock.sleep(20);
    await holder.unlock();
    await waiting;
  });
});

describe("a lock that its holder frees for a moment", () => {
  it("is free, keeps its note, wakes no waiter, and names no holder after the last unlock", async () => {
    const path = join(makeScratch(), "lock");
    const osLock = createNodeOsLock(volumeOf("local"), {
      ...parts,
      clock: { ...nodeClock, alarm: () => () => undefined },
    });
    const [holder, waiter] = [await osLock.open(path, { note }), await osLock.open(path, { note })];
    onTestFinished(async () => void (await Promise.all([holder.close(), waiter.close()])));
    const noteOf = async (): Promise<string> => (await readFile(path)).subarray(0, note.length).toString("latin1");
    await holder.lock();
    await holder.unlock({ isBrief: true });
    expect(await noteOf()).toBe(Buffer.from(note).toString("latin1"));
    expect(await holder.tryLock()).toBe(true);
    let isGranted = false;
    const waiting = waiter.lock().then(() => (isGranted = true));
    // Time passes: so that the waiter has begun to wait.
    await nodeClock.sleep(20);
    await holder.unlock({ isBrief: true });
    // Time passes: so that a waiter that was woken would have been granted the lock.
    await nodeClock.sleep(20);
    expect(isGranted).toBe(false);
    expect(await holder.tryLock()).toBe(true);
    await holder.unlock();
    await waiting;
    await waiter.unlock();
    expect((await noteOf()).trim()).toBe("");
  });
});

describe("a waiter on a local volume", () => {
  /** The pauses that it makes before it is called off. */
  async function pausesOf(pauseMs?: (waitedMs: number) => number, options: OsLockOptions = {}): Promise<number[]> {
    const path = join(makeScratch(), "lock");
    const pauses: number[] = [];
    const enough = new AbortController();
    const alarm = (ms: number, ring: () => void) => {
      if (pauses.push(ms) === 20) enough.abort(new Error("enough"));
      return nodeClock.alarm(0, ring);
    };
    const osLock = createNodeOsLock(volumeOf("local"), { ...parts, clock: { ...nodeClock, alarm } });
    const [holder, waiter] = [await osLock.open(path, options), await osLock.open(path, options)];
    onTestFinished(async () => void (await Promise.all([holder.close(), waiter.close()])));
    await holder.lock();
    await expect(waiter.lock({ pauseMs, signal: enough.signal })).rejects.toThrow("enough");
    return pauses;
  }

  it("asks at once, and then less and less often, down to every few milliseconds", async () => {
    const pauses = await pausesOf(undefined);
    expect(pauses[0]).toBeLessThanOrEqual(2);
    expect(Math.min(...pauses.slice(5))).toBeGreaterThanOrEqual(5);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(10);
  });

  it("pauses for as long as it is told, also before the first question", async () => {
    const waits: number[] = [];
    const pauses = await pausesOf((waitedMs) => {
      waits.push(waitedMs);
      return 20;
    });
    expect(waits[0]).toBe(0);
    expect(waits.slice(1).every((waitedMs) => waitedMs > 0)).toBe(true);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(10);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(20);
  });

  it("asks seldom where the note of the holder wakes it", async () => {
    const pauses = await pausesOf(undefined, { note });
    expect(Math.min(...pauses.slice(6))).toBeGreaterThanOrEqual(12);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(25);
  });

  it("finds a holder that was killed soon, also where holds take long", async () => {
    expect(Math.max(...(await pausesOf(() => 60_000)))).toBeLessThanOrEqual(25);
  });
});

function withoutNativeModule(cause = new Error("no binary")): OsLock {
  return createNodeOsLock(volumeOf("local"), parts, () => Promise.reject(cause));
}

describe("an installation or a bundle without the native module", () => {
  it("is told so and what to do, at the first open and not before", async () => {
    const cause = new Error("no binary");
    const osLock = withoutNativeModule(cause);
    const path = join(makeScratch(), "lock");
    await expect(osLock.open(path)).rejects.toMatchObject({
      code: "UNSUPPORTED_DISK",
      message: expect.stringMatching(/packed into a bundle\. Install it beside the bundle/) as string,
      missing: ["fs-native-extensions"],
      path,
      cause,
    });
    expect(existsSync(path)).toBe(false);
  });

  it("decides for no other kind of gate, which would bind all other processes", async () => {
    const directory = makeScratch();
    const broken = { ...(await openNodePorts(directory)), osLock: withoutNativeModule() };
    await using ground = await Ground.open(broken, join(directory, ".holdfast"));
    await expect(decideGate(broken, ground.staging, directory)).rejects.toMatchObject({ code: "UNSUPPORTED_DISK" });
    expect(existsSync(join(directory, "gate.json"))).toBe(false);
  });
});

it("is refused under Deno, where loading the native module would end the process", () => {
  const versions = { ...process.versions, deno: "2.9.6" };
  expect(() => mustRunOnNode("/shop", versions)).toThrow(/this is Deno 2\.9\.6\. Run the program with Node\./);
  expect(() => mustRunOnNode("/shop")).not.toThrow();
});

describe("the locked range", () => {
  it.each([
    ["linux", [7, 2 ** 40, 1]],
    ["win32", [7, 2 ** 40, 1]],
    ["darwin", [7, 0, 0]],
  ] as const)("on %s is the one that this platform can lock without hiding the content", async (platform, expected) => {
    const calls: number[][] = [];
    const module = {
      tryLock: (...range: number[]) => calls.push(range) > 0,
      unlock: (...range: number[]) => void calls.push(range),
    };
    const native = await loadNativeLock("/lock", async () => module, platform);
    native.tryLock(7);
    native.unlock(7);
    expect(calls).toEqual([expected, expected]);
  });
});
