import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";

describe("the real ports", () => {
  it("work together in one directory", async () => {
    const directory = makeScratch();
    const { disk, clock, random, host, heart, osLock, watch } = await openNodePorts(directory);
    const stopWatching = watch.start(directory, () => undefined);
    const file = await disk.open(join(directory, "heart"), "create");
    const lock = await osLock.open(join(directory, "lock"));
    expect(await lock.tryLock()).toBe(true);
    const losses: unknown[] = [];
    const onLost = (cause: unknown): void => void losses.push(cause);
    const beating = heart.start(file, {
      everyMs: 20,
      stallMs: 60_000,
      gapMsMax: 60_000,
      from: random.bytes(1)[0] ?? 0,
      onLost,
    });
    await vi.waitFor(() => expect(beating.lastBeat()).toBeDefined(), { timeout: 30_000, interval: 5 });
    expect(beating.lastBeat()?.monotonicMs).toBeLessThanOrEqual(clock.monotonicMs());
    expect(losses).toEqual([]);
    expect(host.processState(host.pid, host.startMark)).toBe("alive");
    await file.close();
    await lock.close();
    stopWatching();
    expect((await disk.list(directory)).sort()).toEqual(["heart", "lock"]);
  });

  it("can be opened for a directory that is made later", async () => {
    const directory = join(makeScratch(), "later", "still");
    const { disk } = await openNodePorts(directory);
    expect(disk.volume).toEqual((await openNodePorts(join(directory, "..", ".."))).disk.volume);
    mkdirSync(directory, { recursive: true });
    await disk.createFile(join(directory, "a"), new Uint8Array(1), { sync: true });
  });
});
