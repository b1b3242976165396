// Tickets of many files: what each file costs, and what is left when one of them fails.
import { describe, expect, it } from "vitest";
import { diskError } from "../../../src/ports/disk-error.ts";
import type { DiskFile } from "../../../src/ports/disk.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { changedDisk } from "../../sites/disks.ts";
import { makeRealSite } from "../../sites/sites.ts";
import { drain, filesIn, openOn } from "./opened-box.ts";

function filesOf(count: number, bytes: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`file-${index}`, "x".repeat(bytes)]));
}

/** A box on a real disk whose payload files are changed when they are opened. */
async function openWith(change: (file: DiskFile) => Partial<DiskFile>) {
  const { directory, openPorts } = await makeRealSite();
  const ports = await openPorts();
  const disk = changedDisk(ports.disk, (real) => ({
    open: async (path, ...more) => {
      const file = await real.open(path, ...more);
      if (!path.includes("/data/")) return file;
      const changes = change(file);
      return {
        read: changes.read ?? ((...args) => file.read(...args)),
        write: (...args) => file.write(...args),
        sync: changes.sync ?? ((...args) => file.sync(...args)),
        stat: () => file.stat(),
        close: () => file.close(),
      };
    },
  }));
  return { box: await openOn({ ...ports, disk }, `${directory}/box`), disk, directory: `${directory}/box` };
}

describe("a ticket of many files", () => {
  it("contains its small files: none of them costs a file or a sync", async () => {
    const { box, disk, directory } = await openWith(() => ({}));
    const files = filesOf(1_000, 100);
    await box.publish(files);
    expect(await filesIn(disk, `${directory}/data`)).toEqual([]);
    expect((await drain(box)).map((taken) => taken.files)).toEqual([files]);
  });

  it("stores them beside it if the record would be too large with them", async () => {
    const { box, disk, directory } = await openWith(() => ({}));
    const files = filesOf(300, 250);
    await box.publish(files, { meta: "m".repeat(4_080_000) });
    expect(await filesIn(disk, `${directory}/data`)).toHaveLength(300);
    expect((await drain(box)).map((taken) => taken.files)).toEqual([files]);
  });

  it("is published after the sync of every file, and syncs at most 16 of them beside each other", async () => {
    let [begun, ended, most] = [0, 0, 0];
    let startSecond = (): void => undefined;
    const second = new Promise<void>((resolve) => (startSecond = resolve));
    const { box } = await openWith((file) => ({
      sync: async () => {
        begun++;
        most = Math.max(most, begun - ended);
        if (begun > 1) startSecond();
        await second;
        await file.sync();
        ended++;
      },
    }));
    const files = filesOf(40, 3_000);
    await box.publish(files);
    expect(ended).toBe(40);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(16);
    expect((await drain(box)).map((taken) => taken.files)).toEqual([files]);
  });

  it("is not published, and leaves nothing, if one of its files cannot be synced", async () => {
    let begun = 0;
    const { box, disk, directory } = await openWith((file) => ({
      sync: async () => {
        if (++begun === 20) throw diskError("EIO", "sync", "a file");
        await file.sync();
      },
    }));
    expect(await failureOf(box.publish(filesOf(40, 3_000)))).toMatchObject({ code: "IO_ERROR" });
    for (const place of ["staging", "data", "incoming"])
      expect(await filesIn(disk, `${directory}/${place}`)).toEqual([]);
  });

  it("has its sources read one after the other", async () => {
    const { box } = await openWith(() => ({}));
    const order: string[] = [];
    async function* source(name: string): AsyncGenerator<Uint8Array> {
      order.push(`${name} begins`);
      yield Buffer.alloc(70_000);
      order.push(`${name} ends`);
    }
    await box.publish({ a: source("a"), b: source("b"), c: source("c") });
    expect(order).toEqual(["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`]));
  });

  it("is claimed with one read for each file, no longer than the file", async () => {
    const lengths: number[] = [];
    const { box } = await openWith((file) => ({
      read: async (offset, length) => {
        lengths.push(length);
        return await file.read(offset, length);
      },
    }));
    await box.publish(filesOf(30, 3_000));
    await box.take();
    expect(lengths).toEqual(Array.from({ length: 30 }, () => 3_001));
  });
});
