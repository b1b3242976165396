import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Volume } from "../../src/ports/disk.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { openNodeDisk } from "../../src/ports/node/disk.ts";
import { createNodeOsLock } from "../../src/ports/node/os-lock.ts";
import { loadNativeLock } from "../../src/ports/node/native-lock.ts";
import { nodeRandom } from "../../src/ports/node/random.ts";
import type { OsLockFile } from "../../src/ports/os-lock.ts";
import { describeOsLockContract } from "./os-lock-contract.ts";
import { makeScratch } from "./scratch.ts";

const patience = { timeout: 30_000, interval: 5 };
const lockOf = (kind: Volume["kind"]) =>
  createNodeOsLock({ kind, type: "test", mountOptions: [] }, nodeClock, nodeRandom);

async function open(path: string, kind: Volume["kind"] = "local"): Promise<OsLockFile> {
  const file = await lockOf(kind).open(path);
  onTestFinished(() => file.close());
  return file;
}

/** How many descriptors of this process are open on `path`. */
function descriptorsOn(path: string): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      // The descriptor with which the directory itself was read.
      return false;
    }
  }).length;
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
  describeOsLockContract(`a ${kind} volume`, async () => {
    const directory = makeScratch();
    return { osLock: lockOf(kind), disk: await openNodeDisk(directory), directory };
  });

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

  it.runIf(process.platform === "linux")("leaves no descriptor behind", async () => {
    const path = join(makeScratch(), "lock");
    const [holder, waiter] = [await open(path, kind), await open(path, kind)];
    await holder.lock();
    for (let i = 0; i < 10; i++) {
      await expect(waiter.lock({ signal: AbortSignal.timeout(1) })).rejects.toMatchObject({ name: "TimeoutError" });
      await waiter.tryLock();
    }
    // The holder's, the one of the abandoned wait, and one to try with: never one per cancelled wait.
    expect(descriptorsOn(path)).toBeLessThanOrEqual(3);
    await holder.unlock();
    await Promise.all([holder.close(), waiter.close()]);
    await vi.waitFor(() => expect(descriptorsOn(path)).toBe(0), patience);
  });
});

describe("the OS lock on a share", () => {
  it.runIf(process.platform === "linux")("keeps no descriptor between acquisitions", async () => {
    const path = join(makeScratch(), "lock");
    const file = await open(path, "network");
    expect(descriptorsOn(path)).toBe(0);
    await file.lock();
    expect(descriptorsOn(path)).toBe(1);
    await file.unlock();
    expect(descriptorsOn(path)).toBe(0);
  });
});

describe("waiters in the kernel", () => {
  it("do not slow the reading of files, however many there are", async () => {
    const path = join(makeScratch(), "lock");
    const holder = await open(path);
    await holder.lock();
    const waiters = await Promise.all(Array.from({ length: 7 }, () => open(path)));
    const waiting = waiters.map((file) => file.lock().then(() => file.unlock()));
    // Time passes: so that all of them wait in the kernel.
    await nodeClock.sleep(50);
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

  // A waiting thread knows its descriptor by number only. Were the number given back while it waits, it would lock the next file that gets it:
  // when it had not yet entered the call, or when it enters it again after the process was stopped and continued.
  it.runIf(process.platform === "linux")("never lock another file when they are cancelled", async () => {
    const directory = makeScratch();
    const path = join(directory, "lock");
    const native = await loadNativeLock(path);
    const holder = await open(path);
    await holder.lock();
    const others: { path: string; fd: number }[] = [];
    const openOthers = (): void => {
      for (let i = 0; i < 4; i++) {
        const other = join(directory, `other-${others.length}`);
        others.push({ path: other, fd: openSync(other, "w+") });
      }
    };
    for (let i = 0; i < 10; i++) {
      const waiter = await open(path);
      const controller = new AbortController();
      const waiting = waiter.lock({ signal: controller.signal });
      // Time passes: some have not yet entered the call, some wait in it.
      if (i >= 5) await nodeClock.sleep(20);
      controller.abort();
      openOthers();
      await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
      await waiter.close();
      openOthers();
    }
    const stopper = spawn("sh", ["-c", `kill -STOP ${process.pid}; sleep 0.1; kill -CONT ${process.pid}`]);
    await once(stopper, "exit");
    await holder.unlock();
    await vi.waitFor(async () => expect(await holder.tryLock()).toBe(true), patience);
    await holder.unlock();
    await vi.waitFor(() => expect(descriptorsOn(path)).toBe(1), patience);
    const locked = others.filter((other) => {
      const fd = openSync(other.path, "r+");
      const free = native.tryLock(fd);
      closeSync(fd);
      return !free;
    });
    for (const { fd } of others) closeSync(fd);
    expect(locked).toEqual([]);
  });
});

describe("a platform without the native module", () => {
  it("is reported as UNSUPPORTED_DISK that lacks the OS lock, at the first open and not before", async () => {
    const cause = new Error("no binary");
    const volume: Volume = { kind: "local", type: "test", mountOptions: [] };
    const osLock = createNodeOsLock(volume, nodeClock, nodeRandom, () => Promise.reject(cause));
    const path = join(makeScratch(), "lock");
    await expect(osLock.open(path)).rejects.toMatchObject({
      code: "UNSUPPORTED_DISK",
      missing: ["OS lock"],
      path,
      cause,
    });
    expect(existsSync(path)).toBe(false);
  });
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
      waitForLock: async (...range: number[]) => void calls.push(range),
      unlock: (...range: number[]) => void calls.push(range),
    };
    const native = await loadNativeLock("/lock", async () => module, platform);
    native.tryLock(7);
    await native.waitForLock(7);
    native.unlock(7);
    expect(calls).toEqual([expected, expected, expected]);
  });
});
