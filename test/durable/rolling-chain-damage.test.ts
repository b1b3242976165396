import { describe, expect, it } from "vitest";
import { RollingChain, type RollingChainOptions } from "../../src/durable/chain/rolling-chain.ts";
import { countOf } from "../../src/format/decoding.ts";
import { slotName } from "../../src/format/name.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { directoryOf } from "../../src/ports/node/location.ts";
import { createSimulation } from "../../src/testing/sim/simulation.ts";

const options: RollingChainOptions<number> = {
  kind: { kind: "count", decode: countOf },
  initial: 0,
  counts: () => false,
  slotsPerEpoch: 8,
  bootId: "boot",
};

/** A simulated disk and a chain on it; `link` may be replaced. */
async function prepare(changed: Partial<typeof options> = {}, link?: (disk: Disk) => Disk["link"]) {
  const { disk, random } = createSimulation().ports("ada");
  await disk.mkdir("/temp");
  const own = link?.(disk) ?? ((from, to) => disk.link(from, to));
  const spoiled = new Proxy(disk, {
    get: (target, name) => {
      const value: unknown = name === "link" ? own : Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  const staging = { disk: spoiled, random, directory: async () => "/temp" };
  return { disk, open: () => RollingChain.open(staging, "/table", { ...options, ...changed }) };
}

describe("a rolling chain", () => {
  it("does not believe a slot that was copied to another number", async () => {
    const { disk, open } = await prepare();
    await (await open()).append("first", (count) => count + 1);
    const epoch = `/table/${(await disk.list("/table")).find((name) => name.startsWith(slotName(1)))}`;
    await disk.link(`${epoch}/${slotName(1)}`, `${epoch}/${slotName(2)}`);
    await expect((await open()).read()).rejects.toMatchObject({ code: "CORRUPT", path: `${epoch}/${slotName(2)}` });
  });

  it("leaves no temp file behind when an append fails", async () => {
    let isFull = false;
    const { disk, open } = await prepare({}, (real) => async (from, to) => {
      if (isFull) throw diskError("ENOSPC", "link", to);
      await real.link(from, to);
    });
    const chain = await open();
    isFull = true;
    await expect(chain.append("first", (count) => count + 1)).rejects.toMatchObject({ code: "DISK_FULL" });
    expect(await disk.list("/temp")).toEqual([]);
    isFull = false;
    expect(await chain.append("first", (count) => count + 1)).toMatchObject({ number: 1, state: 1 });
  });

  it("refuses epochs without slots", async () => {
    const { open } = await prepare({ slotsPerEpoch: 0 });
    await expect(open()).rejects.toThrow(RangeError);
  });
});

describe("a location", () => {
  it("is no address of a web server", () => {
    expect(() => directoryOf("http://server/x")).toThrow(/only file: URLs/);
  });
});
