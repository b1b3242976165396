import { beforeEach, describe, expect, it } from "vitest";
import type { RollingChain } from "../../src/durable/chain/rolling-chain.ts";
import { slotName } from "../../src/format/name.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { unknownBootId } from "../../src/ports/host.ts";
import { add, openList, type ListedIds, type listOptions } from "./listed-ids.ts";
import { asNewerFormat } from "./newer-format.ts";
import { places, withDisk, type Place } from "../sites/disks.ts";

async function addMany(chain: RollingChain<ListedIds>, prefix: string, count: number): Promise<number[]> {
  const numbers: number[] = [];
  for (let index = 1; index <= count; index++) numbers.push(await add(chain, `${prefix}${index}`));
  return numbers;
}

/** The epochs that have a directory, each once for every directory. */
async function epochDirectories(disk: Disk, directory: string): Promise<number[]> {
  const names = (await disk.list(directory)).filter((name) => /^\d{10}-/.test(name));
  return names.map((name) => Number(name.slice(0, 10))).sort((a, b) => a - b);
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe.each(places)("a rolling chain on %s", (_, make) => {
  let place: Place;
  let directory: string;
  let chain: RollingChain<ListedIds>;
  beforeEach(async () => {
    place = await make();
    directory = `${place.directory}/chain`;
    chain = await openList(place.staging, directory);
  });
  const another = (): Promise<RollingChain<ListedIds>> => openList(place.staging, directory);
  const epochs = (): Promise<number[]> => epochDirectories(place.staging.disk, directory);

  it("begins with its initial state and number 0", async () => {
    expect(await chain.read()).toEqual({ number: 0, state: { ids: [] } });
  });

  it("gives numbers that grow by one, over any number of rolls, and the state of each builds on the one before", async () => {
    expect(await addMany(chain, "a", 10)).toEqual(range(1, 10));
    const state = { ids: range(1, 10).map((index) => `a${index}`) };
    expect(await chain.read()).toEqual({ number: 10, state });
    expect(await (await another()).read()).toEqual({ number: 10, state });
    expect(await add(await another(), "b")).toBe(11);
    expect(await epochs()).toEqual([1, 2, 3, 4]);
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });

  it("tells `change` the number that it is about to win", async () => {
    const told: number[] = [];
    for (let index = 0; index < 5; index++)
      await chain.append(`${index}`, (newest, number) => {
        told.push(number);
        return newest;
      });
    expect(told).toEqual(range(1, 5));
  });

  it("collects the epochs before the newest two, and keeps the record of each for ever", async () => {
    await addMany(chain, "a", 13);
    expect(await epochs()).toEqual([1, 2, 3, 4, 5]);
    expect(await chain.collect()).toBe(3);
    expect(await epochs()).toEqual([4, 5]);
    expect((await place.staging.disk.list(`${directory}/epochs`)).sort()).toEqual(range(1, 5).map(slotName));
    expect(await chain.collect()).toBe(0);
    expect(await (await another()).read()).toMatchObject({ number: 13 });
    expect(await add(chain, "b")).toBe(14);
  });

  it("collects nothing while there are only two epochs", async () => {
    await addMany(chain, "a", 6);
    expect(await chain.collect()).toBe(0);
    expect(await epochs()).toEqual([1, 2]);
  });

  it("carries along a process that slept while everything that it knew was collected", async () => {
    const sleeper = await another();
    await add(sleeper, "s1");
    await addMany(chain, "a", 12);
    await chain.collect();
    expect(await sleeper.read()).toMatchObject({ number: 13 });
    const reader = await another();
    await reader.read();
    await addMany(chain, "b", 12);
    await chain.collect();
    expect(await add(sleeper, "s2")).toBe(26);
    expect((await reader.read()).state.ids).toEqual((await chain.read()).state.ids);
  });

  it("adds nothing when `change` returns undefined", async () => {
    await addMany(chain, "a", 2);
    expect(await chain.append("b", () => undefined)).toBe(undefined);
    expect(await chain.read()).toMatchObject({ number: 2, state: { ids: ["a1", "a2"] } });
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });

  it("rests a refusal on the newest state, also over a roll and a collection", async () => {
    for (const [round, others] of [1, 2, 3, 12].entries()) {
      const late = await another();
      await late.read();
      await addMany(chain, `${round}.`, others);
      if (round === 3) await chain.collect();
      const seen: number[] = [];
      const answer = await late.append("refused", ({ ids }) => void seen.push(ids.length));
      expect(answer).toBe(undefined);
      expect(seen.at(-1)).toBe((await chain.read()).state.ids.length);
    }
  });

  it("keeps the file that became the slot under a second name when asked, and only then", async () => {
    const { disk } = place.staging;
    const paths = range(1, 3).map((attempt) => `${place.temp}/kept-${attempt}`);
    const kept = [...paths];
    await chain.append("a", ({ ids }) => ({ ids: [...ids, "a"] }), { keepAs: () => [kept.shift()!] });
    const slots = (await disk.list(directory)).find((name) => name.startsWith(slotName(1)));
    const slot = `${directory}/${slots}/${slotName(1)}`;
    expect((await disk.stat(paths[0]!)).identity).toBe((await disk.stat(slot)).identity);
    await addMany(chain, "c", 12);
    await chain.collect();
    // It outlives the slot, for it is the holder's.
    expect(await disk.list(place.temp)).toEqual(["kept-1"]);
  });

  it("loses nothing and gives no number twice with many appenders and collectors at once", async () => {
    const numbers: number[] = [];
    const appenders = await Promise.all(range(1, 6).map(another));
    await Promise.all(
      appenders.map(async (appender, index) => {
        for (let round = 0; round < 6; round++) {
          numbers.push(await add(appender, `${index}-${round}`));
          if (round % 2 === 0) await appender.collect();
        }
      }),
    );
    const { number, state } = await chain.read();
    expect(new Set(numbers).size).toBe(36);
    expect(Math.max(...numbers)).toBe(number);
    expect([...state.ids].sort()).toEqual(
      range(0, 5)
        .flatMap((index) => range(0, 5).map((round) => `${index}-${round}`))
        .sort(),
    );
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });

  it("collects the directories of processes that lost the race for an epoch", async () => {
    const { disk } = place.staging;
    await addMany(chain, "a", 3);
    // Each process finds the first epoch full and makes a directory for the second; one of them is
    // named.
    const rollers = await Promise.all(range(1, 4).map(another));
    await Promise.all(rollers.map((roller, index) => add(roller, `r${index}`)));
    // And one died before it could name its own.
    await disk.mkdir(`${directory}/${slotName(2)}-${"0".repeat(26)}`);
    await disk.createFile(`${directory}/${slotName(2)}-${"0".repeat(26)}/open`, new Uint8Array(), { sync: false });
    await disk.mkdir(`${directory}/${slotName(3)}-${"0".repeat(26)}`);
    expect((await epochs()).filter((epoch) => epoch === 2).length).toBeGreaterThan(1);
    await addMany(chain, "b", 9);
    await chain.collect();
    expect(await epochs()).toEqual([5, 6]);
    expect((await chain.read()).state.ids).toHaveLength(16);
  });

  it("lets processes that append in turn on a local disk stage one file for each append, and none that loses", async () => {
    let staged = 0;
    const counted = withDisk(place, (disk) => ({
      createFile: async (path, bytes, options) => {
        if (path.startsWith(place.temp)) staged++;
        await disk.createFile(path, bytes, options);
      },
    }));
    const open = () => openList(counted.staging, `${directory}-in-turn`, { slotsPerEpoch: 100 });
    const both = [await open(), await open()];
    const addInTurn = async (prefix: string): Promise<void> => {
      for (const round of range(1, 5))
        for (const [index, each] of both.entries()) await add(each, prefix + index + round);
    };
    await addInTurn("met");
    staged = 0;
    await addInTurn("again");
    const lost = place.staging.disk.volume.kind === "local" ? 0 : 10;
    expect(staged).toBe(10 + lost);
    expect((await both[0]!.read()).state.ids).toHaveLength(20);
  });

  it("leaves an epoch to a collector that is found removing it, and finishes what a dead one has left", async () => {
    const { disk } = place.staging;
    await addMany(chain, "a", 12);
    const first = `${directory}/${(await disk.list(directory)).find((name) => name.startsWith(slotName(1)))}`;
    const tried: string[] = [];
    const beside = withDisk(place, () => ({
      list: async (path) => {
        const names = await disk.list(path);
        // The other one is quicker, and dies before its last slot.
        if (path === first) for (const name of [slotName(1), slotName(2)]) await disk.unlink(`${path}/${name}`);
        return names;
      },
      unlink: async (path) => {
        if (path.startsWith(first)) tried.push(path);
        await disk.unlink(path);
      },
    }));
    await (await openList(beside.staging, directory)).collect();
    // The `open` file and one slot; on a share the order of the listing is the server's.
    expect(tried.length).toBeLessThanOrEqual(3);
    expect(await disk.list(directory)).toContain(first.slice(first.lastIndexOf("/") + 1));
    await chain.collect();
    expect(await epochs()).toEqual([3, 4]);
  });

  it("ignores what others put into its directories, and collects around it", async () => {
    const { disk } = place.staging;
    await addMany(chain, "a", 3);
    const first = (await disk.list(directory)).find((name) => name.startsWith(slotName(1)))!;
    await disk.createFile(`${directory}/README`, Buffer.from("x"), { sync: false });
    await disk.createFile(`${directory}/${slotName(1)}`, Buffer.from("x"), { sync: false });
    await disk.mkdir(`${directory}/backup-2026`);
    const backup = `${slotName(1)}-My backup (keep)`;
    await disk.mkdir(`${directory}/${backup}`);
    await disk.createFile(`${directory}/${backup}/precious`, Buffer.from("x"), { sync: false });
    await disk.createFile(`${directory}/epochs/notes.txt`, Buffer.from("x"), { sync: false });
    await disk.createFile(`${directory}/${first}/Thumbs.db`, Buffer.from("x"), { sync: false });
    await disk.mkdir(`${directory}/${slotName(1)}-${"1".repeat(26)}`);
    await disk.mkdir(`${directory}/${slotName(1)}-${"1".repeat(26)}/sub`);
    await disk.createFile(`${directory}/${slotName(1)}-${"2".repeat(26)}`, Buffer.from("x"), { sync: false });
    expect(await addMany(chain, "b", 9)).toEqual(range(4, 12));
    await chain.collect();
    expect(await disk.list(directory)).not.toContain(first);
    expect(await disk.list(directory)).toEqual(expect.arrayContaining(["README", slotName(1), "backup-2026"]));
    expect(await disk.list(`${directory}/${backup}`)).toEqual(["precious"]);
    expect(await (await another()).read()).toMatchObject({ number: 12 });
  });

  it("refuses an epoch that lost its `open` file or its directory, with a typed error and in bounded time", async () => {
    const { disk } = place.staging;
    await addMany(chain, "a", 2);
    const first = `${directory}/${(await disk.list(directory)).find((name) => name.startsWith(slotName(1)))}`;
    const corrupt = {
      code: "CORRUPT",
      path: `${directory}/epochs`,
      message: expect.stringContaining("backup") as string,
    };
    await disk.unlink(`${first}/open`);
    await expect((await another()).read()).rejects.toMatchObject(corrupt);
    await expect(add(await another(), "b")).rejects.toMatchObject(corrupt);
    for (const name of await disk.list(first)) await disk.unlink(`${first}/${name}`);
    await disk.rmdir(first);
    await expect((await another()).read()).rejects.toMatchObject(corrupt);
    await expect(add(await another(), "c")).rejects.toMatchObject(corrupt);
  });

  it("refuses a slot that is torn, and names it", async () => {
    const { disk } = place.staging;
    await add(chain, "a");
    const first = `${directory}/${(await disk.list(directory)).find((name) => name.startsWith(slotName(1)))}`;
    await disk.createFile(`${first}/${slotName(2)}`, Buffer.from("{"), { sync: false });
    const corrupt = { code: "CORRUPT", path: `${first}/${slotName(2)}` };
    await expect((await another()).read()).rejects.toMatchObject(corrupt);
    await expect(add(await another(), "b")).rejects.toMatchObject(corrupt);
  });

  it("refuses an epoch record of a newer format before it writes anything", async () => {
    const { disk } = place.staging;
    const record = await disk.readFile(`${directory}/epochs/${slotName(1)}`, 10_000);
    await disk.createFile(`${directory}/epochs/${slotName(2)}`, asNewerFormat(record), { sync: false });
    const before = [await disk.list(directory), await disk.list(place.temp), await disk.list(`${directory}/epochs`)];
    await expect(another()).rejects.toMatchObject({
      code: "NEWER_FORMAT",
      path: `${directory}/epochs/${slotName(2)}`,
      writtenBy: "9.9.9",
    });
    expect([await disk.list(directory), await disk.list(place.temp), await disk.list(`${directory}/epochs`)]).toEqual(
      before,
    );
  });
});

describe("a rolling chain whose appender sleeps in the middle of an append", () => {
  const [, makeMemory] = places[1]!;

  /**
   * A chain whose disk lets `meanwhile` happen once, just before or just after its next link into
   * an epoch.
   */
  async function openSleeper(
    place: Place,
    directory: string,
    when: "before" | "after",
    meanwhile: () => Promise<void>,
  ): Promise<RollingChain<ListedIds>> {
    let isAsleep = false;
    const sleeping = withDisk(place, (disk) => ({
      async link(from, to) {
        const falls = !isAsleep && !to.includes("/epochs/");
        isAsleep ||= falls;
        if (falls && when === "before") await meanwhile();
        await disk.link(from, to);
        if (falls && when === "after") await meanwhile();
      },
    }));
    return await openList(sleeping.staging, directory);
  }

  it.each(["before", "after"] as const)(
    "wins exactly one number when its epoch is collected %s its link",
    async (when) => {
      const place = await makeMemory();
      const directory = `${place.directory}/chain`;
      const others = await openList(place.staging, directory);
      const sleeper = await openSleeper(place, directory, when, async () => {
        await addMany(others, "o", 12);
        await others.collect();
      });
      const number = await add(sleeper, "s");
      // Linked first, it is part of all that came later; linked last, it comes last.
      expect(number).toBe(when === "after" ? 1 : 13);
      const { state } = await others.read();
      expect(state.ids.filter((id) => id === "s")).toHaveLength(1);
      expect(state.ids.indexOf("s")).toBe(number - 1);
      expect(await place.staging.disk.list(place.temp)).toEqual([]);
    },
  );

  it.each(["before", "after"] as const)("wins exactly one number when others append %s its link", async (when) => {
    const place = await makeMemory();
    const directory = `${place.directory}/chain`;
    const others = await openList(place.staging, directory);
    const sleeper = await openSleeper(place, directory, when, () => addMany(others, "o", 4).then(() => undefined));
    const number = await add(sleeper, "s");
    expect(number).toBe(when === "after" ? 1 : 5);
    expect((await others.read()).state.ids.indexOf("s")).toBe(number - 1);
  });

  it("says OUTCOME_UNKNOWN when it is linked and cannot be known to stay", async () => {
    const place = await makeMemory();
    const directory = `${place.directory}/chain`;
    let isBroken = false;
    const broken = withDisk(place, (disk) => ({
      async syncDirectory(path) {
        if (isBroken) throw diskError("EIO", "sync", path);
        await disk.syncDirectory(path);
      },
    }));
    const chain = await openList(broken.staging, directory);
    isBroken = true;
    await expect(add(chain, "a")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", action: "retry" });
    isBroken = false;
    // It is there, and is found by its id.
    expect(await chain.append("a", ({ ids }) => (ids.includes("a") ? undefined : { ids: [...ids, "a"] }))).toBe(
      undefined,
    );
    expect(await chain.read()).toEqual({ number: 1, state: { ids: ["a"] } });
  });
});

describe("a rolling chain without syncs, after a restart of the machine", () => {
  const unsynced = (bootId: string): Partial<typeof listOptions> => ({ sync: false, bootId, slotsPerEpoch: 100 });

  it.each(places.slice(0, 3))(
    "begins a new epoch and jumps to numbers that no process has seen, on %s",
    async (_, make) => {
      const place = await make();
      const directory = `${place.directory}/chain`;
      const before = await openList(place.staging, directory, unsynced("boot-1"));
      await addMany(before, "a", 5);
      expect(await (await openList(place.staging, directory, unsynced("boot-1"))).read()).toMatchObject({ number: 5 });
      const after = await openList(place.staging, directory, unsynced("boot-2"));
      expect(await after.read()).toMatchObject({ number: 100, state: { ids: ["a1", "a2", "a3", "a4", "a5"] } });
      expect(await add(after, "b")).toBe(101);
      // Only the first one under the new boot.
      expect(await add(await openList(place.staging, directory, unsynced("boot-2")), "c")).toBe(102);
      expect(await epochDirectories(place.staging.disk, directory)).toEqual([1, 2]);
    },
  );

  it.each(places.slice(0, 3))("skips what the power cut tore or took, on %s", async (_, make) => {
    const place = await make();
    const { disk } = place.staging;
    const directory = `${place.directory}/chain`;
    await addMany(await openList(place.staging, directory, unsynced("boot-1")), "a", 4);
    const slots = `${directory}/${(await disk.list(directory)).find((name) => name.startsWith(slotName(1)))}`;
    for (const [slot, content] of [
      [3, ""],
      [4, '{"kind":"li'],
    ] as const) {
      await disk.unlink(`${slots}/${slotName(slot)}`);
      await disk.createFile(`${slots}/${slotName(slot)}`, Buffer.from(content), { sync: false });
    }
    await disk.unlink(`${slots}/${slotName(1)}`);
    const after = await openList(place.staging, directory, unsynced("boot-2"));
    expect(await after.read()).toEqual({ number: 100, state: { ids: ["a1", "a2"] } });
    expect(await add(after, "b")).toBe(101);
  });

  it("begins a new epoch also when it is opened with syncs then: how it was written counts", async () => {
    const place = await places[1]![1]();
    const directory = `${place.directory}/chain`;
    await addMany(await openList(place.staging, directory, unsynced("boot-1")), "a", 2);
    expect(await add(await openList(place.staging, directory, { bootId: "boot-2" }), "b")).toBe(101);
  });

  it("syncs after all where the boot is not known: no process could tell later whether there was a restart", async () => {
    const place = await places[1]![1]();
    const directory = `${place.directory}/chain`;
    await addMany(await openList(place.staging, directory, unsynced(unknownBootId("1"))), "a", 2);
    expect(await add(await openList(place.staging, directory, unsynced(unknownBootId("2"))), "b")).toBe(3);
  });

  it("goes on in the same epoch where each slot was synced", async () => {
    for (const [, make] of places) {
      const place = await make();
      const directory = `${place.directory}/chain`;
      // A network mount always syncs, because the others there live on.
      const sync = place.staging.disk.volume.kind === "local";
      await addMany(await openList(place.staging, directory, { sync, bootId: "boot-1" }), "a", 2);
      expect(await add(await openList(place.staging, directory, { sync, bootId: "boot-2" }), "b")).toBe(3);
    }
  });

  it.each(places.slice(0, 3))(
    "loses nothing of processes that live under the other boot id: no restart, but a container that has its own, on %s",
    async (_, make) => {
      const place = await make();
      const directory = `${place.directory}/chain`;
      const host = await openList(place.staging, directory, unsynced("boot-1"));
      await addMany(host, "h", 2);
      const container = await openList(place.staging, directory, unsynced("boot-2"));
      await add(host, "h3");
      await add(container, "c1");
      await add(host, "h4");
      const ids = ["h1", "h2", "h3", "c1", "h4"];
      expect((await host.read()).state.ids).toEqual(ids);
      expect((await container.read()).state.ids).toEqual(ids);
      // No epoch is named for each change of hands.
      expect(await epochDirectories(place.staging.disk, directory)).toEqual([1, 2]);
    },
  );

  it("goes on also when the process that took over has died in the middle of it", async () => {
    const place = await places[1]![1]();
    const { disk } = place.staging;
    const directory = `${place.directory}/chain`;
    for (const look of ["append", "refusal", "read"] as const) {
      const host = await openList(place.staging, directory, unsynced("boot-1"));
      await add(host, look);
      const newest = (await disk.list(directory))
        .filter((name) => name !== "epochs")
        .sort()
        .at(-1);
      await disk.unlink(`${directory}/${newest}/open`);
      if (look === "append") await add(host, "more");
      if (look === "refusal") expect(await host.append("x", () => undefined)).toBe(undefined);
      expect((await host.read()).state.ids).toContain(look);
    }
  });

  it("leaves an epoch without syncs as soon as a process takes part that survives a power cut, and then all processes sync", async () => {
    const place = await places[1]![1]();
    const directory = `${place.directory}/chain`;
    const synced: string[] = [];
    const watched = withDisk(place, (disk) => ({
      async createFile(path, bytes, options) {
        if (options.sync) synced.push("file");
        await disk.createFile(path, bytes, options);
      },
      async syncDirectory(path) {
        synced.push("names");
        await disk.syncDirectory(path);
      },
    }));
    const onServer = await openList(watched.staging, directory, unsynced("boot-1"));
    await add(onServer, "s1");
    const volume = { kind: "network", type: "nfs4", mountOptions: [] } as const;
    const client = await openList(withDisk(place, () => ({ volume })).staging, directory, unsynced("boot-2"));
    expect(await add(client, "c1")).toBe(101);
    await add(onServer, "s2");
    synced.length = 0;
    await add(onServer, "s3");
    expect(synced).toEqual(["file", "names"]);
    expect((await client.read()).state.ids).toEqual(["s1", "c1", "s2", "s3"]);
  });

  it("syncs neither files nor names for an append, and with syncs both", async () => {
    for (const [sync, count] of [
      [false, 0],
      [true, 2],
    ] as const) {
      const place = await places[1]![1]();
      let syncs = 0;
      const counting = withDisk(place, (disk) => ({
        async createFile(path, bytes, options) {
          if (options.sync) syncs++;
          await disk.createFile(path, bytes, options);
        },
        async syncDirectory(path) {
          syncs++;
          await disk.syncDirectory(path);
        },
      }));
      const chain = await openList(counting.staging, `${place.directory}/chain`, { sync });
      syncs = 0;
      await add(chain, "a");
      expect(syncs).toBe(count);
    }
  });
});
