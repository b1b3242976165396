// A disk whose server goes away for a while.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/ports/clock.ts";
import type { Disk, Volume } from "../../src/ports/disk.ts";
import { NodeDisk } from "../../src/ports/node/disk/disk.ts";
import { pooledCalls, type FileCalls } from "../../src/ports/node/disk/file-calls.ts";
import { patientDisk } from "../../src/ports/patient-disk.ts";
import { makeScratch } from "../sites/scratch.ts";

const share: Volume = { kind: "network", type: "cifs", mountOptions: [] };

/** A clock on which nothing takes any time but sleeping. */
function sleepingClock(): Clock {
  let nowMs = 0;
  return {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    sleep: async (ms) => void (nowMs += ms),
    alarm: () => () => undefined,
  };
}

/** A disk that cannot reach its server for the first `times` calls. */
function openDisk(times: number, code: string, volume: Volume = share): { disk: Disk; clock: Clock; calls: string[] } {
  const calls: string[] = [];
  let left = times;
  const disturbed = Object.fromEntries(
    Object.entries(pooledCalls).map(([name, call]: [string, unknown]) => [
      name,
      (...args: unknown[]): unknown => {
        calls.push(name);
        if (name !== "close" && left-- > 0) throw Object.assign(new Error(code), { code });
        return (call as (...args: unknown[]) => unknown)(...args);
      },
    ]),
  );
  const clock = sleepingClock();
  return { disk: patientDisk(new NodeDisk(volume, disturbed as unknown as FileCalls), clock), clock, calls };
}

describe("a share whose server goes away", () => {
  it.each(["EHOSTDOWN", "EAGAIN", "ENOTCONN", "ETIMEDOUT", "EREMOTEIO"])(
    "is looked at again after %s, until it answers",
    async (code) => {
      const root = makeScratch();
      writeFileSync(join(root, "a"), "text");
      const { disk, clock } = openDisk(3, code);
      expect(Buffer.from(await disk.readFile(join(root, "a"), 10)).toString()).toBe("text");
      expect(clock.monotonicMs()).toBeGreaterThan(0);
      await expect(openDisk(3, code).disk.canOpen(join(root, "b"))).resolves.toBe(false);
      await expect(openDisk(3, code).disk.list(root)).resolves.toEqual(["a"]);
      await expect(openDisk(3, code).disk.stat(root)).resolves.toMatchObject({ kind: "directory" });
      await expect(openDisk(3, code).disk.syncDirectory(root)).resolves.toBeUndefined();
    },
  );

  it("is given up after a minute, with the error that it gave last", async () => {
    const { disk, clock } = openDisk(Infinity, "EHOSTDOWN");
    await expect(disk.list(makeScratch())).rejects.toMatchObject({ code: "IO_ERROR", errno: "EHOSTDOWN" });
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(60_000);
    expect(clock.monotonicMs()).toBeLessThan(65_000);
  });

  it("is never asked twice for a change: by then the name may be another's", async () => {
    const root = makeScratch();
    mkdirSync(join(root, "d"));
    writeFileSync(join(root, "a"), "text");
    const changes: ((disk: Disk) => Promise<unknown>)[] = [
      (disk) => disk.unlink(join(root, "a")),
      (disk) => disk.rmdir(join(root, "d")),
      (disk) => disk.mkdir(join(root, "e")),
      (disk) => disk.link(join(root, "a"), join(root, "b")),
      (disk) => disk.rename(join(root, "a"), join(root, "b")),
      (disk) => disk.open(join(root, "c"), "create"),
    ];
    for (const change of changes) {
      const { disk, clock } = openDisk(1, "EHOSTDOWN");
      await expect(change(disk)).rejects.toMatchObject({ errno: "EHOSTDOWN" });
      expect(clock.monotonicMs()).toBe(0);
    }
  });

  it("is told at once of what is no outage", async () => {
    const { disk, clock } = openDisk(Infinity, "EIO");
    await expect(disk.list(makeScratch())).rejects.toMatchObject({ errno: "EIO" });
    expect(clock.monotonicMs()).toBe(0);
  });

  it("is no local disk: that one does not come back", async () => {
    const { disk } = openDisk(1, "EHOSTDOWN", { ...share, kind: "local" });
    await expect(disk.list(makeScratch())).rejects.toMatchObject({ errno: "EHOSTDOWN" });
  });
});
