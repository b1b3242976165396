// One record of a store or of its lock table is damaged: it is named, repaired while no process uses the store, and
// fences go on growing.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openStore, verifyPathLocks, verifyStore } from "../../src/index.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { asNewerFormat } from "../durable/newer-format.ts";
import { makeScratch } from "../sites/scratch.ts";

/** More than 16: slots are deltas from then on. */
const locksMax = 24;

interface Fences {
  readonly folder: string;
  readonly highest: number;
}

async function makeStore(): Promise<Fences> {
  const folder = join(makeScratch(), "store");
  const store = await openStore(folder);
  const locks = await store.locks();
  let highest = 0;
  for (let index = 0; index < locksMax; index++) highest = (await locks.acquire(`a/${index}`)).fence;
  await store.close();
  return { folder, highest };
}

function slotsOf(folder: string): string[] {
  const table = join(folder, "ground/table");
  const [epoch = ""] = readdirSync(table).filter((name) => name !== "epochs");
  return readdirSync(join(table, epoch))
    .filter((name) => name !== "open")
    .sort()
    .map((name) => join(table, epoch, name));
}

const records: Readonly<Record<string, (folder: string) => string>> = {
  "the record of the store": (folder) => join(folder, "holdfast.json"),
  "the record of the ground": (folder) => join(folder, "ground/ground.json"),
  "the record of names": (folder) => join(folder, "ground/names.json"),
  "the newest slot of the table": (folder) => slotsOf(folder).at(-1) ?? "",
  "a delta that later slots build on": (folder) => slotsOf(folder).at(-3) ?? "",
  "the epoch of the table": (folder) => join(folder, "ground/table/epochs/0000000001"),
};

const damages: Readonly<Record<string, (path: string) => void>> = {
  "with one flipped bit": (path) => {
    const bytes = readFileSync(path);
    const middle = Math.floor(bytes.length / 2);
    bytes[middle] = (bytes[middle] ?? 0) ^ 4;
    writeFileSync(path, bytes);
  },
  "that is empty": (path) => writeFileSync(path, ""),
  "that is a directory": (path) => {
    rmSync(path);
    mkdirSync(path);
  },
};

async function nextFence(folder: string): Promise<number> {
  await using store = await openStore(folder);
  const locks = await store.locks();
  const hold = await locks.acquire("a/0");
  const { fence } = hold;
  await hold.release();
  return fence;
}

describe.each(Object.keys(records))("%s", (record) => {
  it.each(Object.keys(damages))("%s is named and repaired, and fences grow", async (damage) => {
    const { folder, highest } = await makeStore();
    const path = records[record]?.(folder) ?? "";
    damages[damage]?.(path);
    // A slot that was not synced may be torn: where no holder lives, the table goes on by itself.
    const heals = /slot|delta/.test(record) && damage === "that is empty";
    if (!heals) {
      const report = await verifyStore(folder);
      expect(report?.ok).toBe(false);
      expect(report?.problems.some((problem) => path.startsWith(problem.path))).toBe(true);
      await expect(nextFence(folder)).rejects.toMatchObject({ code: "CORRUPT" });
      expect(await verifyStore(folder, { repair: true })).toMatchObject({ ok: true });
    }
    expect(await verifyStore(folder)).toMatchObject({ ok: true, problems: [] });
    expect(await nextFence(folder)).toBeGreaterThan(highest);
  });

  it("in a newer format is left as it is by a repair", async () => {
    const { folder } = await makeStore();
    const path = records[record]?.(folder) ?? "";
    writeFileSync(path, asNewerFormat(readFileSync(path)));
    const before = readFileSync(path, "utf8");
    await verifyStore(folder, { repair: true }).then(
      (report) => expect(report).toMatchObject({ ok: false }),
      (error: unknown) => expect(error).toMatchObject({ code: "NEWER_FORMAT" }),
    );
    expect(readFileSync(path, "utf8")).toBe(before);
  });
});

it("a repair leaves the lock table of a store that a process uses as it is, and says so", async () => {
  const { folder } = await makeStore();
  await using _user = await openStore(folder);
  damages["with one flipped bit"]?.(slotsOf(folder).at(-1) ?? "");
  const report = await verifyStore(folder, { repair: true });
  expect(report).toMatchObject({ ok: false, problems: [{ repaired: false, remedy: expect.stringContaining("Stop") }] });
});

it.each(["table/epochs/0000000001", "names.json", "ground.json"])(
  "%s of path locks that were opened alone is named and repaired",
  async (record) => {
    const folder = makeScratch();
    const acquire = async (): Promise<number> => {
      await using locks = await openPathLocks(folder);
      return (await locks.acquire("a")).fence;
    };
    const fence = await acquire();
    expect(await verifyPathLocks(folder)).toMatchObject({ ok: true, problems: [] });
    damages["with one flipped bit"]?.(join(folder, ".holdfast", record));
    expect(await verifyPathLocks(folder)).toMatchObject({ ok: false });
    await expect(acquire()).rejects.toMatchObject({ code: "CORRUPT" });
    expect(await verifyPathLocks(folder, { repair: true })).toMatchObject({ ok: true, problems: [{ repaired: true }] });
    expect(await acquire()).toBeGreaterThan(fence);
    expect(await verifyPathLocks(folder)).toMatchObject({ ok: true, problems: [] });
  },
);
