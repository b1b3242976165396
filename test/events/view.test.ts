// What a process knows of the log after its disk has failed once: no line is missing, none is there
// twice.
import { tmpdir } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { plainCodec } from "../../src/events/model/codec.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import { OpenedLog } from "../../src/events/open/opened-log.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { changedDisk } from "../sites/disks.ts";

/** Ports with reads of segments that fail after so many, while a flag is set. */
class FailingReads {
  readonly ports: Ports;
  /** Undefined: none fails. */
  readsLeft: number | undefined;

  constructor(ports: Ports) {
    const disk = changedDisk(ports.disk, (below) => ({
      open: async (path, mode) => {
        const file = await below.open(path, mode);
        if (!path.endsWith(".ndjson") || mode !== "read") return file;
        const { read } = file;
        file.read = async (offset, length) => {
          if (this.readsLeft !== undefined && this.readsLeft-- <= 0) throw diskError("EIO", "read", path);
          return await read.call(file, offset, length);
        };
        return file;
      },
    }));
    this.ports = { ...ports, disk };
  }
}

async function makeWorld(options: { readonly segmentBytesMax?: number } = {}) {
  const ports = createMemoryPorts(await openNodePorts(tmpdir()));
  const failing = new FailingReads(ports);
  const log = await OpenedLog.open(failing.ports, "/log", plainCodec, {});
  const store = await new LogEventStore({ ports, directory: "/log", codec: plainCodec }, options).open();
  onTestFinished(async () => {
    await log.close();
    await store.close();
  });
  return { failing, log, store };
}

it("a view goes on where it was when a read fails in the middle", async () => {
  const { failing, log, store } = await makeWorld();
  const data = "x".repeat(1000);
  for (let n = 0; n < 10; n++)
    await store.append(Array.from({ length: 100 }, (_, i) => ({ type: "Sold", data, tags: [`sale:${n}:${i}`] })));
  // The header, and one of the chunks.
  failing.readsLeft = 2;
  await expect(log.advance()).rejects.toMatchObject({ errno: "EIO" });
  failing.readsLeft = undefined;
  expect((await log.advance()).position).toBe(1000);
  const isClear = (tag: string): boolean => log.view.isClear([{ types: [], tags: [tag] }], 0);
  expect(["sale:0:0", "sale:5:50", "sale:9:99", "never"].map(isClear)).toEqual([false, false, false, true]);
});

it("a view knows the tags added in sealed segments, though its first read of them failed", async () => {
  const { failing, log, store } = await makeWorld({ segmentBytesMax: 1 });
  await store.append({ type: "Sold", data: null, tags: ["sale:1"] });
  await store.addTags([1], ["refunded"]);
  await store.append({ type: "Sold", data: null, tags: ["sale:2"] });
  for (let reads = 0; log.view.tip.position < 2; reads++) {
    failing.readsLeft = reads;
    await log.advance().catch(() => undefined);
  }
  failing.readsLeft = undefined;
  await log.advance();
  const found: number[] = [];
  for await (const { position } of log.reader.read([{ types: [], tags: ["refunded"] }], { after: 0, upTo: 2 }, false))
    found.push(position);
  expect(found).toEqual([1]);
});
