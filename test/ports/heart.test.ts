import { pbkdf2 } from "node:crypto";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { decodeBeat, encodeBeat } from "../../src/format/beat.ts";
import type { DiskFile, Volume } from "../../src/ports/disk.ts";
import type { Beating, BeatTimes, HeartOptions } from "../../src/ports/heart.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { openNodeDisk } from "../../src/ports/node/disk/disk.ts";
import { blockingCalls } from "../../src/ports/node/disk/file-calls.ts";
import { NodeFile } from "../../src/ports/node/disk/file.ts";
import { createNodeHeart } from "../../src/ports/node/heart.ts";
import { makeScratch } from "../sites/scratch.ts";

const local: Volume = { kind: "local", type: "test", mountOptions: [] };
const patience = { timeout: 30_000, interval: 5 };
const everyMs = 20;

let beating: Beating | undefined;
afterEach(async () => {
  await beating?.stop();
  beating = undefined;
});

interface Story {
  readonly path: string;
  readonly file: DiskFile;
  readonly losses: unknown[];
  /** The count of the beat on disk, read without giving the event loop a turn. */
  readonly countNow: () => number;
}

async function start(options: Partial<HeartOptions> = {}, volume: Volume = local): Promise<Story> {
  const path = join(makeScratch(), "heart");
  const file = await (await openNodeDisk(path)).open(path, "create");
  const losses: unknown[] = [];
  beating = createNodeHeart(volume).start(file, {
    everyMs,
    stallMs: 60_000,
    gapMsMax: 60_000,
    from: 1,
    onLost: (cause) => losses.push(cause),
    ...options,
  });
  return { path, file, losses, countNow: () => decodeBeat(readFileSync(path))?.count ?? 0 };
}

/**
 * Blocks this thread, event loop and all, until the condition holds; false when it did not within
 * the time.
 */
function blockUntil(condition: () => boolean, msMax: number): boolean {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (const endMs = nodeClock.monotonicMs() + msMax; nodeClock.monotonicMs() < endMs; Atomics.wait(cell, 0, 0, 2)) {
    if (condition()) return true;
  }
  return condition();
}

describe("the real heart", () => {
  it("writes the bytes of format/beat.ts over each other, counting from the given number", async () => {
    const { path, countNow } = await start({ from: 41, leaseMs: 30_000 });
    await vi.waitFor(() => expect(countNow()).toBeGreaterThanOrEqual(43), patience);
    await beating?.stop();
    const bytes = readFileSync(path);
    const last = decodeBeat(bytes);
    expect(bytes.equals(encodeBeat(last?.count ?? 0, last?.wallMs ?? 0, 30_000))).toBe(true);
  });

  it("tells the times from just before the write of its last beat, by the clocks of the main thread", async () => {
    const before = { monotonicMs: nodeClock.monotonicMs(), wallMs: nodeClock.wallMs() };
    const { countNow, path } = await start();
    expect(beating?.lastBeat()).toBe(undefined);
    const beats: BeatTimes[] = [];
    await vi.waitFor(() => {
      const beat = beating?.lastBeat();
      expect(beat).toBeDefined();
      if (beat !== undefined && beat.monotonicMs !== beats.at(-1)?.monotonicMs) beats.push(beat);
      expect(beats.length).toBeGreaterThanOrEqual(5);
    }, patience);
    await beating?.stop();
    const after = { monotonicMs: nodeClock.monotonicMs(), wallMs: nodeClock.wallMs() };
    for (const [i, beat] of beats.entries()) {
      // Told in whole microseconds, rounded down.
      expect(beat.monotonicMs).toBeGreaterThanOrEqual(beats[i - 1]?.monotonicMs ?? before.monotonicMs - 0.001);
      expect(beat.monotonicMs).toBeLessThanOrEqual(after.monotonicMs);
      expect(beat.wallMs).toBeGreaterThanOrEqual(beats[i - 1]?.wallMs ?? before.wallMs);
      expect(beat.wallMs).toBeLessThanOrEqual(after.wallMs);
      // Both clocks were read at one moment.
      const passedMs = beat.monotonicMs - before.monotonicMs;
      expect(Math.abs(passedMs - (beat.wallMs - before.wallMs))).toBeLessThan(1000);
    }
    expect(countNow()).toBeGreaterThanOrEqual(5);
    expect(decodeBeat(readFileSync(path))?.wallMs).toBe(beating?.lastBeat()?.wallMs);
  });

  it("has a fresh answer at once after the main thread was blocked, before anything in a queue was handled", async () => {
    const { countNow } = await start();
    await vi.waitFor(() => expect(beating?.lastBeat()).toBeDefined(), patience);
    const queued: string[] = [];
    setImmediate(() => queued.push("a turn of the event loop"));
    const before = { count: countNow(), times: beating?.lastBeat() };
    expect(blockUntil(() => countNow() >= before.count + 10, 30_000)).toBe(true);
    const after = beating?.lastBeat();
    expect(queued).toEqual([]);
    // The tenth may be on disk and not told yet; the ninth is told.
    const passedMs = (after?.monotonicMs ?? 0) - (before.times?.monotonicMs ?? 0);
    expect(passedMs).toBeGreaterThanOrEqual(9 * (everyMs - 2));
    expect((after?.wallMs ?? 0) - (before.times?.wallMs ?? 0)).toBeGreaterThanOrEqual(9 * (everyMs - 2));
    expect(after?.monotonicMs).toBeLessThanOrEqual(nodeClock.monotonicMs());
  });

  it("beats on while the main thread is blocked", async () => {
    const { countNow, losses } = await start();
    await vi.waitFor(() => expect(countNow()).toBeGreaterThan(0), patience);
    const before = countNow();
    expect(blockUntil(() => countNow() >= before + 5, 30_000)).toBe(true);
    expect(losses).toEqual([]);
  });

  it("falls silent for good when the main thread does not turn for stallMs, and says so once it does", async () => {
    const { countNow, losses } = await start({ stallMs: 1000 });
    await vi.waitFor(() => expect(countNow()).toBeGreaterThan(0), patience);
    blockUntil(() => false, 2500);
    const [silent, last] = [countNow(), beating?.lastBeat()];
    blockUntil(() => false, 10 * everyMs);
    expect(countNow()).toBe(silent);
    // A beat that did not happen is never reported, also before the loss is.
    expect(beating?.lastBeat()).toEqual(last);
    expect(losses).toEqual([]);
    await vi.waitFor(() => expect(losses).toHaveLength(1), patience);
    expect(String(losses[0])).toContain("1000 ms");
    // Time passes: in which it would beat or report again if it did.
    await nodeClock.sleep(10 * everyMs);
    expect(countNow()).toBe(silent);
    expect(losses).toHaveLength(1);
  });

  it("does not beat when it comes later than gapMsMax after the beat before, by either clock, and says so once", async () => {
    const now = { monotonicMs: nodeClock.monotonicMs(), wallMs: nodeClock.wallMs() };
    // The monotonic clock stands still while a laptop sleeps; the wall clock tells.
    const slept = { ...now, wallMs: now.wallMs - 10_000 };
    const stopped = { monotonicMs: now.monotonicMs - 10_000, wallMs: now.wallMs };
    for (const after of [slept, stopped]) {
      const { countNow, losses } = await start({ after, gapMsMax: 5000 });
      await vi.waitFor(() => expect(losses).toHaveLength(1), patience);
      expect(String(losses[0])).toContain("5000 ms");
      expect(countNow()).toBe(0);
      expect(beating?.lastBeat()).toBeUndefined();
      await beating?.stop();
    }
  });

  it("is not stalled by a main thread that turns", async () => {
    const { countNow, losses } = await start({ stallMs: 2000 });
    await vi.waitFor(() => expect(countNow()).toBeGreaterThan(0), patience);
    // Time passes: more than stallMs.
    await nodeClock.sleep(2600);
    expect(losses).toEqual([]);
    const before = countNow();
    await vi.waitFor(() => expect(countNow()).toBeGreaterThan(before), patience);
  });

  it("does not wait behind work that fills the thread pool", async () => {
    const { countNow } = await start();
    await vi.waitFor(() => expect(countNow()).toBeGreaterThan(0), patience);
    let waiting = 24;
    const jobs = Array.from(
      { length: waiting },
      () => new Promise<void>((resolve) => pbkdf2("a", "b", 150_000, 64, "sha512", () => resolve(void waiting--))),
    );
    const before = countNow();
    await vi.waitFor(() => expect(countNow()).toBeGreaterThanOrEqual(before + 4), patience);
    // Twenty of them queue for the four threads. An asynchronous write would have come after all of
    // them; four beats take as long as one.
    expect(waiting).toBeGreaterThanOrEqual(8);
    await Promise.all(jobs);
  });

  it("reports a failed write once, with its POSIX name, and beats no more", async () => {
    const path = join(makeScratch(), "heart");
    writeFileSync(path, "");
    const losses: unknown[] = [];
    const file = new NodeFile(path, openSync(path, "r"), blockingCalls);
    const options = { everyMs, stallMs: 60_000, gapMsMax: 60_000, from: 1 };
    beating = createNodeHeart(local).start(file, { ...options, onLost: (cause) => losses.push(cause) });
    await vi.waitFor(() => expect(losses).toHaveLength(1), patience);
    expect(losses[0]).toMatchObject({ name: "HoldfastError", code: "IO_ERROR", errno: "EBADF", path });
    expect(beating.lastBeat()).toBe(undefined);
    await beating.stop();
    // Time passes: in which it would beat or report again if it did.
    await nodeClock.sleep(5 * everyMs);
    expect(losses).toHaveLength(1);
    await file.close();
  });

  it.runIf(process.platform === "linux")("reports a full disk as DISK_FULL", async () => {
    const losses: unknown[] = [];
    const file = new NodeFile("/dev/full", openSync("/dev/full", "r+"), blockingCalls);
    const options = { everyMs, stallMs: 60_000, gapMsMax: 60_000, from: 1 };
    beating = createNodeHeart(local).start(file, { ...options, onLost: (cause) => losses.push(cause) });
    await vi.waitFor(() => expect(losses).toHaveLength(1), patience);
    expect(losses[0]).toMatchObject({ code: "DISK_FULL", errno: "ENOSPC" });
    closeSync(file.fd);
  });

  it("syncs each beat where a write alone would stay in this machine's cache", async () => {
    const losses: unknown[] = [];
    // Linux cannot sync a pipe or this device, so the failure shows that it was asked to.
    const file = new NodeFile("/dev/null", openSync("/dev/null", "r+"), blockingCalls);
    const options = {
      everyMs,
      stallMs: 60_000,
      gapMsMax: 60_000,
      from: 1,
      onLost: (cause: unknown) => losses.push(cause),
    };
    beating = createNodeHeart(local).start(file, options);
    await vi.waitFor(() => expect(beating?.lastBeat()).toBeDefined(), patience);
    await beating.stop();
    expect(losses).toEqual([]);
    const network: Volume = { ...local, kind: "network" };
    beating = createNodeHeart(network).start(file, options);
    await vi.waitFor(() => expect(losses).toHaveLength(1), patience);
    expect(losses[0]).toMatchObject({ errno: "EINVAL" });
    closeSync(file.fd);
  });

  it("begins no beat after a stop, and reports no loss for it", async () => {
    const { countNow, losses } = await start();
    await vi.waitFor(() => expect(countNow()).toBeGreaterThan(0), patience);
    await Promise.all([beating?.stop(), beating?.stop()]);
    const [count, last] = [countNow(), beating?.lastBeat()];
    // Time passes: in which it would beat or report again if it did.
    await nodeClock.sleep(10 * everyMs);
    expect([countNow(), beating?.lastBeat(), losses.length]).toEqual([count, last, 0]);
    await beating?.stop();
  });

  it("stops at once, however far away the next beat is", async () => {
    const { countNow } = await start({ everyMs: 3_600_000 });
    await vi.waitFor(() => expect(countNow()).toBe(1), patience);
    await beating?.stop();
  });

  it("stops when its file is closed, so that no beat lands in another file that gets the descriptor", async () => {
    const { file, path, countNow } = await start();
    await vi.waitFor(() => expect(countNow()).toBeGreaterThan(0), patience);
    await file.close();
    const others = Array.from({ length: 30 }, (_, i) => openSync(`${path}-${i}`, "w+"));
    // Time passes: in which it would beat or report again if it did.
    await nodeClock.sleep(10 * everyMs);
    for (const [i, fd] of others.entries()) {
      closeSync(fd);
      expect(readFileSync(`${path}-${i}`, "utf8")).toBe("");
    }
  });

  it("does not keep the process alive", async () => {
    const before = process.getActiveResourcesInfo();
    const path = join(makeScratch(), "heart");
    const file = new NodeFile(path, openSync(path, "w+"), blockingCalls);
    const options = { everyMs, stallMs: 60_000, gapMsMax: 60_000, from: 1, onLost: () => undefined };
    beating = createNodeHeart(local).start(file, options);
    expect(process.getActiveResourcesInfo()).toEqual(before);
    await file.close();
  });

  it("has ended its thread when a stop resolves, and keeps the process until then", async () => {
    const ports = (): number => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;
    const before = ports();
    const { countNow } = await start();
    await vi.waitFor(() => expect(countNow()).toBeGreaterThan(0), patience);
    const stopping = beating?.stop();
    expect(ports()).toBe(before + 1);
    await stopping;
    expect(ports()).toBe(before);
  });

  it("refuses a file of another disk", () => {
    const options = { everyMs, stallMs: 1000, gapMsMax: 60_000, from: 1, onLost: () => undefined };
    expect(() => createNodeHeart(local).start({} as DiskFile, options)).toThrow(TypeError);
  });
});
