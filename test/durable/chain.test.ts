import { beforeEach, describe, expect, it } from "vitest";
import { Chain } from "../../src/durable/chain/chain.ts";
import { putIfAbsent } from "../../src/durable/publish/publish.ts";
import { encodeRecord } from "../../src/format/record.ts";
import { slotName } from "../../src/format/name.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { noteKind, places, withDisk, type Place } from "../sites/disks.ts";
import { lostReplies, nfs, World } from "../sites/world.ts";

type Note = { readonly text: string };

describe.each(places)("a chain on %s", (_, make) => {
  let place: Place;
  let chain: Chain<Note>;
  beforeEach(async () => {
    place = await make();
    chain = new Chain(place.staging, place.directory, noteKind);
  });
  const another = (): Chain<Note> => new Chain(place.staging, place.directory, noteKind);
  const names = async (): Promise<string[]> => (await place.staging.disk.list(place.directory)).sort();

  it("is empty at first", async () => {
    expect(await chain.last()).toBe(undefined);
    expect(await chain.find(1)).toBe(undefined);
    await expect(chain.get(1)).rejects.toMatchObject({ code: "IO_ERROR", errno: "ENOENT" });
  });

  it("numbers its entries from 1 without gaps, and gives each to every caller", async () => {
    for (let number = 1; number <= 5; number++)
      expect(await chain.append(`id-${number}`, () => ({ text: `${number}` }))).toEqual({
        number,
        id: `id-${number}`,
        body: { text: `${number}` },
      });
    expect(await names()).toEqual([1, 2, 3, 4, 5].map(slotName));
    expect(await chain.last()).toMatchObject({ number: 5 });
    expect(await another().last()).toMatchObject({ number: 5, id: "id-5" });
    expect(await another().get(3)).toMatchObject({ number: 3, body: { text: "3" } });
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });

  it("gives `make` the newest entry, and adds nothing when it returns undefined", async () => {
    await chain.append("a", (newest) => {
      expect(newest).toBe(undefined);
      return { text: "a" };
    });
    const asked: unknown[] = [];
    expect(await chain.append("b", (newest) => void asked.push(newest?.number))).toBe(undefined);
    expect(asked).toEqual([1]);
    expect(await names()).toEqual([slotName(1)]);
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });

  it("rests a refusal on the newest entry, and not on what it happened to know", async () => {
    const slow = another();
    await slow.append("first", () => ({ text: "1" }));
    for (const id of ["second", "third"]) await chain.append(id, () => ({ text: id }));
    const asked: (number | undefined)[] = [];
    expect(await slow.append("refused", (newest) => void asked.push(newest?.number))).toBe(undefined);
    expect(asked.at(-1)).toBe(3);
    // Also when it changes its mind at the sight of it.
    const late = another();
    await late.last();
    await chain.append("fourth", () => ({ text: "go" }));
    expect(
      await late.append("fifth", (newest) => (newest?.body.text === "go" ? { text: "5" } : undefined)),
    ).toMatchObject({
      number: 5,
    });
  });

  it("asks `make` again with what overtook it, so that nothing is based on an old entry", async () => {
    const slow = another();
    await slow.append("first", () => ({ text: "1" }));
    // `slow` knows number 1 only.
    for (const id of ["second", "third"]) await chain.append(id, (newest) => ({ text: `${newest!.body.text}+1` }));
    const asked: (number | undefined)[] = [];
    const entry = await slow.append("fourth", (newest) => {
      asked.push(newest?.number);
      return { text: `${newest!.body.text}+1` };
    });
    expect(entry).toEqual({ number: 4, id: "fourth", body: { text: "1+1+1+1" } });
    expect(asked[0]).toBe(1);
    expect(asked.at(-1)).toBe(3);
  });

  it("loses no append of many appenders at once", async () => {
    const appenders = Array.from({ length: 8 }, another);
    await Promise.all(
      appenders.map(async (appender, index) => {
        for (let round = 0; round < 5; round++)
          await appender.append(`${index}-${round}`, (newest) => ({ text: `${Number(newest?.body.text ?? 0) + 1}` }));
      }),
    );
    const entries = await Promise.all(Array.from({ length: 40 }, (__, index) => chain.get(index + 1)));
    // Each was made from the one before.
    expect(entries.map(({ body }) => body.text)).toEqual(entries.map(({ number }) => `${number}`));
    expect(new Set(entries.map(({ id }) => id)).size).toBe(40);
    expect(await chain.find(41)).toBe(undefined);
  });

  it("ignores foreign files and directories", async () => {
    const { disk } = place.staging;
    await chain.append("a", () => ({ text: "a" }));
    await disk.createFile(`${place.directory}/Thumbs.db`, Buffer.from("x"), { sync: false });
    await disk.createFile(`${place.directory}/${slotName(7)}.tmp`, Buffer.from("x"), { sync: false });
    await disk.createFile(`${place.directory}/${slotName(0)}`, Buffer.from("x"), { sync: false });
    await disk.mkdir(`${place.directory}/notes`);
    expect(await another().append("b", () => ({ text: "b" }))).toMatchObject({ number: 2 });
  });

  it.each([
    ["empty", (): Uint8Array => new Uint8Array()],
    ["torn", (whole: Uint8Array): Uint8Array => whole.subarray(0, 20)],
    ["of another kind", (): Uint8Array => encodeRecord({ ...noteKind, kind: "letter" }, { text: "x" })],
    ["copied from another number", (whole: Uint8Array): Uint8Array => whole],
  ])("refuses to build on an entry that is %s, and says which file it is and what to do", async (__, spoil) => {
    const { disk } = place.staging;
    await chain.append("a", () => ({ text: "a" }));
    const path = `${place.directory}/${slotName(2)}`;
    const whole = await disk.readFile(`${place.directory}/${slotName(1)}`, 10_000);
    await disk.createFile(path, spoil(whole), { sync: false });
    const before = await names();
    const corrupt = { code: "CORRUPT", path, message: expect.stringMatching(/backup|move it away/) as string };
    await expect(another().last()).rejects.toMatchObject(corrupt);
    await expect(another().append("b", () => ({ text: "b" }))).rejects.toMatchObject(corrupt);
    await expect(chain.append("b", () => ({ text: "b" }))).rejects.toMatchObject(corrupt);
    expect(await names()).toEqual(before);
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });

  it("refuses an entry that is larger than any record, without reading it", async () => {
    const path = `${place.directory}/${slotName(1)}`;
    await place.staging.disk.createFile(path, new Uint8Array(5 * 1024 * 1024), { sync: false });
    await expect(chain.last()).rejects.toMatchObject({ code: "CORRUPT", path });
  });

  it("refuses a body that is too large before it touches the disk", async () => {
    await expect(chain.append("a", () => ({ text: "x".repeat(5_000_000) }))).rejects.toMatchObject({
      code: "TOO_LARGE",
    });
    expect(await names()).toEqual([]);
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });

  it("passes on what `make` throws, and is none the worse for it", async () => {
    const error = new Error("mine");
    await expect(
      chain.append("a", () => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(await chain.append("b", () => ({ text: "b" }))).toMatchObject({ number: 1 });
  });
});

describe("a chain of hundreds of thousands of entries", () => {
  it("is opened and appended to as any other", async () => {
    const [, makeMemory] = places[1]!;
    const place = await makeMemory();
    const count = 300_000;
    await putIfAbsent(
      place.staging,
      `${place.directory}/${slotName(count)}`,
      encodeRecord({ kind: "note", decode: (body) => body }, { number: count, id: "x", body: { text: "x" } }),
    );
    const names = Array.from({ length: count }, (_, index) => slotName(index + 1));
    const long = withDisk(place, () => ({ list: async () => names }));
    const chain = new Chain(long.staging, place.directory, noteKind);
    expect(await chain.append("y", () => ({ text: "y" }))).toMatchObject({ number: count + 1 });
  });
});

describe("a chain over a connection that loses answers", () => {
  it.each(lostReplies)("wins its number all the same: %s", async (label) => {
    const world = new World({ volume: nfs });
    const staging = await world.staging("ada");
    await staging.disk.mkdir("/chain");
    const chain = new Chain(staging, "/chain", noteKind);
    await chain.append("a", () => ({ text: "a" }));
    const fault = { process: "ada", at: "link", label, lasting: false };
    const isSpoiled = await world.withFault(fault, async () => {
      expect(await chain.append("b", () => ({ text: "b" }))).toMatchObject({ number: 2 });
    });
    expect(isSpoiled).toBe(true);
    expect(Object.keys(world.tree("/chain"))).toEqual([1, 2].map((number) => `/chain/${slotName(number)}`));
  });

  it("says OUTCOME_UNKNOWN, after which the id tells whether it is there", async () => {
    const [, makeMemory] = places[1]!;
    const place = await makeMemory();
    const chainOn = (isDone: boolean): Chain<Note> => {
      const broken = withDisk(place, (disk) => ({
        async link(from, to) {
          if (isDone) await disk.link(from, to).catch(() => undefined);
          throw diskError("EIO", "link", to);
        },
        async readFile(path) {
          throw diskError("EIO", "read", path);
        },
        list: async () => [],
      }));
      return new Chain(broken.staging, place.directory, noteKind);
    };
    for (const isDone of [false, true])
      await expect(chainOn(isDone).append(`done: ${isDone}`, () => ({ text: "" }))).rejects.toMatchObject({
        code: "OUTCOME_UNKNOWN",
        path: `${place.directory}/${slotName(1)}`,
      });
    const healed = new Chain(place.staging, place.directory, noteKind);
    expect(await healed.last()).toMatchObject({ number: 1, id: "done: true" });
    expect(await healed.append("next", () => ({ text: "" }))).toMatchObject({ number: 2 });
  });

  it("gives up with RESOURCE_BUSY when every race is lost, instead of trying for ever", async () => {
    const [, makeMemory] = places[1]!;
    const place = await makeMemory();
    let number = 0;
    const unlucky = withDisk(place, (disk) => ({
      async link(from, to) {
        number++;
        const other = encodeRecord(
          { kind: "note", decode: (body) => body },
          { number, id: "other", body: { text: "other" } },
        );
        await disk.createFile(to, other, { sync: false });
        await disk.link(from, to);
      },
    }));
    const chain = new Chain(unlucky.staging, place.directory, noteKind, { sync: false });
    await expect(chain.append("never", () => ({ text: "" }))).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
      action: "retry",
      path: place.directory,
    });
    expect(await place.staging.disk.list(place.temp)).toEqual([]);
  });
});
